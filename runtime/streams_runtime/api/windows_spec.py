"""Windows of an aggregate, as they stand in a step."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from streams_runtime.api.base import Model
from streams_runtime.api.values import Duration, format_duration

_NO_GRACE = timedelta(0)
Grace = Annotated[
    Duration,
    Field(
        description="How long after its end, in stream time, a window still takes records. A record that comes later is"
        " late: it is counted and left out. Default: 0ms.",
        json_schema_extra={"default": format_duration(_NO_GRACE)},
    ),
]


class TumblingSpec(Model):
    """Windows of one size, one after the other, aligned to 1970."""

    size: Duration = Field(description="Length of a window.")
    grace: Grace = _NO_GRACE


class HoppingSpec(Model):
    """Windows of one size that begin at every `advance`, so that they overlap; aligned to 1970."""

    size: Duration = Field(description="Length of a window.")
    advance: Duration = Field(description="Time from the beginning of a window to that of the next; at most the size.")
    grace: Grace = _NO_GRACE


class WindowSpec(Model):
    """Which records of a key are aggregated together: one kind of window."""

    tumbling: TumblingSpec | None = Field(default=None, description="Windows one after the other.")
    hopping: HoppingSpec | None = Field(default=None, description="Windows that overlap.")
    retention: Duration | None = Field(
        default=None,
        description="How long a window can be queried after its beginning, in stream time; at least size and grace."
        " Default: size and grace.",
    )
