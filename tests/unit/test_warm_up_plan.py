"""What has to be warm before an announced instance takes part: worked out alike by all, and not waited for in vain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from streams_runtime.kafka.types import GroupMember, TopicPartition
from streams_runtime.tasks.announcements import (
    announced,
    announced_threads,
    announcing_client_id,
    taking_part,
    when_joined,
)
from streams_runtime.tasks.standby_placement import owners_of
from streams_runtime.tasks.warm_up_patience import (
    FOLLOWED_SECONDS,
    PATIENCE_SECONDS,
    PROGRESS_RECORDS,
    SILENCE_SECONDS,
    Belief,
    Patience,
)
from streams_runtime.tasks.warm_up_plan import (
    CLOSE_SECONDS,
    Account,
    Move,
    Outlook,
    account_of,
    expected_by,
    moves,
    outlook,
)
from streams_runtime.topology.plan import TaskId

ACCEPTABLE = 10_000


def tasks(count: int) -> dict[TaskId, frozenset[TopicPartition]]:
    return {TaskId(1, each): frozenset({TopicPartition("orders", each)}) for each in range(count)}


def group(instances: Sequence[str], count: int, threads: int = 1) -> list[GroupMember]:
    """A group at rest, with ranges as the broker's assignor makes them."""
    names = sorted(f"{instance}-{number}" for instance in instances for number in range(1, threads + 1))
    made, start = [], 0
    for number, name in enumerate(names):
        end = start + count // len(names) + (number < count % len(names))
        has = tuple(TopicPartition("orders", each) for each in range(start, end))
        made.append(GroupMember(f"id-{name}", name, f"{name.rpartition('-')[0]}|host:1|1", "/h", has))
        start = end
    return made


def announce(instance: str, threads: int = 1) -> GroupMember:
    return GroupMember(f"a-{instance}", None, announcing_client_id(instance, "host:1", threads), "/h", ())


def running(members: Sequence[GroupMember]) -> frozenset[TaskId]:
    return frozenset(TaskId(1, each.partition) for member in members for each in member.assignment)


def accounts_of(members: Sequence[GroupMember]) -> dict[str, Account | None]:
    """All tasks run where they are, and no standby is there."""
    made: dict[str, Account | None] = {}
    for member in members:  # announcements too
        name = member.client_id.partition("|")[0]
        made[name] = Account(running([each for each in members if each.client_id.startswith(f"{name}|")]))
    return made


@pytest.mark.parametrize(
    ("client_id", "threads"),
    [
        ("app-1|host:1|+2", 2),
        ("app-1|host:1|2", 0),
        ("app-1|host:1|+", 0),
        ("app-1|host:1|+x", 0),
        ("app-1|host:1|+99999999999999999999", 1000),
        ("app-1|host:1|+٣", 0),
        ("+2", 2),
        ("", 0),
    ],
)
def test_a_client_id_says_how_many_threads_an_instance_comes_with_and_nonsense_announces_nothing(
    client_id: str, threads: int
) -> None:
    assert announced_threads(GroupMember("m", None, client_id, "/h", ())) == threads


def test_an_instance_is_announced_until_all_of_its_threads_are_members() -> None:
    members = [*group(["a"], 4), announce("b", 2)]
    assert announced(members) == {"b"}
    assert [each.instance_id for each in when_joined(members)] == ["a-1", "b-1", "b-2"]
    members.append(GroupMember("id", "b-1", "b|host:1|1", "/h", ()))
    assert announced(members) == {"b"}
    assert [each.instance_id for each in when_joined(members)] == ["a-1", "b-1", "b-2"]
    members.append(GroupMember("id", "b-2", "b|host:1|2", "/h", ()))
    assert announced(members) == frozenset()
    assert [each.instance_id for each in taking_part(members)] == ["a-1", "b-1", "b-2"]


NAMES = st.lists(st.sampled_from([f"app-{n}" for n in range(12)]), min_size=2, max_size=6, unique=True)


@settings(max_examples=examples(100))
@given(NAMES, st.data(), st.integers(1, 13), st.integers(1, 3))
def test_moves_are_what_the_groups_range_assignor_then_does(
    instances: list[str], data: st.DataObject, count: int, threads: int
) -> None:
    there = instances[: data.draw(st.integers(1, len(instances) - 1))]
    before = group(there, count, threads)
    after = owners_of(group(instances, count, threads), tasks(count))
    announced_too = [*before, *(announce(each, threads) for each in instances if each not in there)]
    had = owners_of(before, tasks(count))
    found = moves(announced_too, tasks(count))
    assert found == [Move(task, had[task], after[task]) for task in tasks(count) if had[task] != after[task]]
    for instance in instances:
        expected = {task for task, owner in after.items() if owner == instance}
        assert expected_by(instance, announced_too, tasks(count)) == expected
    assert moves(before, tasks(count)) == []


