"""Merges of several stages: which they are, when they are worked off, and in which order their rows go on."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pipeline_kit import source, topology_of

from streams_runtime.batch.columns import ELEMENT, FROM_OFFSET, FROM_TOPIC, ORDER_TIME
from streams_runtime.batch.stage import StageInput
from streams_runtime.processors.merge_inputs import in_record_order, merged_inputs, together
from streams_runtime.topology.fork_paths import fork_path_between, forks, in_fork_order, keeps_order
from streams_runtime.topology.nodes.step_nodes import MergeNode
from streams_runtime.topology.plan import SubTopology
from streams_runtime.topology.stage_order import merges_stages, stage_order, stages_of

ONCE = {"name": "once", "from": "in", "dedupe": {"within": "1m"}}
SOME = {"name": "some", "from": "in", "where": "v > 1"}


def merge(name: str, *inputs: str) -> dict[str, Any]:
    return {"name": name, "merge": list(inputs)}


def sub_of(*steps: dict[str, Any]) -> SubTopology:
    sources = [source(schema="v BIGINT") | {"name": name, "topic": name} for name in ("in", "other")]
    base = source(schema="v BIGINT") | {"name": "base", "topic": "base", "table": {"store": "base"}}
    subs = topology_of([*sources, base], steps).subtopologies
    return next(sub for sub in subs if steps[-1]["name"] in {node.name for node in sub.nodes})


def test_a_merge_of_what_comes_in_several_stages_begins_one_behind_all_of_them() -> None:
    sub = sub_of(ONCE, merge("m", "in", "once"), {**ONCE, "name": "again", "from": "m"}, merge("n", "again", "other"))
    assert merges_stages(sub) == {"m", "n"}
    assert stage_order(sub) == ("once", "m", "again", "n")
    found = stages_of(sub)
    assert [found[name] for name in ("in", "once", "m", "again", "n")] == [None, "once", "m", "again", "n"]


def test_a_merge_of_what_comes_in_one_stage_goes_on_in_it() -> None:
    sub = sub_of(ONCE, SOME, {**SOME, "name": "rest", "from": "once"}, merge("m", "once", "rest"))
    assert not merges_stages(sub)
    assert stages_of(sub)["m"] == "once"
    assert not keeps_order(sub)


def test_a_merge_of_a_tables_changes_waits_for_the_table() -> None:
    told = {"name": "told", "from": "few", "toStream": {}}
    sub = sub_of({**SOME, "name": "few", "from": "base"}, told, merge("m", "in", "told"))
    assert [each if isinstance(each, str) else each.name for each in stage_order(sub)] == ["base", "told", "m"]


def test_ways_that_meet_again_are_numbered_where_they_part() -> None:
    sub = sub_of(SOME, ONCE, {**SOME, "name": "far", "from": "once"}, merge("m", "far", "in", "some", "other"))
    assert forks(sub) == {("in", "some"): 0, ("in", "once"): 1, ("in", "m"): 2}
    assert fork_path_between(sub, "in", "far") == (1,)
    assert fork_path_between(sub, "other", "m") == ()
    assert fork_path_between(sub, "other", "far") is None


@pytest.mark.parametrize("given", [("far", "in", "some", "other"), ("other", "some", "in", "far")])
def test_what_meets_again_has_the_order_of_its_ways_not_that_of_the_merge(given: tuple[str, ...]) -> None:
    sub = sub_of(SOME, ONCE, {**SOME, "name": "far", "from": "once"}, merge("m", *given))
    (node,) = (node for node in sub.nodes if isinstance(node, MergeNode))
    assert [name for name in in_fork_order(sub, node) if name != "other"] == ["some", "far", "in"]


def met(left: str, right: str) -> dict[str, Any]:
    return {"name": "met", "from": left, "join": {"stream": right, "within": "1m", "select": {"w": f"`{right}`.v"}}}


@pytest.mark.parametrize(
    ("left", "right", "kept"),
    [
        ("in", "in", False),
        ("in", "other", False),
        ("some", "more", False),
        ("more", "some", True),
        ("in", "some", True),
        ("some", "in", False),
        ("far", "some", False),
        ("some", "far", True),
        ("all", "more", True),
        ("other", "all", False),
    ],
)
def test_places_are_kept_where_a_record_may_come_to_the_right_side_of_a_join_first(
    left: str, right: str, kept: bool
) -> None:
    steps = [SOME, {**SOME, "name": "more"}, {**SOME, "name": "far", "from": "some"}, {**SOME, "name": "last"}]
    assert keeps_order(sub_of(*steps, merge("all", "some", "last"), met(left, right))) is kept


def rows(**columns: Any) -> pa.Table:
    """Rows of one partition; columns v, topics, offsets and turns as they are given."""
    size = len(next(iter(columns.values())))
    given = {"_partition": [0] * size, "_topic": ["in"] * size, "_offset": [0] * size, "_timestamp": [0] * size}
    return pa.table(given | columns)


def test_rows_go_on_by_the_turns_of_their_records_and_of_one_record_by_its_ways() -> None:
    first = rows(v=["d", "c"], _offset=[2, 1], **{ORDER_TIME: [7, 5], ELEMENT: [[1], [1]]})
    second = rows(v=["b", "a"], _offset=[1, 0], **{ORDER_TIME: [5, 1], ELEMENT: [[0, 3], []]})
    other = rows(v=["x"], _topic=["other"], **{ORDER_TIME: [6], ELEMENT: [[]]})
    found = in_record_order(together(together(first, second), other))
    assert found["v"].to_pylist() == ["a", "b", "c", "x", "d"]


def test_what_lies_nowhere_takes_the_turn_of_the_record_that_it_came_of() -> None:
    results = rows(v=["b", "d"], _topic=[None, None], **{FROM_TOPIC: ["in", "in"], FROM_OFFSET: [3, 8]})
    records = rows(v=["a", "c"], _offset=[1, 5])
    found = in_record_order(together(records, results))
    assert found["v"].to_pylist() == ["a", "b", "c", "d"]
    assert found["_topic"].to_pylist() == ["in", None, "in", None]


@pytest.mark.parametrize("nothing", [0, 1])
def test_stages_that_know_different_things_of_nulls_go_together(nothing: int) -> None:
    sure = pa.list_(pa.struct([pa.field("key", pa.string(), nullable=False)]))
    unsure = pa.list_(pa.struct([("key", pa.string())]))
    stages = [rows(h=pa.array([[{"key": "k"}]], sure)), rows(h=pa.array([None], unsure))]
    node = MergeNode("m", ("a", "b"), "")
    waiting = {"m": StageInput(node, stages[nothing])}
    found = merged_inputs(waiting, StageInput(node, stages[1 - nothing]))
    assert len(found.rows) == 2
