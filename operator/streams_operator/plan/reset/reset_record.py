"""A reset as status.reset keeps it: all that is needed to end what was begun, whatever the spec says by then."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from streams_operator.plan.status.times import seconds_of, text_of
from streams_runtime.api.spec.operations.reset_spec import ResetSpec
from streams_runtime.api.status.reset_status import ResetOffsetsStatus, ResetStatus
from streams_runtime.topics.reset.reset_plan import OffsetMove

PENDING, RUNNING, DONE, REFUSED, DRY_RUN = "Pending", "Running", "Done", "Refused", "DryRun"
TOPICS, OFFSETS, VOLUMES = "Topics", "Offsets", "Volumes"
STEPS = (TOPICS, OFFSETS, VOLUMES)
"""Steps of a reset that deletes; one that keeps internal topics has the second alone."""


@dataclass(frozen=True, slots=True)
class ResetRecord:
    """A reset on record. `request` is the digest of what was asked for. `step`: of a running one."""

    nonce: int
    request: str
    state: str
    message: str = ""
    step: str = ""
    started_at: float = 0.0
    ended_at: float | None = None
    internal_topics: str = "Delete"
    topics: tuple[str, ...] = ()
    moves: tuple[OffsetMove, ...] = ()
    volumes: tuple[str, ...] = ()

    @property
    def deletes(self) -> bool:
        """Whether internal topics and volumes go."""
        return self.internal_topics == "Delete"

    @property
    def status(self) -> ResetStatus:
        """The same as it stands in the status."""
        return ResetStatus(
            nonce=self.nonce,
            state=self.state,
            message=self.message,
            request=self.request,
            internal_topics=self.internal_topics,
            step=self.step or None,
            started_at=text_of(self.started_at),
            ended_at=text_of(self.ended_at) if self.ended_at is not None else None,
            topics=list(self.topics),
            offsets=[_offsets(move) for move in self.moves],
            volumes=list(self.volumes),
        )


def request_of(reset: ResetSpec) -> str:
    """Ten hexadecimal digits, which say what was asked for, with its nonce."""
    return hashlib.sha256(reset.model_dump_json(by_alias=True).encode()).hexdigest()[:10]


def record_of(status: ResetStatus | None) -> ResetRecord | None:
    """What the status says; None: nothing, or nothing that could be gone on with."""
    if status is None or status.nonce is None or not status.request:
        return None
    moves = [_move(each) for each in status.offsets]
    if status.state == RUNNING and (status.step not in STEPS or None in moves):
        return None
    return ResetRecord(
        nonce=status.nonce,
        request=status.request,
        state=status.state,
        message=status.message,
        internal_topics=status.internal_topics,
        step=status.step or "",
        started_at=seconds_of(status.started_at) or 0.0,
        ended_at=seconds_of(status.ended_at),
        topics=tuple(status.topics),
        moves=tuple(each for each in moves if each is not None),
        volumes=tuple(status.volumes),
    )


def _offsets(move: OffsetMove) -> ResetOffsetsStatus:
    return ResetOffsetsStatus(
        topic=move.topic,
        topic_id=move.topic_id,
        partitions=len(move.after),
        before=_text(move.before),
        after=_text(move.after),
    )


def _move(status: ResetOffsetsStatus) -> OffsetMove | None:
    try:
        before, after = _pairs(status.before), _pairs(status.after)
    except ValueError:
        return None
    return OffsetMove(status.topic, status.topic_id, before, after) if status.topic and after else None


def _text(offsets: Iterable[tuple[int, int]]) -> str:
    return " ".join(f"{partition}:{offset}" for partition, offset in offsets)


def _pairs(text: str) -> tuple[tuple[int, int], ...]:
    """Raises ValueError for what `_text` did not write."""
    pairs: Sequence[tuple[str, str, str]] = [each.partition(":") for each in text.split()]
    if not all(each.isdecimal() for partition, _, offset in pairs for each in (partition, offset)):
        raise ValueError(f"{text!r} has no pairs of numbers")
    return tuple((int(partition), int(offset)) for partition, _, offset in pairs)
