"""The benchmark itself: fill the topics, let each side do the work, refuse figures of wrong results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench_data import Totals, changelog_messages, expected_totals, make_orders, order_messages
from bench_kafka import Cluster
from bench_machine import Processors
from bench_runs import Job, Measure, Outcome, Place, Run, Work
from bench_verify import require_count, require_equal

REFUSED_SHARE = 0.01
"""Share of the orders that the filter refuses: enough to show that it works, too few to matter for speed."""

CHANGELOG_CONFIG = {"cleanup.policy": "compact", "min.compaction.lag.ms": "86400000"}
"""A changelog as Kafka Streams makes it, kept from shrinking while it is measured."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What to measure. `limit_s` is the longest that one run may take, in seconds."""

    records: int
    keys: int
    partitions: int
    rounds: int
    seed: int
    jobs: tuple[Job, ...]
    limit_s: float


@dataclass(slots=True)
class Bench:
    """One benchmark on one broker.

    `sides` are the variants of each side and job, by the side's short name; `prefix` begins the name of every
    topic and application; `say` tells the user which step begins.
    """

    cluster: Cluster
    settings: Settings
    folder: Path
    prefix: str
    sides: Mapping[tuple[str, Job], Sequence[Measure]]
    say: Callable[[str], None]
    runs: list[Run] = field(default_factory=list)

    def measure(self) -> list[Run]:
        """Every job, round by round. Raises WrongResultError as soon as a side's results are wrong."""
        for job in self.settings.jobs:
            expected = self._prepare_catch_up() if job == "catch-up" else self._prepare_restore()
            for round_ in range(1, self.settings.rounds + 1):
                for side in self._sides_of(job):
                    self._measure(side, job, round_, expected)
        return self.runs

    def _prepare_catch_up(self) -> Totals:
        settings = self.settings
        self.say(f"writing {settings.records:,} orders of {settings.keys:,} keys")
        orders = make_orders(settings.records, settings.keys, settings.seed, REFUSED_SHARE)
        self.cluster.create(f"{self.prefix}-orders", settings.partitions)
        self.cluster.fill([f"{self.prefix}-orders"], order_messages(orders))
        return expected_totals(orders)

    def _prepare_restore(self) -> Totals:
        settings = self.settings
        self.say(f"writing a changelog of {settings.records:,} records for each side")
        orders = make_orders(settings.records, settings.keys, settings.seed + 1, 0.0)
        self.cluster.create(f"{self.prefix}-idle", settings.partitions)
        changelogs = [self._work(side, "restore", 1).changelog_topic for side in self._sides_of("restore")]
        for topic in changelogs:
            self.cluster.create(topic, settings.partitions, CHANGELOG_CONFIG)
        self.cluster.fill(changelogs, changelog_messages(orders))
        return expected_totals(orders)

    def _sides_of(self, job: Job) -> list[str]:
        return [side for side, of in self.sides if of == job]

    def _work(self, side: str, job: Job, round_: int) -> Work:
        # Catching up needs a group without offsets, so each round is a new application; restoring needs the
        # application whose changelog was written, and an input topic that keeps it idle.
        name = f"{self.prefix}-{side}-{job}" + (f"-{round_}" if job == "catch-up" else "")
        source = f"{self.prefix}-" + ("orders" if job == "catch-up" else "idle")
        return Work(job, name, source, f"{name}-out", self.settings.records, self.settings.limit_s)

    def _measure(self, side: str, job: Job, round_: int, expected: Totals) -> None:
        work = self._work(side, job, round_)
        if work.output_topic not in self.cluster.made:
            self.cluster.create(work.output_topic, self.settings.partitions)
        for number, measure in enumerate(self.sides[side, job], 1):
            self.say(f"{job}, round {round_}: {side}" + (f", variant {number}" if number > 1 else ""))
            place = Place(self.folder / f"{side}-{job}-{round_}-{number}", self.cluster.bootstrap_servers)
            with Processors() as spent:
                outcome = measure(work, place, round_)
            self._check(outcome, work, expected)
            self.runs.append(replace(outcome.run, processors=spent.usage))

    def _check(self, outcome: Outcome, work: Work, expected: Totals) -> None:
        what = f"{work.job}, {outcome.run.side} ({outcome.run.variant})"
        require_count(what, work.records, outcome.counted)
        for place, found in outcome.found.items():
            require_equal(f"{what}, {place}", expected, found)
