"""The warm-up of an instance that starts: when it announces itself, what it says meanwhile, and when it joins."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from waiting import eventually

from streams_runtime.errors import BrokerNotAvailableException, EnvironmentException, StreamsException
from streams_runtime.kafka.types import GroupMember, TopicPartition
from streams_runtime.tasks.announcements import announced_threads
from streams_runtime.threads import warm_up as warm_up_module
from streams_runtime.threads.warm_up import WarmUp
from streams_runtime.topology.plan import SubTopology, TaskId, Topology
from streams_runtime.topology.store_specs import StoreSpec

STORE = StoreSpec("s", "key-value", "log", False, "s")
TOPOLOGY = Topology("app", (SubTopology(0, (), ("orders",), (), (), (STORE,)),))
HAS_BOTH = {"tasks": [{"id": "0_0", "state": "RUNNING"}, {"id": "0_1", "state": "RUNNING"}], "standbys": []}
RUNS_BOTH: Mapping[str, Any] = {**HAS_BOTH, "warm_up": None}


def member(instance: str, *partitions: int) -> GroupMember:
    has = tuple(TopicPartition("orders", each) for each in partitions)
    return GroupMember(f"id-{instance}", f"{instance}-1", f"{instance}|h:1|1", "/h", has)


class Engine:
    """Spark, as far as the bench has it."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    @property
    def is_ready(self) -> bool:
        return self._bench.spark

    def start(self) -> None: ...

    def ready(self) -> Any:
        if self._bench.failure is not None:
            raise self._bench.failure
        return object() if self._bench.spark else None


