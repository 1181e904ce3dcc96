"""A backlog worked off: by how many records a second, with how much memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import httpx
import numpy as np
from bench_end import worked_off
from bench_experiment import Ground, Outcome, memory_figures, started
from bench_instance import CutOffError, store_entries
from bench_plan import Turn
from bench_side import Client, wait_until
from bench_sides import OursClient
from bench_tasks import Columns, Prepared, number_of, prepare, require_same
from bench_verify import WrongResultError, decode_any, require_count

_STORED_S = 60.0


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
            work = worked_off(ground.cluster, first, clients, [first.topics["orders"]], case.records, case.limit_s)
            if case.task == "totals":
                require_store(f"{turn.contestant}, round {turn.round}", clients, self.prepared.expected)
            last = [client.stop() for client in clients]
        ground.require_committed(side, first)
        what = f"{turn.contestant}, round {turn.round}"
        # Peers count orders alone, and this project all that a task reads.
        counted = case.records + (self.prepared.table_records if isinstance(clients[0], OursClient) else 0)
        require_count(f"{what}, records processed", counted, sum(seen.processed for seen in last))
        self.prepared.check(f"{what}, output topic", output)
        if side.changelog and case.task == "totals":
            self.prepared.check(f"{what}, changelog topic", first.changelog_topic)
        from_start = work.from_start(last, clients)
        figures = {"records_per_s": case.records / work.seconds, "records_per_s_from_start": case.records / from_start}
        details = {"instances": [seen.processed for seen in last], "seconds": work.seconds}
        return Outcome({**figures, **memory_figures(memory, case.partitions)}, details)


def require_store(what: str, clients: Sequence[Client], expected: Columns | None) -> None:
    """The stores, asked over HTTP: together they have every key once. Nothing of sides that are not asked over HTTP.

    They are asked when they have all that is committed, which is soon after others can see it.

    Raises:
        WrongResultError: a key has another value, or is in two stores.
        TimeoutError: an instance goes on saying that something is left.
    """
    urls = [client.url() for client in clients]
    if expected is None or None in urls:
        return
    for client in clients:
        wait_until("all in the stores", lambda client=client: None if client.seen().behind else True, _STORED_S)  # type: ignore[misc]
    # An instance without partitions has no store to answer for, which looks like an answer that was cut off: when the
    # others have every key, it has none.
    found = wait_until("answered by whole stores", partial(_together, what, urls, expected), _STORED_S)
    require_same(f"{what}, store", expected, found)


def _together(what: str, urls: Sequence[str | None], expected: Columns) -> Columns | None:
    """What all instances have; None where one did not say all, and the others do not have every key.

    Raises WrongResultError: two have the same key.
    """
    found, all_whole = Columns.empty(len(expected.sums)), True
    for url in urls:
        part = _part(str(url), len(expected.sums))
        if part is None:
            all_whole = False
            continue
        twice = np.flatnonzero((found.counts > 0) & (part.counts > 0))
        if len(twice):
            raise WrongResultError(f"{what}: u{twice[0]} is in two stores")
        found = Columns(found.sums + part.sums, found.counts + part.counts)
    return found if all_whole or np.array_equal(found.counts, expected.counts) else None


def _part(url: str, keys: int) -> Columns | None:
    """What one instance has of the store; None where its answer was cut off, or is that it can't tell now."""
    part = Columns.empty(keys)
    try:
        for key, value in store_entries(url, "totals"):
            user = number_of(key, keys)
            part.sums[user], part.counts[user] = decode_any(value)
    except (CutOffError, httpx.HTTPError):
        return None
    return part
