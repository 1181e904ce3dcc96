"""Windows of an aggregate, as they stand in a step."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from streams_runtime.api.spec.spec_model import Model
from streams_runtime.api.spec.spec_values import Duration, format_duration

_NO_GRACE = _NO_OFFSET = timedelta(0)
Grace = Annotated[
    Duration,
    Field(
        description="How long after its end, in stream time, a window still takes records. A record that comes later is"
        " late: it is counted and left out. Default: 0ms.",
        json_schema_extra={"default": format_duration(_NO_GRACE)},
    ),
]
Offset = Annotated[
    Duration,
    Field(
        description="How long after midnight UTC, or another multiple of the size or advance since 1970, windows begin;"
        " less than these. With size 1d, days of a place at UTC+2 begin at 22h. Default: 0ms.",
        json_schema_extra={"default": format_duration(_NO_OFFSET)},
    ),
]


class TumblingSpec(Model):
    """Windows of one size, one after the other, aligned to 1970 and `offset`."""

    size: Duration = Field(description="Length of a window.")
    grace: Grace = _NO_GRACE
    offset: Offset = _NO_OFFSET
    timezone: str | None = Field(
        default=None,
        min_length=1,
        description="A name of the IANA's database, such as Europe/Berlin, by whose clock size (whole days) and offset"
        " go: windows begin at its midnight, or the offset after it, and last as long as the days do, an hour more or"
        " less where the clock is set. Windows of several days begin with 1970-01-01, a Thursday, so that weeks from"
        " Monday on have the offset 4d. Default: UTC.",
    )


class HoppingSpec(Model):
    """Windows of one size that begin at every `advance`, so that they overlap; aligned to 1970 and `offset`."""

    size: Duration = Field(description="Length of a window.")
    advance: Duration = Field(description="Time from the beginning of a window to that of the next; at most the size.")
    grace: Grace = _NO_GRACE
    offset: Offset = _NO_OFFSET


class SlidingSpec(Model):
    """Windows that begin and end with a record of the key: both ends count.

    One ends at each record's time, and one begins right after it, if it has records.
    """

    time_difference: Duration = Field(description="The longest time between two records of a window: its length.")
    grace: Grace = _NO_GRACE


class SessionSpec(Model):
    """Windows of a key's records between which no time longer than `gap` passes."""

    gap: Duration = Field(description="The longest time between two records of a session.")
    grace: Duration = Field(
        default=_NO_GRACE,
        description="How long after the gap, in stream time, a session still takes records. Default: 0ms.",
        json_schema_extra={"default": format_duration(_NO_GRACE)},
    )


class LateSpec(Model):
    """Where records go that come too late for a window."""

    topic: str = Field(
        description="The records as they reached the step, values as JSON, each once; headers named __streams.late.*"
        " say from where, and which windows did not take it."
    )


class WindowSpec(Model):
    """Which records of a key are aggregated together: one kind of window."""

    tumbling: TumblingSpec | None = Field(default=None, description="Windows one after the other.")
    hopping: HoppingSpec | None = Field(default=None, description="Windows that overlap.")
    sliding: SlidingSpec | None = Field(
        default=None, description="Windows around the records themselves, wherever they lie in time."
    )
    session: SessionSpec | None = Field(default=None, description="Windows as long as records keep coming.")
    late: LateSpec | None = Field(
        default=None, description="Where late records go. Default: they are counted and left out."
    )
    retention: Duration | None = Field(
        default=None,
        description="How long a window can be queried after its beginning (a session: after its end), in stream time;"
        " at least size, or gap, or twice the time difference, and grace. Default: these.",
    )
