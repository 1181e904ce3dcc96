"""A store made anew from its changelog: how many records a second, and how long until RUNNING."""

from __future__ import annotations

from dataclasses import dataclass

from bench_backlog import require_store
from bench_data import changelog_messages, make_orders
from bench_experiment import Ground, Outcome, memory_figures, started
from bench_plan import Turn
from bench_rounds import CHANGELOG_CONFIG
from bench_side import Launch, Seen, wait_until
from bench_tasks import Columns, totals
from bench_verify import require_count


@dataclass(slots=True)
class Restore:
    """The harness writes the same changelog for every contestant, and an input that keeps all of them idle."""

    ground: Ground
    taking_part: tuple[str, ...]
    expected: Columns | None = None

    def prepare(self) -> None:
        """Fill a changelog for each application."""
        ground, case = self.ground, self.ground.case
        orders = make_orders(case.records, case.keys, ground.seed + 1, 0.0)
        ground.cluster.create(self._idle, case.partitions)
        changelogs = []
        for name in self.taking_part:
            launch = self._launch(Turn(case, name, 1))
            changelogs.append(launch.changelog_topic)
            ground.cluster.create(launch.changelog_topic, case.partitions, CHANGELOG_CONFIG)
            ground.cluster.create(launch.topics["output"], case.partitions)
        ground.cluster.fill(changelogs, changelog_messages(orders, pad=case.pad))
        self.expected = totals(orders, case.keys)

    def run(self, turn: Turn) -> Outcome:
        """From an empty state folder to RUNNING, and then every entry."""
        ground, case = self.ground, self.ground.case
        launch = self._launch(turn)
        with started(ground.sides(turn.contestant), [launch]) as (clients, memory):
            (client,) = clients

            def restored() -> Seen | None:
                seen = client.seen()
                return seen if {"running", "restore_end"} <= seen.moments.keys() else None

            seen = wait_until("restored and RUNNING", restored, case.limit_s)
            what = f"{turn.contestant}, round {turn.round}"
            require_count(f"{what}, records restored", case.records, seen.restored)
            require_store(what, clients, self.expected)
            client.stop()
        at = seen.moments
        figures = {
            "records_per_s": case.records / (at["restore_end"] - at["restore_start"]),
            "to_running_s": at["running"] - at["created"],
            "from_start_s": at["running"] - client.child.started_at,
        }
        return Outcome({**figures, **memory_figures(memory, case.partitions)})

    @property
    def _idle(self) -> str:
        return f"{self.ground.prefix}-idle"

    def _launch(self, turn: Turn) -> Launch:
        # The same application in each round: its changelog is what was written.
        first = Turn(turn.case, turn.contestant, 1)
        topics = {"orders": self._idle, "output": f"{self.ground.name(first)}-out"}
        return self.ground.launch(first, topics)
