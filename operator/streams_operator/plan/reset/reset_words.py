"""What a reset does, would do or has done, in words."""

from __future__ import annotations

from collections.abc import Sequence

from streams_operator.plan.reset.reset_record import OFFSETS, TOPICS, ResetRecord
from streams_runtime.topics.reset.reset_plan import OffsetMove, counted

LENGTH = 2000
"""Bytes of a message."""


def would(record: ResetRecord) -> str:
    """For a dry run."""
    return f"would {_all(record, 'delete and make anew', 'set', 'delete')}"


def has(record: ResetRecord) -> str:
    """For one that is done."""
    return _all(record, "deleted and made anew", "set", "deleted")


def does(record: ResetRecord) -> str:
    """The step that one is at."""
    if record.step == TOPICS:
        return f"deleting and making anew {counted(len(record.topics), 'internal topic')}"
    if record.step == OFFSETS:
        return f"setting the offsets of {counted(_partitions(record.moves), 'partition')}"
    return f"deleting {counted(len(record.volumes), 'volume claim')}"


def _all(record: ResetRecord, topics: str, offsets: str, volumes: str) -> str:
    parts = []
    if record.topics:
        parts.append(f"{topics} {counted(len(record.topics), 'internal topic')}")
    parts.append(f"{offsets} the offsets of {counted(_partitions(record.moves), 'partition')}{_distance(record.moves)}")
    if record.volumes:
        parts.append(f"{volumes} {counted(len(record.volumes), 'volume claim')}")
    return ", ".join(parts)


def _partitions(moves: Sequence[OffsetMove]) -> int:
    return sum(len(move.after) for move in moves)


def _distance(moves: Sequence[OffsetMove]) -> str:
    """How far they go, where the group has been somewhere."""
    steps = [
        after - before[number]
        for move in moves
        for before in (dict(move.before),)
        for number, after in move.after
        if number in before
    ]
    back, on = -sum(each for each in steps if each < 0), sum(each for each in steps if each > 0)
    texts = [f"{back} records back"] * bool(back) + [f"{on} records on"] * bool(on)
    return f" ({', '.join(texts)})" if texts else ""
