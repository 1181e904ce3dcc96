"""spec.reset: the explicit act of reading anew, done once for each new nonce."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import Field, ModelWrapValidatorHandler, SerializerFunctionWrapHandler, model_serializer, model_validator

from streams_runtime.api.spec.spec_model import Model
from streams_runtime.api.spec.spec_values import refusal

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?(Z|[+-][0-9]{2}:[0-9]{2})"
MOMENT_PATTERN = rf"^(earliest|latest|{_TIME})$"
_MOMENT = re.compile(MOMENT_PATTERN)
_REMEDY = "give earliest, latest, a time such as 2026-01-31T08:00:00Z, or {offsets: {SOURCE: {PARTITION: OFFSET}}}"

Offset = Annotated[int, Field(ge=0)]


class ResetTarget(Model):
    """`earliest`, `latest`, a time with its offset from UTC, or `{offsets: {SOURCE: {PARTITION: OFFSET}}}`."""

    moment: str | None = Field(default=None, description="earliest, latest, or a time; the short form.")
    offsets: dict[str, dict[str, Offset]] | None = Field(
        default=None,
        min_length=1,
        description="By source and partition the offset that is read next. Partitions that are not named stay.",
    )

    @property
    def time(self) -> datetime | None:
        """The time, in UTC; None where something else is asked for."""
        if self.moment is None or self.moment in ("earliest", "latest"):
            return None
        return datetime.fromisoformat(self.moment).astimezone(UTC)

    @model_validator(mode="wrap")
    @classmethod
    def _from_short_form(cls, value: Any, handler: ModelWrapValidatorHandler[ResetTarget]) -> Any:
        if isinstance(value, str):
            return handler({"moment": _moment(value)})
        if isinstance(value, dict) and set(value) == {"offsets"} and value["offsets"] is not None:
            return handler({"offsets": value["offsets"]})
        if isinstance(value, ResetTarget):
            return value
        raise refusal(f"found {value!r}", _REMEDY)

    @model_serializer(mode="wrap")
    def _to_short_form(self, handler: SerializerFunctionWrapHandler) -> Any:
        return self.moment if self.moment is not None else {"offsets": handler(self)["offsets"]}


class ResetSpec(Model):
    """A reset: what the group reads next, and what becomes of internal topics and volumes."""

    nonce: int = Field(ge=0, description="A new number asks for one more reset.")
    to: ResetTarget = Field(
        description="What is read next of each source: earliest, latest, the first record of a time or later"
        " (2026-01-31T08:00:00Z), or offsets by source and partition."
    )
    sources: list[str] = Field(
        default_factory=list,
        description="Names of spec.topology.sources whose offsets are set; the others' stay. Empty: all but global"
        " tables, which every instance reads in full.",
    )
    internal_topics: Literal["Delete", "Keep"] = Field(
        default="Delete",
        description="Delete: internal topics are deleted and made anew, empty, and volumes are deleted. Keep: both"
        " stay, and what is read a second time counts a second time.",
    )
    dry_run: bool = Field(default=False, description="true: status.reset says what would be done; nothing is changed.")


def _moment(text: str) -> str:
    if text in ("earliest", "latest"):
        return text
    try:
        moment = datetime.fromisoformat(text) if _MOMENT.fullmatch(text) else None
    except ValueError:
        moment = None
    if moment is None:
        raise refusal(f"found {text!r}", _REMEDY)
    if moment < _EPOCH:
        raise refusal(f"found {text!r}, which is before 1970", "give a later time, or earliest")
    return text
