"""Who keeps which standby: worked out alike by all, never by the owner, and where the group would put the task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from streams_runtime.kafka.types import GroupMember, TopicPartition
from streams_runtime.tasks.standby_placement import owners_of, place_standbys, stateful_tasks
from streams_runtime.topology.plan import SubTopology, TaskId, Topology
from streams_runtime.topology.store_specs import StoreSpec

STORE = StoreSpec("totals", "key-value", "app-totals-changelog", False, "totals")
TOPOLOGY = Topology(
    "app",
    (
        SubTopology(0, (), ("orders",), (), (), ()),
        SubTopology(1, (), ("by-user", "users"), (), (), (STORE,)),
    ),
)


def tasks(count: int) -> dict[TaskId, frozenset[TopicPartition]]:
    return stateful_tasks(TOPOLOGY, {"orders": count, "by-user": count, "users": count})


def group(instances: Sequence[str], count: int, threads: int = 1) -> list[GroupMember]:
    """The members of a group at rest, as a range assignor leaves it; in no order."""
    members = sorted(f"{instance}-{number}" for instance in instances for number in range(1, threads + 1))
    quota, extra = divmod(count, len(members))
    made, start = [], 0
    for number, name in enumerate(members):
        end = start + quota + (number < extra)
        has = [TopicPartition(topic, each) for topic in ("by-user", "users") for each in range(start, end)]
        made.append(GroupMember(f"id-{name}", name, f"{name.rpartition('-')[0]}|host:1|1", "/h", tuple(has)))
        start = end
    return made[::-1]


def test_only_tasks_with_stores_have_standbys_and_none_before_all_topics_are_known() -> None:
    assert [str(task) for task in tasks(2)] == ["1_0", "1_1"]
    assert tasks(2)[TaskId(1, 1)] == {TopicPartition("by-user", 1), TopicPartition("users", 1)}
    assert stateful_tasks(TOPOLOGY, {"orders": 2, "by-user": 2}) == {}


@pytest.mark.parametrize(("replicas", "kept"), [(0, 0), (1, 1), (2, 2), (5, 2)])
def test_there_are_as_many_replicas_as_asked_for_and_as_other_instances_can_keep(replicas: int, kept: int) -> None:
    placed = place_standbys(group(["a", "b", "c"], 6), tasks(6), replicas)
    assert {len(instances) for instances in placed.values()} == {kept}


def test_an_instance_alone_keeps_no_standby_of_its_own_tasks() -> None:
    assert set(place_standbys(group(["a"], 3, threads=2), tasks(3), 1).values()) == {()}
    assert set(place_standbys([], tasks(3), 1).values()) == {()}


NAMES = st.lists(st.sampled_from([f"app-{n}" for n in range(12)]), min_size=1, max_size=6, unique=True)


@settings(max_examples=examples(50))
@given(NAMES, st.integers(1, 13), st.integers(1, 3), st.integers(1, 2), st.randoms(use_true_random=False))
def test_whoever_leaves_its_tasks_fall_to_instances_that_have_kept_them_warm(
    instances: list[str], count: int, threads: int, replicas: int, random: object
) -> None:
    members = group(instances, count, threads)
    placed = place_standbys(members, tasks(count), replicas)
    owners = owners_of(members, tasks(count))
    for task, kept in placed.items():
        assert owners[task] not in kept
        assert len(kept) == len(set(kept)) == min(replicas, len(instances) - 1)
    random.shuffle(members)  # type: ignore[attr-defined]
    assert place_standbys(members, tasks(count), replicas) == placed
    for gone in instances if len(instances) > 1 else ():
        after = owners_of(group([each for each in instances if each != gone], count, threads), tasks(count))
        assert all(after[task] in placed[task] for task, owner in owners.items() if owner == gone)


def test_further_replicas_are_spread() -> None:
    placed = place_standbys(group(list("abcde"), 40), tasks(40), 3)
    held = Counter(instance for instances in placed.values() for instance in instances)
    assert all(abs(number - 40 * 3 / 5) <= 1 for number in held.values()), held


def test_a_task_that_is_on_its_way_belongs_to_whom_has_or_gets_its_inputs() -> None:
    members = group(["a", "b"], 2)
    half = [replace(each, assignment=each.assignment[:1]) for each in members]
    nothing = [replace(each, assignment=()) for each in members]
    for seen in (members, half, nothing):
        assert owners_of(seen, tasks(2)) == {TaskId(1, 0): "a", TaskId(1, 1): "b"}
        assert place_standbys(seen, tasks(2), 1) == {TaskId(1, 0): ("b",), TaskId(1, 1): ("a",)}
