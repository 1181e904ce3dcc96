"""Tables that meet themselves: a copy of the source for each path of a change; and windows that have expired."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pyarrow as pa
from pipeline_kit import source, topology_of
from tables_played import PlayedRunner

from streams_runtime.batch.columns import OUT_VALUE
from streams_runtime.batch.stage import StoreBatch
from streams_runtime.processors.tables.table_snapshots import events_of
from streams_runtime.state.store import stamp
from streams_runtime.state.window_keys import window_key
from streams_runtime.state.window_store import WindowStore
from streams_runtime.topology.table_parts import TablePart, TableRoot, table_parts

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


class Windows(WindowStore):
    """A store of windows in memory."""

    def __init__(self, retention: int, **starts: int) -> None:
        self.retention, self._stream_time = retention, max(starts.values(), default=-1)
        self.held = {window_key(key.encode(), start): stamp(start, b"{}") for key, start in starts.items()}

    def get_stored(self, keys: Any) -> list[bytes | None]:
        return [self.held.get(key) for key in keys]


def changed(node: TableRoot, *rows: tuple[str, int, int]) -> StoreBatch:
    """Changes of windows: key, start and, for the offset and the time, when."""
    times = [time for *_, time in rows]
    columns = {
        OUT_VALUE: pa.array([str(time).encode() for time in times], pa.binary()),
        "_topic": pa.array([node.name] * len(rows), pa.string()),
        "_offset": pa.array(times, pa.int64()),
        "_timestamp": pa.array([time * 1000 for time in times], pa.timestamp("us", tz="UTC")),
    }
    keys = pa.array([window_key(key.encode(), start) for key, start, _ in rows], pa.binary())
    first = (pa.array([0] * len(rows)), keys, pa.array(times, pa.int64()))
    return StoreBatch(node, *(pa.chunked_array([each]) for each in first), pa.table(columns))


def test_a_window_that_has_expired_on_one_side_is_not_there_for_the_other_one() -> None:
    def windows(grace: int, retention: int) -> dict[str, Any]:
        return {"tumbling": {"size": "10ms", "grace": f"{grace}ms"}, "retention": f"{retention}ms"}

    steps = [
        {"name": name, "from": "in", "aggregate": {"v": "sum(v)"}, "store": name, "window": window}
        for name, window in (("l", windows(90, 100)), ("r", windows(0, 10)))
    ]
    sources = [source(schema="v BIGINT")]
    (sub,) = topology_of(sources, [*steps, join("j", "l", "r")], [{"from": "j", "topic": "out"}]).subtopologies
    (part,) = table_parts(sub)
    stores: Any = {0: {"l": Windows(100), "r": Windows(10, a=0)}}
    left, right = part.sources
    changes = {
        "l": changed(left, ("a", 0, 1), ("a", 0, 12), ("a", 0, 25)),
        "r": changed(right, ("b", 9, 8), ("b", 10, 20)),
    }
    found = events_of(part, changes, stores, PlayedRunner())
    beside: dict[int, list[Any]] = defaultdict(list)
    for event in found.sequence:
        if event.source == 0:
            beside[event.time] += [found.snapshots[at].held[1][1] for at in (event.before, event.after)]
    # With the window that began at 10, or that a store has written, the one of 0 has expired.
    assert beside == {1: [b"{}", b"{}"], 12: [b"{}", b"{}"], 25: [None, None]}
    assert [found.snapshots[event.after].held[0][1] for event in found.sequence if event.source == 0] == [
        b"1",
        b"12",
        b"25",
    ]
