"""A stream thread's states over its rebalances; the group and the stores are played."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streams_runtime.kafka.consumer.group_consumer import Membership
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.processing.inputs.intake import Intake, IntakeLimits
from streams_runtime.state.state_directory import StateDirectory
from streams_runtime.states import ThreadState
from streams_runtime.tasks.positions import Beginnings
from streams_runtime.threads.stream_thread import StreamThread
from streams_runtime.topology.plan import SubTopology, Topology
from streams_runtime.topology.store_specs import StoreSpec

STORE = StoreSpec("totals", "key-value", "app-totals-changelog", False, "totals")
TOPOLOGY = Topology("app", (SubTopology(0, (), ("orders",), (), (), (STORE,)),))
_EARLIEST = Beginnings()
ONE, TWO = (frozenset({TopicPartition("orders", number)}) for number in range(2))


class Group:
    """A thread that is not started: the test makes its turns, and says what it has and what is restored."""

    def __init__(self, folder: Path, beginnings: Beginnings = _EARLIEST) -> None:
        self.restored: set[TopicPartition] = set()
        self.checks = self.end = 0
        updater = SimpleNamespace(add=lambda _: None, remove=lambda _: None, completed=self._completed)
        offsets = SimpleNamespace(
            start_offsets=lambda asked: dict.fromkeys(asked, 0),
            end_offsets=lambda asked, _=False: dict.fromkeys(asked, self.end),
            committed_offsets=lambda *_: {},
            topic_ids=lambda names: dict.fromkeys(names, "id"),
        )
        application: Any = SimpleNamespace(
            topology=TOPOLOGY,
            client_properties={},
            exactly_once=False,
            users_topics=["orders"],
            admin=offsets,
            directory=StateDirectory(folder, "app", "test"),
            standbys=None,
            snapshots=None,
            beginnings=beginnings,
            engine=SimpleNamespace(tag_jobs=None),
            make_updater=lambda _: updater,
            make_topics_ready=self._check_topics,
            make_sink_topics=lambda: SimpleNamespace(producer_settings=dict, look_again=lambda: None),
        )
        membership = Membership("app", "app-0", "app-0|host:1|1")
        self.thread = StreamThread("app-0-StreamThread-1", application, membership, lambda *_: None)
        self.states: list[ThreadState] = []
        self.thread.machine.add_listener(lambda new, _: self.states.append(new))
        self.thread.machine.move(ThreadState.STARTING)
        self.intake: Any = SimpleNamespace(add=lambda _: None, remove=lambda _: None, restart=lambda: None)
        self.member = self.thread._participation
        self.member._intake = self.intake

    def turn(self) -> None:
        self.member._keep_up_with_assignment(self.intake)

    def take(self) -> list[ThreadState]:
        found, self.states = self.states, []
        return found

    def _completed(self) -> set[TopicPartition]:
        done, self.restored = self.restored, set()
        return done

    def _check_topics(self) -> dict[str, int]:
        self.checks += 1
        return {"orders": 2}


def test_a_thread_whose_end_can_not_be_told_closes_its_tasks_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise RuntimeError("nobody hears it")

    group, closed = Group(tmp_path), list[str]()
    thread = group.thread
    thread._parts.context.admin = SimpleNamespace(wait_for_broker=refuse)
    thread._parts.context.engine = SimpleNamespace(cancel_jobs=closed.append)
    monkeypatch.setattr(thread, "_on_exception", refuse)
    monkeypatch.setattr(thread._parts.updater, "stop", lambda: closed.append("updater"), raising=False)
    monkeypatch.setattr(thread.tasks, "close", lambda: closed.append("tasks"))
    thread._thread.start()
    thread._thread.join()
    assert closed == ["tasks", "updater", "app-0-StreamThread-1"]
    assert group.take()[-2:] == [ThreadState.PENDING_SHUTDOWN, ThreadState.DEAD]


def test_a_thread_is_assigned_revoked_assigned_anew_and_runs_once_its_tasks_are_restored(tmp_path: Path) -> None:
    """Kafka Streams' shouldChangeStateInRebalanceListener. Spark is not there: nothing of it waits for that."""
    group = Group(tmp_path)
    thread, changelogs = group.thread, [TopicPartition("app-totals-changelog", number) for number in range(2)]
    assert group.take() == [ThreadState.STARTING]
    group.turn()
    assert (thread.state, group.checks) == (ThreadState.STARTING, 0)
    group.member.on_assigned(ONE | TWO)
    group.turn()
    assert (group.take(), group.checks) == ([ThreadState.PARTITIONS_ASSIGNED], 1)
    group.restored = {changelogs[0]}
    group.turn()
    assert thread.state is ThreadState.PARTITIONS_ASSIGNED, "one task is not restored"
    group.restored = {changelogs[1]}
    group.turn()
    assert group.take() == [ThreadState.RUNNING]
    # A part of the tasks goes; the rebalance is over when nothing else comes, and each looks at the topics.
    group.member.on_revoked(TWO)
    assert group.take() == [ThreadState.PARTITIONS_REVOKED]
    assert [str(each) for each in thread.tasks.tasks] == ["0_0"]
    group.turn()
    assert (group.take(), group.checks) == ([ThreadState.PARTITIONS_ASSIGNED, ThreadState.RUNNING], 2)
    group.member.on_assigned(TWO)
    assert group.take() == [ThreadState.PARTITIONS_ASSIGNED]
    group.restored = {changelogs[1]}
    group.turn()
    assert (group.take(), group.checks) == ([ThreadState.RUNNING], 3)
    thread.tasks.close()


class Commits:
    """A consumer's commits, each of which goes as the test says, which may do something meanwhile."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self.offsets: list[dict[TopicPartition, int]] = []

    def commit(self, offsets: dict[TopicPartition, int], should_stop: Any, ids: dict[str, str]) -> bool:
        assert ids == {"orders": "id"}
        self.offsets.append(dict(offsets))
        answer = self._answers.pop(0)
        if callable(answer):
            answer()
            assert should_stop(), "what was to be committed is another partition's now"
            return False
        assert not should_stop()
        return bool(answer)


def test_where_partitions_begin_by_choice_is_committed_before_a_batch_is_read(tmp_path: Path) -> None:
    group = Group(tmp_path, Beginnings({"orders": "latest"}))
    intake = Intake(SimpleNamespace(pause=None), None, IntakeLimits(1, 0.0), None)  # type: ignore[arg-type]
    group.intake = group.member._intake = intake
    one, two = TopicPartition("orders", 0), TopicPartition("orders", 1)
    group.member.on_assigned(ONE | TWO)
    group.turn()
    group.restored, group.end = {TopicPartition("app-totals-changelog", number) for number in range(2)}, 7
    group.turn()
    assert intake.positions == {one: 7, two: 7}
    commits: Any = Commits(False, lambda: group.member.on_revoked(TWO), True)
    begun = [group.member._has_begun(intake, commits) for _ in range(4)]
    assert begun == [False, False, True, True]
    assert commits.offsets == [{one: 7, two: 7}, {one: 7, two: 7}, {one: 7}]
    group.thread.tasks.close()