def test_an_instance_that_gets_nothing_stateful_or_is_a_member_still_waits_for_nothing() -> None:
    members = [*group(["app-0", "app-1"], 2), announce("app-2")]
    assert outlook("app-2", members, tasks(2), accounts_of(members)).warming == {}
    assert outlook("app-2", members, {}, {}).warming == {}
    back = [*group(["app-0", "app-1"], 4), announce("app-1")]
    assert outlook("app-1", back, tasks(4), accounts_of(back)).warming == {}


def test_tasks_that_nobody_processes_are_not_waited_for() -> None:
    """The owner restores them itself, or is gone; alone in its group an instance has nobody to wait for."""
    members = [*group(["app-0"], 4), announce("app-1")]
    for owner in (Account(), None):
        assert outlook("app-1", members, tasks(4), {"app-0": owner, "app-1": Account()}).warming == {}
    half = Account(frozenset({TaskId(1, 3)}))
    assert [str(move) for move in outlook("app-1", members, tasks(4), {"app-0": half, "app-1": Account()}).warming] == [
        "1_3 from app-0 to app-1"
    ]
    assert outlook("app-1", [announce("app-1")], tasks(4), {"app-1": Account()}).warming == {}
    cold = [announce("app-0"), announce("app-1")]
    assert outlook("app-1", cold, tasks(4), {"app-0": Account(), "app-1": Account()}).warming == {}


def test_an_owner_whose_address_nobody_knows_counts_as_running() -> None:
    members = [*group(["app-0"], 2), announce("app-1")]
    assert len(outlook("app-1", members, tasks(2), {"app-1": Account()}).warming) == 1


def test_other_heirs_are_waited_for_unless_they_do_not_answer_or_do_not_follow() -> None:
    members = [*group(["app-0", "app-1"], 6), announce("app-2")]
    told = {**accounts_of(members), "app-2": Account(lags={TaskId(1, 4): 0, TaskId(1, 5): 0})}
    found = outlook("app-2", members, tasks(6), told)
    assert {str(move): lag for move, lag in found.warming.items()} == {
        "1_2 from app-0 to app-1": None,
        "1_4 from app-1 to app-2": 0,
        "1_5 from app-1 to app-2": 0,
    }
    assert not found.is_complete(ACCEPTABLE)
    account = told["app-1"]
    assert account is not None
    for other in (replace(account, follows=False), replace(account, lags={TaskId(1, 2): ACCEPTABLE})):
        assert outlook("app-2", members, tasks(6), {**told, "app-1": other}).is_complete(ACCEPTABLE)
    late = replace(account, lags={TaskId(1, 2): ACCEPTABLE + 1})
    assert not outlook("app-2", members, tasks(6), {**told, "app-1": late}).is_complete(ACCEPTABLE)
    assert outlook("app-2", members, tasks(6), {**told, "app-1": None}).is_complete(ACCEPTABLE)


def test_instances_that_are_announced_together_join_together() -> None:
    """Else the first would get what the other one has warmed up."""
    members = [*group(["app-0"], 3), announce("app-1"), announce("app-2")]
    warm = Account(lags={TaskId(1, 1): 0, TaskId(1, 2): 0})
    told = {**accounts_of(members), "app-1": warm, "app-2": replace(warm, ready=False)}
    found = outlook("app-1", members, tasks(3), told)
    assert (found.unready, found.is_complete(ACCEPTABLE)) == ({"app-2"}, False)
    assert outlook("app-1", members, tasks(3), {**told, "app-2": warm}).is_complete(ACCEPTABLE)
    killed = outlook("app-1", members, tasks(3), {**told, "app-2": None})
    assert (killed.unready, killed.is_complete(ACCEPTABLE)) == ({"app-2"}, False), "its session ends before patience"
    del told["app-2"]
    assert outlook("app-1", members, tasks(3), told).is_complete(ACCEPTABLE), "nobody knows where to ask it"


def test_what_an_instance_says_is_read_and_an_earlier_version_follows_nothing() -> None:
    figures = {
        "tasks": [{"id": "1_0", "state": "RUNNING"}, {"id": "1_1", "state": "RESTORING"}],
        "standbys": [{"id": "1_2", "lag": 7, "age": 1.5}, {"id": "1_3", "lag": None}],
        "warm_up": {"ready": False, "remaining": 7},
        "snapshot_bytes": 5,
    }
    lags, ages = {TaskId(1, 2): 7, TaskId(1, 3): None}, {TaskId(1, 2): 1.5, TaskId(1, 3): None}
    assert account_of(figures) == Account(frozenset({TaskId(1, 0)}), lags, ages, ready=False, received=5)
    assert account_of({**figures, "warm_up": None}) == Account(frozenset({TaskId(1, 0)}), lags, ages, received=5)
    earlier = {"tasks": figures["tasks"], "standbys": [{"lag": 7}]}
    assert account_of(earlier) == Account(frozenset({TaskId(1, 0)}), {}, follows=False)
    for nonsense in ({}, {"tasks": 1, "standbys": 2}, {**figures, "tasks": [{"id": "x", "state": "RUNNING"}]}):
        assert account_of(nonsense) is None


