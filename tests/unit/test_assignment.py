"""From partitions to tasks: a task is there once all of its inputs are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from streams_runtime.kafka.types import TopicPartition
from streams_runtime.tasks.assignment import complete_tasks, inputs_of_task
from streams_runtime.topology.plan import SubTopology, TaskId, Topology


def sub(number: int, *topics: str) -> SubTopology:
    return SubTopology(number, (), topics, (), (), ())


def partitions(*names: str) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition.parse(name) for name in names)


TOPOLOGY = Topology("app", (sub(0, "orders", "refunds"), sub(1, "by-user"), sub(2, "users")))
COUNTS = {"orders": 2, "refunds": 2, "by-user": 3, "users": 1}
EVERYTHING = frozenset(TopicPartition(topic, number) for topic, count in COUNTS.items() for number in range(count))


def test_nothing_assigned_is_no_task() -> None:
    assert complete_tasks(TOPOLOGY, frozenset(), COUNTS) == {}


def test_everything_assigned_is_every_task_with_its_inputs() -> None:
    assert complete_tasks(TOPOLOGY, EVERYTHING, COUNTS) == {
        TaskId(0, 0): partitions("orders-0", "refunds-0"),
        TaskId(0, 1): partitions("orders-1", "refunds-1"),
        TaskId(1, 0): partitions("by-user-0"),
        TaskId(1, 1): partitions("by-user-1"),
        TaskId(1, 2): partitions("by-user-2"),
        TaskId(2, 0): partitions("users-0"),
    }


def test_a_task_waits_for_the_last_of_its_inputs() -> None:
    """An assignment may arrive topic by topic."""
    assert complete_tasks(TOPOLOGY, partitions("orders-0", "orders-1", "refunds-1"), COUNTS) == {
        TaskId(0, 1): partitions("orders-1", "refunds-1")
    }


def test_topics_with_fewer_partitions_are_left_out_of_the_tasks_beyond_them() -> None:
    """A topic may have fewer while its partitions are being added."""
    counts = COUNTS | {"refunds": 1}
    assert inputs_of_task(TOPOLOGY.subtopologies[0], 0, counts) == partitions("orders-0", "refunds-0")
    assert inputs_of_task(TOPOLOGY.subtopologies[0], 1, counts) == partitions("orders-1")
    assert complete_tasks(TOPOLOGY, partitions("orders-0", "orders-1"), counts) == {
        TaskId(0, 1): partitions("orders-1")
    }


def test_partitions_of_topics_that_nobody_reads_make_no_task() -> None:
    assert complete_tasks(TOPOLOGY, partitions("elsewhere-0", "users-0"), COUNTS) == {
        TaskId(2, 0): partitions("users-0")
    }


@given(st.sets(st.sampled_from(sorted(EVERYTHING))))
def test_a_task_is_there_exactly_when_all_of_its_inputs_are(assigned: set[TopicPartition]) -> None:
    every = complete_tasks(TOPOLOGY, EVERYTHING, COUNTS)
    found = complete_tasks(TOPOLOGY, assigned, COUNTS)
    inputs = [each for task in found.values() for each in task]
    assert len(inputs) == len(set(inputs))
    assert found == {task: inputs for task, inputs in every.items() if inputs <= assigned}


@given(st.permutations(sorted(EVERYTHING)), st.integers(1, len(EVERYTHING)))
def test_the_order_in_which_partitions_arrive_makes_no_difference(order: list[TopicPartition], upto: int) -> None:
    tasks: dict[TaskId, frozenset[TopicPartition]] = {}
    for count in range(upto + 1):
        now = complete_tasks(TOPOLOGY, order[:count], COUNTS)
        assert tasks.items() <= now.items()  # none goes away while partitions are added
        tasks = now
    assert tasks == complete_tasks(TOPOLOGY, sorted(order[:upto]), COUNTS)
