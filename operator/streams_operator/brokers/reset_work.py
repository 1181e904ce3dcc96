"""The steps of a reset at the brokers, and what their answers are about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from streams_operator.model import KafkaWork, ResetAnswer
from streams_runtime.api.spec.operations.reset_spec import ResetSpec
from streams_runtime.topics.application_topics import TopicsReport
from streams_runtime.topics.reset.reset_plan import OffsetMove, ResetOutlook

RESET_STEPS = frozenset({"reset-check", "reset-topics", "reset-offsets"})


class ResetTopics(Protocol):
    """ApplicationTopics, as far as a reset uses it."""

    def rehearse_reset(self, reset: ResetSpec, now: float) -> ResetOutlook: ...

    def reset_topics(self) -> TopicsReport: ...

    def reset_offsets(self, moves: Sequence[OffsetMove]) -> None: ...


def reset_step(topics: ResetTopics, work: KafkaWork, now: float) -> tuple[ResetOutlook | None, TopicsReport | None]:
    """Carry out one step: what a check has found, and the internal topics where it has made them.

    Raises what the step raises.
    """
    if work.kind == "reset-topics":
        return None, topics.reset_topics()
    if work.kind == "reset-offsets":
        topics.reset_offsets(work.moves)
        return None, None
    if work.reset is None:
        raise ValueError(f"{work} says nothing of what is asked for")
    return topics.rehearse_reset(work.reset, now), None


def answer_to(
    work: KafkaWork,
    at: float,
    outlook: ResetOutlook | None,
    failure: tuple[str, str] | None,
    before: ResetAnswer | None,
) -> ResetAnswer:
    """The answer to a step. Texts of a failure count attempts and milliseconds: the same one again keeps its text."""
    if failure is not None and before is not None and before.failure is not None and before.step == work.kind:
        failure = before.failure if before.failure[0] == failure[0] == "BrokerNotAvailable" else failure
    return ResetAnswer(work.kind, work.request, at, outlook, failure)
