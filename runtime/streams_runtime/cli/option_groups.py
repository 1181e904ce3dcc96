"""Options that several verbs share, declared once as the fields of a dataclass."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any


def with_option_groups(verb: Callable[..., None]) -> Callable[..., None]:
    """`verb` as Typer reads it: each parameter of a dataclass's type stands for that dataclass's fields as options.

    For example a verb `def get(key: Key, options: QueryOptions)` has KEY and all options of QueryOptions on its command
    line, and is called with the QueryOptions that they make.
    """
    own = inspect.signature(verb, eval_str=True).parameters
    groups: dict[str, Any] = {name: each.annotation for name, each in own.items() if is_dataclass(each.annotation)}
    fields = {name: inspect.signature(group, eval_str=True).parameters for name, group in groups.items()}

    @functools.wraps(verb)
    def command(**given: Any) -> None:
        made = {name: group(**{each: given.pop(each) for each in fields[name]}) for name, group in groups.items()}
        verb(**given, **made)

    flat = [part for name, each in own.items() for part in fields.get(name, {name: each}).values()]
    signature = inspect.Signature([part.replace(kind=inspect.Parameter.KEYWORD_ONLY) for part in flat])
    annotations = {part.name: part.annotation for part in flat}
    command.__signature__ = signature  # type: ignore[attr-defined]
    command.__annotations__ = annotations
    return command