MOVE, OTHER = Move(TaskId(1, 0), "a", "b"), Move(TaskId(1, 1), "a", "b")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def seen(**lags: int | None) -> Outlook:
    return Outlook({{"m": MOVE, "o": OTHER}[name]: lag for name, lag in lags.items()}, frozenset(), frozenset("ab"))


def test_a_warm_up_that_comes_nearer_is_waited_for_and_one_that_does_not_only_for_a_while() -> None:
    clock = Clock()
    patience, left = Patience(clock, 1e9), 1_000_000
    for _ in range(50):
        assert not patience.is_over(seen(m=left), ACCEPTABLE)
        clock.now += PATIENCE_SECONDS - 1
        left -= PROGRESS_RECORDS
    clock.now += 1
    assert not patience.is_over(seen(m=left), ACCEPTABLE), "it came nearer just in time"
    clock.now += PATIENCE_SECONDS
    assert patience.is_over(seen(m=left - PROGRESS_RECORDS + 1), ACCEPTABLE)


def test_what_becomes_known_is_progress_and_another_group_has_its_own_time() -> None:
    clock = Clock()
    patience = Patience(clock, 1e9)
    assert not patience.is_over(seen(m=None, o=20_000), ACCEPTABLE)
    clock.now += PATIENCE_SECONDS
    assert not patience.is_over(seen(m=5_000_000, o=20_000), ACCEPTABLE)
    clock.now += PATIENCE_SECONDS
    larger = replace(seen(m=9_000_000), instances=frozenset("abc"))
    assert not patience.is_over(larger, ACCEPTABLE)
    clock.now += PATIENCE_SECONDS
    assert patience.is_over(larger, ACCEPTABLE)
    assert patience.is_over(seen(m=9_000_000), ACCEPTABLE), "it was met, so it has no time of its own again"


def test_tasks_that_are_followed_closely_move_after_a_while_however_much_their_owner_writes() -> None:
    clock = Clock()
    patience, left = Patience(clock, 1e9), 1_000_000
    close = replace(seen(m=left, o=0), close=frozenset({MOVE}))
    assert close.is_followed_closely(ACCEPTABLE)
    assert not replace(close, unready=frozenset("c")).is_followed_closely(ACCEPTABLE)
    for _ in range(3):
        assert not patience.has_followed(close, ACCEPTABLE)
        clock.now += FOLLOWED_SECONDS - 1
        for other in (seen(m=left), seen(m=None, o=0), replace(close, unready=frozenset("c"))):
            assert not patience.has_followed(other, ACCEPTABLE), "it begins anew"
    assert not patience.has_followed(close, ACCEPTABLE)
    clock.now += FOLLOWED_SECONDS
    assert patience.has_followed(close, ACCEPTABLE)
    patience.begin_anew()
    assert not patience.has_followed(close, ACCEPTABLE)


def test_a_task_is_followed_closely_when_its_heir_has_all_but_what_was_written_in_the_last_seconds() -> None:
    members = [*group(["app-0"], 4), announce("app-1")]
    lags = {TaskId(1, 2): 50_000, TaskId(1, 3): 50_000}
    for age, closely in ((CLOSE_SECONDS, True), (CLOSE_SECONDS + 0.1, False), (None, False)):
        heir = Account(lags=lags, ages={TaskId(1, 2): 0.0, TaskId(1, 3): age})
        found = outlook("app-1", members, tasks(4), {**accounts_of(members), "app-1": heir})
        assert found.is_followed_closely(ACCEPTABLE) is closely
        assert not found.is_complete(ACCEPTABLE)


def test_a_snapshot_that_comes_is_progress_while_a_lag_is_not_known() -> None:
    clock = Clock()
    patience = Patience(clock, 1e9)
    for received in range(1, 10):
        assert not patience.is_over(replace(seen(m=None), received=received), ACCEPTABLE)
        clock.now += PATIENCE_SECONDS - 1
    clock.now += 1
    assert patience.is_over(replace(seen(m=None), received=9), ACCEPTABLE), "nothing came"
    known = Patience(clock, 1e9)
    assert not known.is_over(replace(seen(m=20_000), received=10), ACCEPTABLE)
    clock.now += PATIENCE_SECONDS
    assert known.is_over(replace(seen(m=20_000), received=11), ACCEPTABLE), "it came for another store"


