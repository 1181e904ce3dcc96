"""A backlog worked off: by how many records a second, with how much memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bench_experiment import Ground, Outcome, memory_figures, started
from bench_instance import store_entries
from bench_kafka import CommitWatch
from bench_plan import Turn
from bench_side import Client, Launch, Seen, wait_until
from bench_sides import OursClient
from bench_tasks import Columns, Prepared, number_of, prepare, require_same
from bench_verify import WrongResultError, decode_any, require_count


@dataclass(slots=True)
class Backlog:
    """Every contestant reads the same topics, with a group and an output topic of its own each round."""

    ground: Ground
    prepared: Prepared | None = None

    def prepare(self) -> None:
        """Fill the input topics."""
        ground = self.ground
        self.prepared = prepare(ground.cluster, ground.prefix, ground.case, ground.seed)

    def run(self, turn: Turn) -> Outcome:
        """From the start of all instances at once until everything is committed and they have closed."""
        assert self.prepared is not None
        ground, case = self.ground, self.ground.case
        output = ground.output(turn)
        first = ground.launch(turn, {**self.prepared.topics, "output": output}, until_end=True)
        launches = [replace(first, number=number) for number in range(first.contestant.instances)]
        side = ground.sides(turn.contestant)
        with started(side, launches) as (clients, memory):
            work = self._finished(first, clients)
            if case.task == "totals":
                require_store(f"{turn.contestant}, round {turn.round}", clients, self.prepared.expected)
            last = [client.stop() for client in clients]
        ground.require_committed(side, first)
        what = f"{turn.contestant}, round {turn.round}"
        require_count(f"{what}, records processed", case.records, sum(seen.processed for seen in last))
        self.prepared.check(f"{what}, output topic", output)
        if side.changelog and case.task == "totals":
            self.prepared.check(f"{what}, changelog topic", first.changelog_topic)
        from_start = _end(last, work) - min(client.child.started_at for client in clients)
        figures = {"records_per_s": case.records / work[1], "records_per_s_from_start": case.records / from_start}
        details = {"instances": [seen.processed for seen in last], "seconds": work[1]}
        return Outcome({**figures, **memory_figures(memory, case.partitions)}, details)

    def _finished(self, launch: Launch, clients: Sequence[Client]) -> tuple[float, float]:
        """The moment at which all was done, and the seconds it took; the same two moments for each side: README."""
        limit = self.ground.case.limit_s
        if isinstance(clients[0], OursClient):

            def alive() -> None:
                for client in clients:
                    client.child.require_alive()

            watch = CommitWatch(self.ground.cluster, launch.application_id, launch.topics["orders"])
            end = watch.wait(alive, limit)
            begin = min(client.seen().moments["running"] for client in clients)
            return end, end - begin

        def done() -> list[Seen] | None:
            seen = [client.seen() for client in clients]
            return seen if sum(each.processed for each in seen) >= self.ground.case.records else None

        seen = wait_until("through the backlog", done, limit)
        begins = [each.moments["first_record"] for each in seen if "first_record" in each.moments]
        end = max(each.moments["last_record"] for each in seen if "last_record" in each.moments)
        return end, end - min(begins)


def require_store(what: str, clients: Sequence[Client], expected: Columns | None) -> None:
    """The stores, asked over HTTP: together they have every key once. Nothing of sides that are not asked over HTTP.

    Raises WrongResultError.
    """
    urls = [client.url() for client in clients]
    if expected is None or None in urls:
        return
    keys = len(expected.sums)
    found = Columns.empty(keys)
    for url in urls:
        for key, value in store_entries(str(url), "totals"):
            user = number_of(key, keys)
            if found.counts[user]:
                raise WrongResultError(f"{what}: {key.decode()} is in two stores")
            found.sums[user], found.counts[user] = decode_any(value)
    require_same(f"{what}, store", expected, found)


def _end(last: Sequence[Seen], work: tuple[float, float]) -> float:
    """When everything was committed: peers say when they had closed."""
    return max([work[0], *(seen.moments["closed"] for seen in last if "closed" in seen.moments)])
