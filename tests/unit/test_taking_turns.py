"""Which sub-topologies work out the turns of their records at the source, and which need none."""

from __future__ import annotations

from typing import Any

import pytest
from pipeline_kit import source, topology_of

from streams_runtime.topology.fork_paths import orders_by_time

IN, OTHER = source(schema="v BIGINT"), source(schema="w BIGINT") | {"name": "other", "topic": "other"}
USERS = source(schema="w BIGINT") | {"name": "users", "topic": "users", "table": {"store": "users"}}
FITS = {"name": "some", "from": "in", "where": "v > 0"}
MERGED = {"name": "all", "merge": ["in", "same"]}
SAME = {"name": "same", "from": "other", "select": {"v": "w"}}


def met(left: str = "in") -> dict[str, Any]:
    within = {"before": "1s", "after": "1s"}
    return {
        "name": "met",
        "from": left,
        "join": {"stream": "other", "within": within, "grace": "0s", "select": {"w": "other.w"}},
    }


def beside(left: str) -> dict[str, Any]:
    return {"name": "beside", "from": left, "join": {"table": "users", "type": "left", "select": {"w": "users.w"}}}


CASES: dict[str, tuple[list[Any], list[Any], bool]] = {
    "a join of streams": ([IN, OTHER], [met()], False),
    "of what fits": ([IN, OTHER], [FITS, met("some")], True),
    "of elements": (
        [IN, OTHER],
        [{"name": "some", "from": "in", "flatMap": {"explode": "sequence(0, v)", "as": "each"}}, met("some")],
        True,
    ),
    "with a table of its results": (
        [IN, OTHER],
        [met(), {"name": "kept", "from": "met", "toTable": {"store": "kept"}}],
        True,
    ),
    "with a select": ([IN, OTHER], [{"name": "more", "from": "in", "select": {"v": "v + 1"}}, met("more")], False),
    "a join with a table": ([IN, USERS], [beside("in")], True),
    "a merge": ([IN, OTHER], [SAME, FITS | {"from": "all"}, MERGED], False),
    "a merge that is counted": (
        [IN, OTHER],
        [SAME, MERGED, {"name": "n", "from": "all", "aggregate": {"n": "count(*)"}, "store": "n"}],
        True,
    ),
    "one topic": ([IN], [FITS, {"name": "n", "from": "some", "aggregate": {"n": "count(*)"}, "store": "n"}], False),
}


@pytest.mark.parametrize("name", CASES)
def test_turns_are_taken_where_a_record_that_is_gone_may_count(name: str) -> None:
    sources, steps, taken = CASES[name]
    last = steps[-1]["name"] if name != "a merge" else "some"
    sub = topology_of(sources, steps, [{"from": last, "topic": "out"}]).subtopologies[0]
    assert orders_by_time(sub) is taken
