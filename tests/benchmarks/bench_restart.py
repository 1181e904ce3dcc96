"""An instance killed by SIGKILL and started again on its state folder: how long until RUNNING."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, replace

from bench_backlog import require_store
from bench_experiment import Ground, Outcome, memory_figures, started
from bench_kafka import CommitWatch
from bench_plan import Turn
from bench_side import Seen, wait_until
from bench_tasks import Prepared, prepare


@dataclass(slots=True)
class Restart:
    """Under exactly once it is killed half way, and the results stay exact; otherwise once everything is committed."""

    ground: Ground
    prepared: Prepared | None = None

    def prepare(self) -> None:
        """Fill the input topics."""
        ground = self.ground
        self.prepared = prepare(ground.cluster, ground.prefix, ground.case, ground.seed)

    def run(self, turn: Turn) -> Outcome:
        """Start, kill, start again, and let it come to the end."""
        assert self.prepared is not None
        ground, case = self.ground, self.ground.case
        output = ground.output(turn)
        launch = ground.launch(turn, {**self.prepared.topics, "output": output})
        side = ground.sides(turn.contestant)
        watch = CommitWatch(ground.cluster, launch.application_id, launch.topics["orders"])
        with started(side, [launch]) as (clients, _):
            share = 0.5 if case.killed == "half way" else 1.0
            watch.wait(clients[0].child.require_alive, case.limit_s, share=share)
            os.kill(clients[0].child.pid, signal.SIGKILL)
        with started(side, [replace(launch, keep_state=True)]) as (clients, memory):
            (client,) = clients

            def running() -> Seen | None:
                seen = client.seen()
                return seen if "running" in seen.moments else None

            seen = wait_until("RUNNING", running, case.limit_s)
            committed = watch.wait(client.child.require_alive, case.limit_s)
            what = f"{turn.contestant}, round {turn.round}"
            require_store(what, clients, self.prepared.expected)
            client.stop()
        self.prepared.check(f"{what}, output topic", output)
        self.prepared.check(f"{what}, changelog topic", launch.changelog_topic)
        figures = {
            "to_running_s": seen.moments["running"] - client.child.started_at,
            "to_committed_s": committed - client.child.started_at,
        }
        return Outcome({**figures, **memory_figures(memory, case.partitions)}, {"restored": seen.restored})
