"""What `/state` says of tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from streams_runtime.kafka.types import TopicPartition
from streams_runtime.tasks.standby import StandbyTask
from streams_runtime.tasks.task import Task
from streams_runtime.topology.plan import TaskId


def active_row(task: Task, thread: str) -> dict[str, Any]:
    """A task that is assigned to this instance."""
    return {
        "id": str(task.id),
        "type": "active",
        "state": str(task.state),
        "thread": thread,
        "partitions": sorted(str(each) for each in task.inputs),
        "stores": sorted(task.stores),
    }


def standby_row(
    task: StandbyTask, following: Mapping[TopicPartition, Mapping[str, Any]], ages: Mapping[TopicPartition, float]
) -> dict[str, Any]:
    """A standby: offsets of its changelogs, and how far it is behind them; None while that is not known.

    `following` is StandbyProgress.snapshot, `ages` StandbyProgress.ages.
    """
    stores = _followed(task, following)
    return {
        "id": str(task.id),
        "type": "standby",
        "state": str(task.state),
        "stores": [dict(store) for store in stores],
        "lag": _lag(task, stores),
        "age": _age(task, ages),
    }


def standby_lags(
    tasks: Iterable[StandbyTask], following: Mapping[TopicPartition, Mapping[str, Any]]
) -> dict[TaskId, int | None]:
    """How far each standby is behind, in records of all of its changelogs; None while that is not known."""
    return {task.id: _lag(task, _followed(task, following)) for task in tasks}


def standby_ages(tasks: Iterable[StandbyTask], ages: Mapping[TopicPartition, float]) -> dict[TaskId, float | None]:
    """For how many seconds each standby has been behind at most; None before it has come to all ends."""
    return {task.id: _age(task, ages) for task in tasks}


def _age(task: StandbyTask, ages: Mapping[TopicPartition, float]) -> float | None:
    found = [ages.get(each) for each in task.changelogs]
    known = [each for each in found if each is not None]
    return max(known, default=0.0) if len(known) == len(task.stores) else None


def _followed(task: StandbyTask, following: Mapping[TopicPartition, Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [following[each] for each in sorted(task.changelogs) if each in following]


def _lag(task: StandbyTask, stores: list[Mapping[str, Any]]) -> int | None:
    return sum(store["lag"] for store in stores) if len(stores) == len(task.stores) else None