def test_a_warm_up_has_its_time_however_much_it_comes_nearer_and_though_brokers_were_away() -> None:
    clock = Clock()
    patience = Patience(clock, 100.0)
    assert not patience.is_over(seen(m=1_000_000), ACCEPTABLE)
    clock.now = 99.0
    patience.begin_anew()
    assert not patience.is_over(seen(m=1_000_000), ACCEPTABLE), "what brokers that are away keep from it is not its own"
    assert not patience.has_run_out
    clock.now = 100.0
    assert not patience.is_over(seen(m=500_000), ACCEPTABLE)
    assert patience.has_run_out


def test_an_instance_that_does_not_answer_is_believed_for_a_while() -> None:
    clock = Clock()
    belief, said = Belief(clock), Account(frozenset({TaskId(1, 0)}))
    unheard = belief.after({"a": said, "b": None})
    assert unheard["a"] == said
    assert unheard["b"] == Account(ready=False, follows=False, assumed=True)
    clock.now += SILENCE_SECONDS - 1
    assert belief.after({"a": None, "b": None}) == unheard
    clock.now += 1
    assert belief.after({"a": None, "b": None}) == {"a": None, "b": None}
    assert belief.after({"a": said, "b": said}) == {"a": said, "b": said}
    assert belief.after({"a": None}) == {"a": said}


def test_an_owner_that_has_not_answered_yet_counts_as_running_and_such_an_heir_is_not_waited_for() -> None:
    members = [*group(["app-0", "app-1"], 6), announce("app-2")]
    assumed = Account(ready=False, follows=False, assumed=True)
    told = {**accounts_of(members), "app-1": assumed}
    found = outlook("app-2", members, tasks(6), told)
    assert [str(each) for each in found.warming] == ["1_4 from app-1 to app-2", "1_5 from app-1 to app-2"]
    assert (found.tasks_of("app-2"), found.tasks_of("app-1")) == ({TaskId(1, 4), TaskId(1, 5)}, frozenset())


def test_bytes_of_snapshots_count_where_tasks_warm_up() -> None:
    members = [*group(["app-0"], 4), announce("app-1")]
    told = {"app-0": replace(accounts_of(members)["app-0"] or Account(), received=1), "app-1": Account(received=20)}
    assert outlook("app-1", members, tasks(4), told).received == 20


@dataclass
class Simulation:
    """Announced instances of a group; standbys read some records a second, and owners write some."""

    members: list[GroupMember]
    count: int
    random: Random
    clock: Clock = field(default_factory=Clock)
    lags: dict[Move, int | None] = field(default_factory=dict)
    stuck: frozenset[Move] = frozenset()

    def accounts(self) -> dict[str, Account | None]:
        made = accounts_of(self.members)
        for move, lag in self.lags.items():
            account = made[move.heir]
            assert account is not None
            made[move.heir] = replace(account, lags={**account.lags, move.task: lag})
        return made

    def second(self, rates: Mapping[Move, int]) -> None:
        self.clock.now += 1
        for move, lag in self.lags.items():
            if move not in self.stuck and self.random.random() < 0.9:
                self.lags[move] = self.random.randrange(200_000) if lag is None else max(0, lag - rates[move])


@settings(max_examples=examples(60), deadline=None)
@given(NAMES, st.data(), st.integers(1, 9), st.integers(1, 2), st.integers(0, 20_000), st.randoms())
def test_an_announced_instance_joins_in_the_end_and_before_its_tasks_are_warm_only_when_nothing_moves(
    instances: list[str], data: st.DataObject, count: int, threads: int, acceptable: int, random: Random
) -> None:
    there = instances[: data.draw(st.integers(1, len(instances) - 1))]
    coming = [each for each in instances if each not in there]
    members = [*group(there, count, threads), *(announce(each, threads) for each in coming)]
    simulation = Simulation(members, count, random)
    found = moves(members, tasks(count))
    simulation.lags = dict.fromkeys(found)
    simulation.stuck = frozenset(each for each in found if random.random() < 0.1)
    rates = {each: random.choice([-10, 0, 500, 50_000]) for each in found}
    patience, own = Patience(simulation.clock, 1e9), coming[0]
    for _ in range(100_000):
        look = outlook(own, members, tasks(count), simulation.accounts())
        over = patience.is_over(look, acceptable)
        if over or look.is_complete(acceptable):
            break
        simulation.second(rates)
    else:
        raise AssertionError("it never joins")
    late = {move for move, lag in simulation.lags.items() if lag is None or lag > acceptable}
    assert over or not late
    slow = {each for each in found if each in simulation.stuck or rates[each] < PROGRESS_RECORDS / PATIENCE_SECONDS}
    assert not over or late & slow
