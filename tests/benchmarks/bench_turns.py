"""Run after run of a case: each is measured, verified and put down, or named as one that does not count."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from bench_backlog import Backlog
from bench_declared import Case, Contestant, SideName, Workload
from bench_experiment import Experiment, Ground
from bench_figures import Failed, Result
from bench_kafka import Cluster
from bench_latency import Latency
from bench_machine import Processors
from bench_nexmark import Nexmark
from bench_plan import Turn, turns
from bench_process import ChildFailedError
from bench_queries import Queries
from bench_restart import Restart
from bench_restore import Restore
from bench_side import Side
from bench_sides import SIDES
from bench_soak import Soak
from bench_verify import WrongResultError
from confluent_kafka import KafkaException

from streams_runtime.errors import EnvironmentException


def experiment_of(workload: Workload, ground: Ground, taking_part: tuple[str, ...]) -> Experiment:
    """What is done in a workload, on the ground of one of its cases."""
    if workload.experiment == "restore":
        return Restore(ground, taking_part)
    return EXPERIMENTS[workload.experiment](ground)


EXPERIMENTS: Mapping[str, Callable[[Ground], Experiment]] = {
    "backlog": Backlog,
    "restart": Restart,
    "latency": Latency,
    "queries": Queries,
    "soak": Soak,
    "nexmark": Nexmark,
}


@cache
def side_of(name: SideName) -> Side:
    """A side, made ready once. Raises EnvironmentException."""
    return SIDES[name]()


@dataclass(slots=True)
class Measured:
    """What all turns so far have given."""

    results: list[Result] = field(default_factory=list)
    failures: list[Failed] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Turns:
    """The turns of the cases on one broker."""

    cluster: Cluster
    contestants: Mapping[str, Contestant]
    folder: Path
    prefix: str
    seed: int
    say: Callable[[str], None]

    def measure(self, workload: Workload, case: Case, rounds: int, only: Sequence[str], into: Measured) -> None:
        """All turns of a case. Who has failed once in a case is not asked again in it."""
        planned = list(turns(workload, case, rounds, only))
        if not planned:
            return
        ground = Ground(self.cluster, case, self.prefix, self.folder, self.seed, self.contestants, self._side)
        experiment = experiment_of(workload, ground, tuple(dict.fromkeys(turn.contestant for turn in planned)))
        self.say(f"{workload.name}, {case.name}: writing {case.records:,} records of {case.keys:,} keys")
        experiment.prepare()
        failed: set[str] = set()
        for turn in planned:
            if turn.contestant not in failed:
                self.say(f"{workload.name}, {case.name}, round {turn.round}: {turn.contestant}")
                if not self._turn(workload, experiment, turn, into):
                    failed.add(turn.contestant)

    def _turn(self, workload: Workload, experiment: Experiment, turn: Turn, into: Measured) -> bool:
        try:
            with Processors() as spent:
                outcome = experiment.run(turn)
        except (WrongResultError, ChildFailedError, TimeoutError, EnvironmentException, KafkaException) as error:
            reason = str(error)
            wrong = isinstance(error, WrongResultError)
            into.failures.append(Failed(workload.name, turn.case.name, turn.contestant, turn.round, reason, wrong))
            self.say(f"does not count: {reason}")
            return False
        finally:
            # Stores of a gigabyte each would fill the disk; logs stay until the end.
            for state in self.folder.glob("*/instance-*/state"):
                shutil.rmtree(state, ignore_errors=True)
        into.results.append(
            Result(
                workload.name,
                turn.case.name,
                turn.contestant,
                turn.round,
                outcome.figures,
                outcome.details,
                spent.usage,
            )
        )
        return True

    def _side(self, contestant: str) -> Side:
        return side_of(self.contestants[contestant].side)
