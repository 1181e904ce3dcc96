"""What a thread works on batches with: before Spark is there, once it is, and where it can not start; it is played."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from streams_runtime.errors import EnvironmentException
from streams_runtime.metrics.thread_recorder import ThreadRecorder
from streams_runtime.pipeline.without_spark.early_runner import SparkNeeded
from streams_runtime.processing.batch_queue import Batches
from streams_runtime.processing.stop_signal import StopSign
from streams_runtime.states import THREAD, StateMachine, ThreadState
from streams_runtime.threads.participation import Participation
from streams_runtime.topology.plan import Topology


class Played:
    """A thread's participation, over an engine that is as the test says."""

    def __init__(self, findings: bool = True) -> None:
        self.failure: Exception | None = None
        self.ready = False
        self.tagged: list[str] = []
        self.asked: list[tuple[bool, bool]] = []
        self.restarts = 0
        early = SimpleNamespace(name="early") if findings else None
        engine = SimpleNamespace(
            processor=self._processor, early_processor=lambda *_: early, tag_jobs=self.tagged.append
        )
        self.machine = StateMachine(THREAD, "thread")
        parts: Any = SimpleNamespace(
            name="thread-1",
            context=SimpleNamespace(
                engine=engine,
                topology=Topology("app", ()),
                admin=None,
                global_stores={},
                paused=StopSign(),
                standbys=None,
            ),
            membership=SimpleNamespace(client_id="app|here|1"),
            stopping=StopSign(),
            tasks=None,
            topics=None,
            machine=self.machine,
            counters=SimpleNamespace(recorder=ThreadRecorder()),
            output=SimpleNamespace(commits=lambda *_: None),
            spark=SimpleNamespace(submit=lambda function, *given: function(*given)),
            spark_start=SimpleNamespace(start_if_due=lambda *given: self.asked.append(given)),
            purge=SimpleNamespace(behind=lambda _: None),
            sinks=SimpleNamespace(look_again=lambda: None),
        )
        self.intake: Any = SimpleNamespace(restart=self._restart, next=lambda: None, positions={}, backlogged=False)
        self.intake.size = SimpleNamespace(is_known=True)
        self.member = Participation(parts)
        self.member._intake = self.intake
        self.member._keep_up_with_assignment = lambda _: None  # type: ignore[method-assign]

    def batches(self) -> Batches | None:
        return self.member._ready_batches(self.intake, None)  # type: ignore[arg-type]

    def done_by(self) -> str | None:
        found: Any = self.batches()
        return None if found is None else found.processor.name

    def go_on(self) -> None:
        found = self.batches()
        assert found is not None
        self.member._go_on(found, self.intake, None)  # type: ignore[arg-type]

    def _processor(self, *_: Any) -> Any:
        if self.failure is not None:
            raise self.failure
        return SimpleNamespace(name="spark") if self.ready else None

    def _restart(self) -> None:
        self.restarts += 1


def test_nothing_is_done_before_spark_where_nothing_is_known_and_spark_is_started_when_due() -> None:
    played = Played(findings=False)
    assert played.done_by() is None
    for state in (ThreadState.STARTING, ThreadState.PARTITIONS_ASSIGNED, ThreadState.RUNNING):
        played.machine.move(state)
    played.member._assignment_came = True
    assert played.done_by() is None
    assert played.asked == [(False, False), (True, True)]
    played.ready = True
    assert played.done_by() == "spark"


def test_early_batches_are_given_up_for_those_with_spark_as_soon_as_it_is_there() -> None:
    played = Played()
    assert played.done_by() == "early"
    assert played.batches() is played.batches()
    before = played.restarts
    played.ready = True
    assert played.done_by() == "spark"
    assert played.restarts == before + 1, "what had begun is read again"
    assert played.tagged == ["thread-1"] * 2, "its own jobs, and those of the thread that computes"
    assert played.batches() is played.batches()


def test_a_batch_that_needs_spark_is_read_again_and_all_wait_from_then_on(monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played()

    def refuse(*_: Any) -> None:
        raise SparkNeeded

    with monkeypatch.context() as patched:
        patched.setattr(Batches, "work_on", refuse)
        played.go_on()
    assert played.restarts == 1
    assert played.done_by() is None
    played.ready = True
    assert played.done_by() == "spark"


@pytest.mark.parametrize("findings", [True, False])
def test_what_keeps_spark_from_starting_is_raised_whatever_was_done_before(findings: bool) -> None:
    played = Played(findings)
    played.batches()
    played.failure = EnvironmentException("Java is missing")
    with pytest.raises(EnvironmentException):
        played.batches()


def test_while_records_that_fail_are_looked_for_the_member_stays_in_the_group_and_takes_no_batch() -> None:
    played, done = Played(), []
    played.intake.next = lambda: done.append("next")
    consumer: Any = SimpleNamespace(poll=lambda: done.append("poll"))
    batches: Any = SimpleNamespace(isolates=True, work_on=done.append)
    played.member._take_turn(batches, played.intake, consumer)
    assert done == ["poll", None]
    batches.isolates = False
    played.member._take_turn(batches, played.intake, consumer)
    assert done[2:] == ["next", None]


def test_what_was_read_while_the_client_was_paused_is_given_back_and_not_worked_on() -> None:
    played, done = Played(), []

    def read() -> Any:
        played.member._context.paused.set()
        return SimpleNamespace(length=1)

    played.intake.next = read
    batches: Any = SimpleNamespace(isolates=False, work_on=done.append, finish=lambda: done.append("finish"))
    played.member._take_turn(batches, played.intake, None)  # type: ignore[arg-type]
    assert done == ["finish"]