@dataclass
class Bench:
    """Instance `app-1` beside `app-0`, in a group whose topic has two partitions; all that others say is played."""

    members: list[GroupMember] = field(default_factory=lambda: [member("app-0", 0, 1)])
    figures: dict[str, Mapping[str, Any] | None] = field(default_factory=lambda: {"app-0": RUNS_BOTH})
    timeout: timedelta = timedelta(hours=1)
    lag: int | None = None
    age: float | None = None
    spark: bool = False
    failure: Exception | None = None
    trouble: Exception | None = None
    announcements: list[str] = field(default_factory=list)
    looks: int = 0

    def __post_init__(self) -> None:
        self.stopping = threading.Event()
        self.joined = threading.Event()
        self.raised: list[BaseException] = []
        standby = SimpleNamespace(id=TaskId(0, 1), changelogs={TopicPartition("log", 1)}, stores={"s": None})
        following = lambda: {TopicPartition("log", 1): {"lag": self.lag}} if self.lag is not None else {}  # noqa: E731
        ages = lambda: {TopicPartition("log", 1): self.age} if self.age is not None else {}  # noqa: E731
        processing = SimpleNamespace(stream_threads=1, acceptable_recovery_lag=100, warm_up_timeout=self.timeout)
        self.context: Any = SimpleNamespace(
            settings=SimpleNamespace(instance="app-1"),
            application=SimpleNamespace(application_id="app", spec=SimpleNamespace(processing=processing)),
            topology=TOPOLOGY,
            partition_counts={"orders": 2},
            client_properties={},
            admin=SimpleNamespace(group_members=self._members_of),
            engine=Engine(self),
            snapshots=None,
            standbys=SimpleNamespace(tasks={standby.id: standby}, look_now=lambda: None),
            standby_progress=SimpleNamespace(snapshot=following, ages=ages),
        )
        self.warm_up = WarmUp(self.context, lambda: "h:2", self._ask)

    def start(self) -> None:
        threading.Thread(target=self.wait, daemon=True).start()

    def close(self) -> None:
        self.stopping.set()
        self.warm_up.close()

    def wait(self) -> None:
        try:
            self.warm_up.wait(self.stopping.is_set, self.stopping.wait)
        except BaseException as error:
            self.raised.append(error)
            return
        if not self.stopping.is_set():
            self.members.append(member("app-1"))
            self.joined.set()

    def _members_of(self, *_: Any) -> list[GroupMember]:
        self.looks += 1
        if self.trouble is not None:
            raise self.trouble
        announcing = [GroupMember(each, None, each, "/h", ()) for each in self.announcements]
        return [*self.members, *announcing]

    def _ask(self, instances: Collection[str]) -> dict[str, Mapping[str, Any] | None]:
        return {name: self.figures[name] for name in instances if name in self.figures}


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    made = Bench()

    class Announcement:
        def __init__(self, _properties: Any, group: str, client_id: str) -> None:
            assert (group, client_id) == ("app", "app-1|h:2|+1")
            self._client_id = client_id
            made.announcements.append(client_id)

        def poll(self) -> None: ...

        def close(self) -> None:
            made.announcements.remove(self._client_id)

    monkeypatch.setattr(warm_up_module, "Announcement", Announcement)
    monkeypatch.setattr(warm_up_module, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(warm_up_module, "_WAIT_SECONDS", 0.01)
    monkeypatch.setattr("streams_runtime.tasks.warm_up_patience.SILENCE_SECONDS", 0.0)
    yield made
    made.close()


def looked_again(bench: Bench) -> None:
    looks = bench.looks
    eventually(lambda: bench.looks >= looks + 3)


def test_it_joins_when_its_task_is_warm_and_spark_is_there_and_its_announcement_outlasts_that(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "streams_runtime.threads")
    bench.start()
    eventually(lambda: bench.announcements == ["app-1|h:2|+1"])
    assert announced_threads(GroupMember("m", None, bench.announcements[0], "", ())) == 1
    bench.lag, bench.spark = 101, True
    looked_again(bench)
    assert not bench.joined.is_set()
    said: Any = bench.warm_up.snapshot()
    assert (said["ready"], said["remaining"], bench.warm_up.remaining) == (True, 101, 101)
    assert said["tasks"] == [{"id": "0_1", "owner": "app-0", "instance": "app-1", "lag": 101}]
    assert said["started_at"] == pytest.approx(time.time(), abs=60)
    bench.lag, bench.spark = 100, False
    looked_again(bench)
    assert not bench.joined.is_set()
    bench.spark = True
    assert bench.joined.wait(10)
    eventually(lambda: bench.announcements == [])
    assert (bench.warm_up.snapshot(), bench.warm_up.remaining) == (None, 0)
    told = [record.getMessage() for record in caplog.records]
    assert "0_1 from app-0 to app-1" in told[0]
    assert told[1].startswith("app-1 takes part after a warm-up of ")
    bench.warm_up.wait(bench.stopping.is_set, bench.stopping.wait)  # a thread that is added, or joins anew


@pytest.mark.parametrize(
    "figures",
    [
        {"app-0": None},
        {"app-0": {**RUNS_BOTH, "tasks": [{"id": "0_1", "state": "RESTORING"}]}},
        {"app-0": {**RUNS_BOTH, "spark_ready": False}},
        {"app-0": {"nonsense": 1}},
    ],
    ids=["gone", "restores", "starts", "no instance"],
)
def test_it_joins_at_once_where_nobody_processes_what_it_gets(
    bench: Bench, figures: dict[str, Mapping[str, Any] | None]
) -> None:
    bench.figures = figures
    bench.start()
    assert bench.joined.wait(10)
    assert bench.announcements == []


def test_it_joins_at_once_alone_or_as_a_member_that_comes_back_or_without_stores(bench: Bench) -> None:
    bench.members = []
    bench.start()
    assert bench.joined.wait(10)
    back = Bench(members=[member("app-0", 0), member("app-1", 1)])
    back.start()
    assert back.joined.wait(10)
    stateless = Bench()
    stateless.context.standbys = None
    stateless.start()
    assert stateless.joined.wait(10)
    assert (bench.announcements, stateless.looks) == ([], 0)


def test_warm_up_that_is_switched_off_asks_nobody(bench: Bench) -> None:
    off = Bench(timeout=timedelta())
    off.start()
    assert off.joined.wait(10)
    assert (bench.announcements, off.looks) == ([], 0)


def test_it_joins_at_once_when_the_owner_ends_during_the_warm_up(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "streams_runtime.threads")
    bench.start()
    eventually(lambda: bool(bench.announcements))
    looked_again(bench)
    assert not bench.joined.is_set()
    bench.figures = {"app-0": None}
    assert bench.joined.wait(10)
    assert caplog.records[-1].getMessage().endswith("nobody processes what it waits for any more")


@pytest.mark.parametrize("since_when", ["the first look", "the warm-up"])
def test_an_owner_that_answers_late_is_taken_to_go_on_with_its_tasks(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, since_when: str
) -> None:
    monkeypatch.setattr("streams_runtime.tasks.warm_up_patience.SILENCE_SECONDS", 60.0)
    if since_when == "the first look":
        bench.figures = {"app-0": None}
    bench.start()
    eventually(lambda: bool(bench.announcements))
    bench.figures = {"app-0": None}
    looked_again(bench)
    assert not bench.joined.is_set()
    bench.lag, bench.spark = 0, True
    assert bench.joined.wait(10)


def test_it_joins_anyway_when_its_time_is_over_though_the_warm_up_moves_and_spark_is_not_there(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    late = Bench(lag=10_000_000, timeout=timedelta(milliseconds=200))
    try:
        late.start()
        while not late.joined.wait(0.02):
            assert late.lag is not None
            late.lag -= 10_000
    finally:
        late.close()
    (warning,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert "since spec.processing.warmUpTimeout is over" in warning
    assert warning.endswith("records), Spark does not run here yet")
    assert bench.announcements == []


def test_it_joins_anyway_when_the_warm_up_does_not_move_and_says_what_stops(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("streams_runtime.tasks.warm_up_patience.PATIENCE_SECONDS", 0.3)
    bench.lag, bench.spark = 5000, True
    bench.start()
    assert bench.joined.wait(10)
    (warning,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert "0_1 from app-0 to app-1 (5000 records)" in warning


def test_it_joins_when_it_has_followed_closely_for_a_while_however_much_its_owner_writes(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "streams_runtime.threads")
    monkeypatch.setattr("streams_runtime.tasks.warm_up_patience.FOLLOWED_SECONDS", 0.2)
    bench.lag, bench.age, bench.spark = 5000, 60.0, True
    bench.start()
    eventually(lambda: bool(bench.announcements))
    looked_again(bench)
    assert not bench.joined.is_set()
    bench.age = 1.0
    assert bench.joined.wait(10)
    assert caplog.records[-1].levelno == logging.INFO
    assert "0_1 from app-0 to app-1 (5000 records)" in caplog.records[-1].getMessage()


def test_brokers_that_are_away_are_waited_for_and_a_group_that_may_not_be_looked_at_is_joined(bench: Bench) -> None:
    bench.lag, bench.spark = 5000, True
    bench.start()
    eventually(lambda: bool(bench.announcements))
    bench.trouble = BrokerNotAvailableException("no answer")
    looked_again(bench)
    assert not bench.joined.is_set()
    bench.trouble = StreamsException("not allowed")
    assert bench.joined.wait(10)
    eventually(lambda: bench.announcements == [])
    refused = Bench(trouble=StreamsException("not allowed"))
    refused.start()
    assert refused.joined.wait(10)


def test_brokers_that_do_not_answer_at_the_start_are_asked_again_and_a_thread_that_is_stopped_asks_no_more(
    bench: Bench,
) -> None:
    bench.trouble = BrokerNotAvailableException("no answer")
    bench.start()
    looked_again(bench)
    assert (bench.announcements, bench.joined.is_set()) == ([], False)
    bench.trouble = None
    eventually(lambda: bool(bench.announcements))
    stopped = Bench(trouble=BrokerNotAvailableException("no answer"))
    thread = threading.Thread(target=stopped.wait, daemon=True)
    thread.start()
    looked_again(stopped)
    stopped.close()
    thread.join(10)
    assert (thread.is_alive(), stopped.joined.is_set()) == (False, False)


def test_what_keeps_spark_from_starting_ends_the_thread_before_it_has_taken_a_task(bench: Bench) -> None:
    bench.start()
    eventually(lambda: bool(bench.announcements))
    bench.failure = EnvironmentException("there is no Java")
    eventually(lambda: bool(bench.raised))
    assert (str(bench.raised[0]), bench.joined.is_set()) == ("there is no Java", False)
    bench.lag = 0
    looked_again(bench)
    assert not bench.joined.is_set()


def test_an_instance_that_is_closed_takes_its_announcement_back_and_does_not_join(bench: Bench) -> None:
    bench.start()
    eventually(lambda: bool(bench.announcements))
    bench.close()
    assert (bench.announcements, bench.joined.is_set()) == ([], False)


def test_an_instance_that_is_closed_does_not_wait_for_brokers_that_stand_still(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm_up_module, "_END_SECONDS", 0.1)
    bench.start()
    eventually(lambda: bool(bench.announcements))
    asked, answer = threading.Event(), threading.Event()

    def stand_still(*_: Any) -> list[GroupMember]:
        asked.set()
        answer.wait(60)
        return bench.members

    bench.context.admin.group_members = stand_still
    assert asked.wait(10)
    bench.warm_up.withdraw()
    began = time.monotonic()
    bench.warm_up.close()
    assert time.monotonic() - began < 10
    assert bench.announcements, "it is not known whether the group has heard of it"
    answer.set()
    eventually(lambda: bench.announcements == [])
