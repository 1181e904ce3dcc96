"""Tables that meet themselves: a copy of the source for each path of a change."""

from __future__ import annotations

from typing import Any

from pipeline_kit import source, topology_of

from streams_runtime.topology.table_parts import TablePart, table_parts

TABLE = source(schema="v BIGINT") | {"name": "t", "topic": "t", "table": {"store": "t"}}
A, B = ({"name": name, "from": "t", "where": "v > 1"} for name in "ab")


def join(name: str, left: str, right: str) -> dict[str, Any]:
    return {"name": name, "from": left, "join": {"table": right, "select": {"w": f"{right}.v"}}}


def part_of(*steps: dict[str, Any]) -> TablePart:
    (sub,) = topology_of([TABLE], steps, [{"from": steps[-1]["name"], "topic": "out"}]).subtopologies
    (part,) = table_parts(sub)
    return part


def in_turn(part: TablePart, table: str) -> list[int]:
    """The copies of sources behind a table, that which changes first before the others."""
    paths = part.copies.paths[table]
    return sorted(paths, key=paths.__getitem__)


def test_where_nothing_meets_itself_there_is_one_of_each_table() -> None:
    part = part_of(A, {"name": "c", "from": "a", "where": "v > 2"}, B)
    assert not part.copies.has_several
    assert [each.node.name for each in part.copies.sources] == ["t"]
    assert [(each.node.name, each.inputs) for each in part.copies.steps] == [("a", (0,)), ("c", (1,)), ("b", (0,))]


def test_a_table_that_meets_itself_has_a_copy_on_the_right_which_changes_behind_the_left() -> None:
    part = part_of(join("j", "t", "t"))
    assert [each.source for each in part.copies.sources] == [0, 0]
    assert [each.inputs for each in part.copies.steps] == [(0, 1)]
    assert in_turn(part, "j") == [0, 1]


def test_paths_are_taken_in_the_order_of_the_steps_whichever_side_they_lead_to() -> None:
    assert in_turn(part_of(A, B, join("j", "a", "b")), "j") == [0, 1]
    assert in_turn(part_of(A, B, join("j", "b", "a")), "j") == [1, 0]


def test_what_was_joined_with_itself_is_joined_again_by_as_many_paths_as_lead_there() -> None:
    part = part_of(A, join("j", "t", "a"), join("k", "j", "t"), join("l", "k", "j"))
    assert [len(part.copies.paths[name]) for name in "tajkl"] == [1, 1, 2, 3, 5]
    first = part.copies.first
    assert set(part.copies.paths["j"]) < set(part.copies.paths["k"])
    assert part.copies.steps[first["l"] - len(part.copies.sources)].inputs[1] != first["j"]
