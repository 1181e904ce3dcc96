"""The replicas of a run together: started in order, restarted after crashes, stopped from the last to the first."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from streams_runtime.cli.local.leftovers import sweep
from streams_runtime.cli.local.outcome import End
from streams_runtime.cli.local.progress.overview import ReplicaSnapshot
from streams_runtime.cli.local.progress.run_events import Report, RunEvent
from streams_runtime.cli.local.replica import Replica
from streams_runtime.cli.process.shutdown_request import encode_request

# Seconds. An instance gives itself sixty to close.
STOP_GRACE = 75.0
_SWEEP_GRACE = 10.0


class Supervisor:
    """Call `tick` often, from one thread; whatever happens, call `end` last: then no process is left."""

    def __init__(
        self,
        replicas: Sequence[Replica],
        report: Report = lambda _event: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Does not start anything."""
        self._replicas = tuple(replicas)
        self._report = report
        self._clock = clock
        self._passed_on = False

    @property
    def ends(self) -> tuple[End, ...]:
        """How the replicas that will not run again have ended."""
        return tuple(each.end for each in self._replicas if each.end is not None)

    @property
    def ended(self) -> bool:
        """Whether every replica has ended for good."""
        return len(self.ends) == len(self._replicas)

    @property
    def failed(self) -> tuple[str, ...]:
        """The replicas that did not end in order."""
        return tuple(each.name for each in self._replicas if each.end not in (None, End.NOT_RUNNING))

    def start(self) -> None:
        """Start every replica.

        Raises:
            EnvironmentException: a folder can't be used, or the machine starts no process.
        """
        for each in self._replicas:
            each.start(self._clock())

    def tick(self) -> None:
        """Take note of ends, and restart what is due. Raises what `start` raises."""
        now = self._clock()
        for each in self._replicas:
            each.tick(now)
        self._pass_on()

    def _pass_on(self) -> None:
        """Once a replica has ended by an exception that requests the shutdown of all, pass that on to the others."""
        requesting = next((each for each in self._replicas if each.shutdown_request is not None), None)
        if requesting is None or requesting.shutdown_request is None:
            return
        if not self._passed_on:
            self._passed_on = True
            text = f"{requesting.name} asks for the shutdown of the whole application; the other instances are told"
            self._report(RunEvent("shutdown-application", text, {"instance": requesting.name}, problem=True))
        for each in self._replicas:
            each.pass_shutdown_request(
                encode_request(requesting.name, requesting.shutdown_request.kind, requesting.shutdown_request.message)
            )

    def stop(self) -> None:
        """Stop every replica, the highest ordinal first; returns at once. May be called twice."""
        for each in reversed(self._replicas):
            each.stop(STOP_GRACE)

    def kill(self) -> None:
        """SIGKILL to every replica. May be called twice."""
        for each in reversed(self._replicas):
            each.kill()

    def end(self) -> None:
        """Make sure that nothing runs any more, the instances' Spark included. May be called twice."""
        self.kill()
        sweep([pid for each in self._replicas for pid in each.pids], _SWEEP_GRACE)

    def snapshots(self) -> tuple[ReplicaSnapshot, ...]:
        """Every replica now."""
        return tuple(each.snapshot() for each in self._replicas)
