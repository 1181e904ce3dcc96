"""What experiments share: the parts of one run, its instances, the checks that follow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from bench_declared import Case, Contestant
from bench_kafka import Cluster, CommitWatch
from bench_memory import PeakMemory
from bench_plan import Turn
from bench_runs import Place
from bench_side import Client, Launch, Side


@dataclass(frozen=True, slots=True)
class Outcome:
    """The figures of one verified run."""

    figures: Mapping[str, float]
    details: Mapping[str, object] = field(default_factory=dict)


class Experiment(Protocol):
    """One case of a workload. `prepare` is called once, then `run` for each turn."""

    def prepare(self) -> None:
        """Write what all contestants read."""

    def run(self, turn: Turn) -> Outcome:
        """One verified run. Raises WrongResultError, ChildFailedError or TimeoutError: the run does not count."""


@dataclass(frozen=True, slots=True)
class Ground:
    """Where an experiment takes place: everything that its cases and turns do not change."""

    cluster: Cluster
    case: Case
    prefix: str
    """Begins the names of its topics and applications."""
    folder: Path
    seed: int
    contestants: Mapping[str, Contestant]
    sides: Callable[[str], Side]
    """A side by the name of a contestant."""

    def name(self, turn: Turn) -> str:
        """The application of a turn."""
        return f"{self.prefix}-{turn.contestant}-{turn.round}"

    def output(self, turn: Turn) -> str:
        """The output topic of a turn, made."""
        topic = f"{self.name(turn)}-out"
        self.cluster.create(topic, self.case.partitions)
        return topic

    def launch(self, turn: Turn, topics: Mapping[str, str], **how: bool) -> Launch:
        """What the first instance of a turn is told."""
        place = Place(self.folder / self.name(turn), self.cluster.bootstrap_servers)
        return Launch(self.contestants[turn.contestant], self.case.task, self.name(turn), topics, place, **how)

    def require_committed(self, side: Side, launch: Launch) -> None:
        """Raise TimeoutError unless all input is committed; sides whose progress is not in a group are not asked."""
        if side.commits:
            watch = CommitWatch(self.cluster, launch.application_id, launch.topics["orders"])
            watch.wait(lambda: None, limit_s=10)


@contextmanager
def started(side: Side, launches: Sequence[Launch]) -> Iterator[tuple[list[Client], PeakMemory]]:
    """All instances, whose memory is watched; whatever still runs at the end is killed."""
    with ExitStack() as stack:
        clients = []
        for launch in launches:
            client = side.start(launch)
            stack.enter_context(client.child)
            clients.append(client)
        memory = stack.enter_context(PeakMemory([client.child.pid for client in clients]))
        yield clients, memory


def memory_figures(memory: PeakMemory, partitions: int) -> dict[str, float]:
    """The largest instance, and what all of them take for each partition."""
    return {
        "peak_rss_mib": max(memory.peaks_mib),
        "peak_pss_mib": max(memory.proportional_mib),
        "peak_rss_mib_per_partition": sum(memory.peaks_mib) / partitions,
    }
