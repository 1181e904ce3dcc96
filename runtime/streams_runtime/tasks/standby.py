"""A standby task: the stores of a task that is active on another instance, kept up to date here."""

from __future__ import annotations

from streams_runtime.restore.restorer import StateRestorer
from streams_runtime.state.state_directory import StateDirectory
from streams_runtime.tasks.task import Task
from streams_runtime.topology.plan import SubTopology, TaskId


class StandbyTask(Task):
    """Has stores and no inputs. It lies in the folder that the task would have here, and so becomes it."""

    def __init__(self, id: TaskId, sub: SubTopology) -> None:
        super().__init__(id, sub, frozenset())

    def open(self, directory: StateDirectory) -> list[StateRestorer]:
        """Open the stores; it is RUNNING at once, since it is never complete.

        Raises:
            ProcessorStateException: a store can't be opened; none is left open.
        """
        restorers = super().open(directory)
        self.run()
        return restorers
