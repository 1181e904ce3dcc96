"""What `/state` says of tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streams_runtime.kafka.types import TopicPartition
from streams_runtime.tasks.standby import StandbyTask
from streams_runtime.tasks.task import Task


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


def standby_row(task: StandbyTask, following: Mapping[TopicPartition, Mapping[str, Any]]) -> dict[str, Any]:
    """A standby: offsets of its changelogs, and how far it is behind them; None while that is not known.

    `following` is StandbyProgress.snapshot.
    """
    stores = [following[each] for each in sorted(task.changelogs) if each in following]
    return {
        "id": str(task.id),
        "type": "standby",
        "state": str(task.state),
        "stores": [dict(store) for store in stores],
        "lag": sum(store["lag"] for store in stores) if len(stores) == len(task.stores) else None,
    }
