"""When a thread has Spark started: beside what leaves the cores idle, and after a load that needs them."""

from __future__ import annotations

import time

from streams_runtime.client_context import ClientContext
from streams_runtime.restore.state_updater import StateUpdater

_PATIENCE = 2.0  # seconds without an assignment after which Spark starts, though a bulk load may be to come


class SparkStart:
    """Starts Spark beside a short restoration, but after a bulk load, which needs all cores for a few seconds.

    Before the assignment, where no such load is to be expected: no store, or some that are here from before. And when
    it does not come, since an earlier member's session has to end first; joining again does not begin that wait anew.
    Where an earlier start has left what queries and first batches need, Spark starts once the thread is RUNNING, which
    its JVM would only put off, or when that takes long.
    """

    def __init__(self, context: ClientContext, updater: StateUpdater) -> None:
        self._context = context
        self._updater = updater
        self._waits_since = time.monotonic()

    def begin(self) -> None:
        """The thread waits for the group from now on."""
        self._waits_since = time.monotonic()

    def start_if_due(self, assigned: bool, running: bool) -> None:
        """Start it if it is time to; `assigned`: the group has named its tasks; `running`: they run."""
        if running or self._is_due(assigned):
            self._context.engine.start()

    def _is_due(self, assigned: bool) -> bool:
        is_late = time.monotonic() - self._waits_since > _PATIENCE
        if assigned and self._updater.loading:
            return False
        if is_late or self._context.engine.formats is not None:
            return is_late
        return assigned or not self._may_load_in_bulk

    @property
    def _may_load_in_bulk(self) -> bool:
        has_stores = any(sub.stores for sub in self._context.topology.subtopologies)
        return has_stores and self._context.directory.tasks.empty
