"""The thread that restores: takes orders, lets go when told, and hands its failure to the thread that waits for it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from restore_heard import Heard
from waiting import eventually

from streams_runtime.errors import BrokerNotAvailableException, ProcessorStateException
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.restore import state_updater as updater_module
from streams_runtime.restore.rate_meter import Meter
from streams_runtime.restore.restore_progress import ProgressListener, in_all
from streams_runtime.restore.state_updater import StateUpdater

A, B = TopicPartition("a", 0), TopicPartition("b", 0)
PATIENCE = 10.0


@dataclass(frozen=True)
class FakeRestorer:
    """As much of a restorer as the updater sees."""

    partition: TopicPartition


@dataclass
class FakeReader:
    """Restores nothing by itself: each round asks `answer` what is complete. Notes the order of the calls."""

    answer: Callable[[FakeReader], set[TopicPartition]] = lambda reader: set()
    registered: set[TopicPartition] = field(default_factory=set)
    calls: list[str] = field(default_factory=list)
    rounds: int = 0
    tasks: Mapping[TopicPartition, Any] = field(default_factory=dict)
    loading: bool = False
    cleared: bool = False
    freed: bool = False

    @property
    def busy(self) -> bool:
        return bool(self.registered)

    def register(self, restorer: FakeRestorer) -> None:
        self.calls.append(f"register {restorer.partition}")
        self.registered.add(restorer.partition)

    def unregister(self, partitions: Iterable[TopicPartition]) -> None:
        for each in partitions:
            self.calls.append(f"unregister {each}")
            self.registered.discard(each)

    def restore(self, tasks: Mapping[TopicPartition, Any]) -> set[TopicPartition]:
        self.rounds += 1
        self.tasks = tasks
        time.sleep(0.001)  # a poll takes a moment
        return self.answer(self)

    def clear(self) -> None:
        self.cleared = True
        self.registered.clear()

    def free(self) -> None:
        self.freed = True


@pytest.fixture
def reader() -> FakeReader:
    return FakeReader()


@pytest.fixture
def updater(reader: FakeReader) -> Iterator[StateUpdater]:
    made = StateUpdater("updater", lambda: (reader, reader.free))  # type: ignore[arg-type, return-value]
    yield made
    made.stop()


def add(updater: StateUpdater, *partitions: TopicPartition, task: Any = "task") -> None:
    updater.add({FakeRestorer(each): task for each in partitions})  # type: ignore[misc]


def all_completed(updater: StateUpdater, wanted: set[TopicPartition]) -> set[TopicPartition]:
    """What is reported as complete until all that is wanted was; each partition once."""
    found: list[TopicPartition] = []

    def enough() -> bool:
        found.extend(updater.completed())
        return wanted <= set(found)

    eventually(enough)
    assert len(found) == len(set(found))
    return set(found)


def test_what_is_complete_is_reported_once_and_forgotten_by_the_reader(
    reader: FakeReader, updater: StateUpdater
) -> None:
    reader.answer = lambda self: set(self.registered)
    updater.start()
    add(updater, A, B)
    assert all_completed(updater, {A, B}) == {A, B}
    assert updater.completed() == set()
    eventually(lambda: not reader.busy)
    assert reader.tasks == {A: "task", B: "task"}


def test_orders_from_before_the_start_are_carried_out(reader: FakeReader, updater: StateUpdater) -> None:
    reader.answer = lambda self: set(self.registered)
    add(updater, A)
    updater.start()
    assert all_completed(updater, {A}) == {A}


def test_with_nothing_to_restore_the_reader_is_left_alone(reader: FakeReader, updater: StateUpdater) -> None:
    reader.answer = lambda self: set(self.registered)
    updater.start()
    add(updater, A)
    all_completed(updater, {A})
    rounds = reader.rounds
    add(updater, B)
    all_completed(updater, {B})
    assert reader.rounds <= rounds + 2


def test_removing_waits_until_the_reader_no_longer_touches_the_store(reader: FakeReader, updater: StateUpdater) -> None:
    """The caller closes the store next: a write after that would hit a closed one."""
    inside, leave = threading.Event(), threading.Event()

    def answer(self: FakeReader) -> set[TopicPartition]:
        inside.set()
        leave.wait(PATIENCE)
        self.calls.append("round over")
        return set()

    reader.answer = answer
    updater.start()
    add(updater, A)
    assert inside.wait(PATIENCE)
    removal = threading.Thread(target=updater.remove, args=({A},))
    removal.start()
    removal.join(0.1)
    assert removal.is_alive()
    leave.set()
    removal.join(PATIENCE)
    assert not removal.is_alive()
    assert reader.calls[-1] == "unregister a-0"
    assert reader.calls.index("round over") < reader.calls.index("unregister a-0")
    assert not reader.registered


@pytest.mark.parametrize("when", ["before", "while"])
def test_a_removed_partition_is_not_reported_even_if_it_was_completed_meanwhile(
    reader: FakeReader, updater: StateUpdater, when: str
) -> None:
    inside, leave = threading.Event(), threading.Event()

    def answer(self: FakeReader) -> set[TopicPartition]:
        inside.set()
        leave.wait(PATIENCE)
        return {A} & self.registered

    reader.answer = answer
    updater.start()
    add(updater, A)
    assert inside.wait(PATIENCE)
    if when == "before":
        leave.set()
        eventually(lambda: not reader.registered)
    removal = threading.Thread(target=updater.remove, args=({A},))
    removal.start()
    if when == "while":
        eventually(lambda: updater._gone)
        leave.set()
    removal.join(PATIENCE)
    assert updater.completed() == set()


def test_an_order_that_was_not_taken_yet_is_withdrawn(reader: FakeReader, updater: StateUpdater) -> None:
    add(updater, A, B)
    updater.remove({A})
    updater.start()
    eventually(lambda: B in reader.registered)
    assert "register a-0" not in reader.calls


def test_a_partition_that_goes_and_comes_back_is_restored_anew(reader: FakeReader, updater: StateUpdater) -> None:
    updater.start()
    add(updater, A, task="first")
    eventually(lambda: reader.rounds)
    updater.remove({A})
    reader.answer = lambda self: set(self.registered)
    add(updater, A, task="second")
    assert all_completed(updater, {A}) == {A}
    assert reader.calls[:3] == ["register a-0", "unregister a-0", "register a-0"]
    assert reader.tasks == {A: "second"}


def test_a_failure_ends_the_thread_and_is_raised_to_whoever_waits(reader: FakeReader, updater: StateUpdater) -> None:
    def answer(self: FakeReader) -> set[TopicPartition]:
        raise ProcessorStateException("disk full")

    reader.answer = answer
    updater.start()
    add(updater, A)
    with pytest.raises(ProcessorStateException, match="disk full"):
        eventually(updater.completed)
    with pytest.raises(ProcessorStateException, match="disk full"):
        updater.completed()
    updater.remove({A})
    assert (reader.cleared, reader.freed) == (True, True)


def test_a_reader_that_can_not_be_made_is_a_failure_too() -> None:
    def make() -> Any:
        raise ProcessorStateException("no reader")

    updater = StateUpdater("updater", make)
    updater.start()
    with pytest.raises(ProcessorStateException, match="no reader"):
        eventually(updater.completed)
    updater.remove({A})
    updater.stop()


def test_a_removal_that_waits_is_freed_when_the_thread_fails(reader: FakeReader, updater: StateUpdater) -> None:
    inside, leave = threading.Event(), threading.Event()

    def answer(self: FakeReader) -> set[TopicPartition]:
        inside.set()
        leave.wait(PATIENCE)
        raise ProcessorStateException("disk full")

    reader.answer = answer
    updater.start()
    add(updater, A)
    assert inside.wait(PATIENCE)
    removal = threading.Thread(target=updater.remove, args=({A},))
    removal.start()
    leave.set()
    removal.join(PATIENCE)
    assert not removal.is_alive()


def test_a_removal_does_not_wait_for_a_thread_that_has_failed_and_is_not_gone_yet(
    reader: FakeReader, updater: StateUpdater
) -> None:
    leave = threading.Event()

    def linger() -> None:
        updater._run()
        leave.wait(PATIENCE)

    def answer(self: FakeReader) -> set[TopicPartition]:
        raise ProcessorStateException("disk full")

    reader.answer = answer
    updater._thread = threading.Thread(target=linger, daemon=True)
    updater.start()
    add(updater, A)
    with pytest.raises(ProcessorStateException, match="disk full"):
        eventually(updater.completed)
    removal = threading.Thread(target=updater.remove, args=({A},), daemon=True)
    removal.start()
    removal.join(PATIENCE / 2)
    freed = not removal.is_alive()
    leave.set()
    assert freed


def test_a_listener_that_fails_at_the_end_keeps_nothing_of_the_reader_from_being_freed(
    reader: FakeReader, updater: StateUpdater, monkeypatch: pytest.MonkeyPatch
) -> None:
    def clear() -> None:
        raise OSError("the user's listener fails")

    monkeypatch.setattr(reader, "clear", clear)
    updater.start()
    updater.stop()
    assert reader.freed
    with pytest.raises(OSError, match="the user's listener fails"):
        updater.completed()


def test_a_broker_that_is_away_is_asked_again_and_said_to_be_away(
    reader: FakeReader, updater: StateUpdater, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(updater_module, "_RETRY", 0.01)

    def answer(self: FakeReader) -> set[TopicPartition]:
        if self.rounds < 3:
            raise BrokerNotAvailableException("no answer from the broker at b:1")
        return set(self.registered)

    reader.answer = answer
    with caplog.at_level(logging.WARNING):
        updater.start()
        add(updater, A)
        assert all_completed(updater, {A}) == {A}
    assert caplog.text.count("no answer from the broker at b:1. Restoration waits") == 2


@pytest.mark.parametrize("order", ["stop", "remove"])
def test_waiting_for_the_broker_ends_at_once_with_a_new_order(
    reader: FakeReader, updater: StateUpdater, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(updater_module, "_RETRY", 60.0)

    def answer(self: FakeReader) -> set[TopicPartition]:
        raise BrokerNotAvailableException("away")

    reader.answer = answer
    updater.start()
    add(updater, A)
    eventually(lambda: reader.rounds)
    since = time.monotonic()
    if order == "stop":
        updater.stop()
    else:
        updater.remove({A})
    assert time.monotonic() - since < PATIENCE


def test_stopping_frees_the_reader_on_its_own_thread_and_may_be_repeated(
    reader: FakeReader, updater: StateUpdater
) -> None:
    updater.start()
    add(updater, A)
    eventually(lambda: reader.rounds)
    updater.stop()
    assert (reader.cleared, reader.freed) == (True, True)
    updater.stop()
    updater.remove({A})


def test_stopping_what_was_never_started_is_no_error(updater: StateUpdater) -> None:
    updater.stop()
    updater.remove({A})


def test_a_bulk_load_is_said_to_go_on_from_the_order_until_the_reader_is_through_with_it(
    reader: FakeReader, updater: StateUpdater
) -> None:
    """Spark is not started beside it, so nobody may be told too early that there is none."""
    assert not updater.loading
    add(updater, A)
    assert updater.loading
    reader.loading = True
    updater.start()
    eventually(lambda: reader.rounds > 1)
    assert updater.loading
    reader.loading = False
    eventually(lambda: not updater.loading)


def test_a_load_that_was_called_off_no_longer_goes_on(reader: FakeReader, updater: StateUpdater) -> None:
    reader.loading = True
    updater.start()
    add(updater, A)
    eventually(lambda: reader.rounds)
    updater.remove({A})
    eventually(lambda: not updater.loading)


def test_progress_follows_a_restoration_and_stays_when_it_ends() -> None:
    heard, now = Heard(), [10.0]
    listener = ProgressListener(heard, clock=lambda: now[0])
    listener.on_restore_start(A, "totals", 5, 90)
    assert listener.ongoing
    (row,) = listener.snapshot()
    assert (row["remaining"], row["rate"], row["eta_seconds"]) == (85, None, None)
    now[0] = 12.0
    listener.on_batch_restored(A, "totals", 40, 30)
    listener.on_batch_restored(A, "totals", 45, 5)
    assert listener.snapshot() == [
        {
            "store": "totals",
            "topic": "a",
            "partition": 0,
            "start": 5,
            "position": 45,
            "end": 90,
            "restored": 35,
            "started_at": 10.0,
            "ended_at": None,
            "snapshot": False,
            "remaining": 45,
            "rate": 20.0,
            "eta_seconds": 2.25,
        }
    ]
    now[0] = 20.0
    listener.on_restore_end(A, "totals", 50)
    now[0] = 99.0
    (ended,) = listener.snapshot()
    assert (ended["position"], ended["restored"], ended["ended_at"]) == (90, 35, 20.0)
    assert (ended["remaining"], ended["rate"], ended["eta_seconds"]) == (0, 8.5, 0.0)
    assert not listener.ongoing
    assert listener.restored_total == 35
    assert [call[0] for call in heard.calls] == ["start", "batch", "batch", "end"]


def test_what_a_bulk_load_has_read_is_progress_before_it_is_applied() -> None:
    now = [10.0]
    listener = ProgressListener(clock=lambda: now[0])
    listener.on_read(A, 7)  # a load that was called off
    listener.on_restore_start(A, "totals", 0, 90)
    now[0] = 11.0
    listener.on_read(A, 30)
    listener.on_read(A, 20)
    (row,) = listener.snapshot()
    assert (row["position"], row["restored"], row["remaining"], row["eta_seconds"]) == (30, 0, 60, 2.0)
    listener.on_read(A, 95)  # the log goes on beyond what is to be restored
    assert listener.snapshot()[0]["position"] == 90


def test_restorations_in_all_take_as_long_as_their_speeds_together_say() -> None:
    now = [0.0]
    listener = ProgressListener(clock=lambda: now[0])
    assert in_all(listener.snapshot()) == {"stores": 0, "remaining": 0, "rate": None, "eta_seconds": 0.0}
    listener.on_restore_start(A, "totals", 0, 100)
    assert in_all(listener.snapshot()) == {"stores": 1, "remaining": 100, "rate": None, "eta_seconds": None}
    listener.on_restore_start(B, "totals", 0, 50)
    now[0] = 2.0
    listener.on_batch_restored(A, "totals", 40, 40)
    listener.on_batch_restored(B, "totals", 20, 20)
    assert in_all(listener.snapshot()) == {"stores": 2, "remaining": 90, "rate": 30.0, "eta_seconds": 3.0}
    listener.on_restore_end(B, "totals", 50)
    assert in_all(listener.snapshot()) == {"stores": 1, "remaining": 60, "rate": 20.0, "eta_seconds": 3.0}


def test_a_meter_tells_the_rate_of_the_last_half_minute() -> None:
    now = [0.0]
    meter = Meter(lambda: now[0])
    meter.add(10)
    assert (meter.rate, meter.total) == (10.0, 10)
    now[0] = 5.0
    meter.add(40)
    assert meter.rate == 10.0
    now[0] = 34.0
    assert meter.rate == 40 / 30
    now[0] = 36.0
    assert (meter.rate, meter.total) == (0.0, 50)


def test_progress_of_a_suspended_restoration_is_forgotten_but_its_records_count() -> None:
    listener = ProgressListener()
    listener.on_restore_start(B, "totals", 0, 9)
    listener.on_restore_start(A, "totals", 0, 9)
    listener.on_batch_restored(A, "totals", 4, 4)
    assert [each["topic"] for each in listener.snapshot()] == ["a", "b"]
    listener.on_restore_suspended(A, "totals", 4)
    assert [each["topic"] for each in listener.snapshot()] == ["b"]
    assert listener.restored_total == 4
