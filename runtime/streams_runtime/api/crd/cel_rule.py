"""A rule between fields, as the API server checks it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Rule:
    """A CEL expression that has to be true, and the message that refuses; `path`: the field that the message names."""

    rule: str
    message: str
    path: str | None = None

    def schema(self) -> Schema:
        """The rule as the API server takes it."""
        place = {} if self.path is None else {"fieldPath": self.path}
        return {"rule": self.rule, "message": self.message, **place}
