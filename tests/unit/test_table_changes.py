"""What tables over tables pass on: the rules of Kafka Streams, in any tree of joins and filters, in any batches."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from pipeline_kit import Record, json, loaded, topology_of
from shared_cases import batches
from table_trees import KINDS, RECORDS, TREES, Given, Tree, in_partitions, joined, renamed, steps_of, table, topics_of
from tables_model import TablesModel

from streams_runtime.batch.columns import OUT_VALUE
from streams_runtime.batch.encode import encoded
from streams_runtime.batch.snapshot_columns import RAW_KEY, held_time, held_value, present, time_of, written_to
from streams_runtime.batch.stage import StoreBatch
from streams_runtime.processors.aggregates.store_updates import table_updates
from streams_runtime.processors.contract import ApplyContext
from streams_runtime.processors.tables.table_changes import Passed, Rows, apply, passed_on
from streams_runtime.state.shown_values import Shown, as_stored
from streams_runtime.state.store import stamp
from streams_runtime.topology.nodes.source_and_sink_nodes import SinkNode
from streams_runtime.topology.nodes.step_nodes import TransformNode
from streams_runtime.topology.plan import SubTopology
from streams_runtime.topology.table_parts import TablePart, table_parts


@dataclass
class Store:
    """A key-value store in memory."""

    held: dict[bytes, bytes] = field(default_factory=dict)

    def get_stored(self, keys: list[bytes]) -> list[bytes | None]:
        return [self.held.get(key) for key in keys]


@dataclass
class OneTask:
    """A task of one partition, and of stores that are there once they are asked for."""

    stores: defaultdict[str, Store] = field(default_factory=lambda: defaultdict(Store))


class PlayedRunner:
    """Spark's part in plain Python: where is "not divisible by 3", select doubles, join is ten times left and right."""

    def shown_by(self, table: str) -> Shown:
        return as_stored

    def sink_keys(self, sink: SinkNode, column: pa.ChunkedArray) -> list[bytes | None]:
        return encoded(column)

    sink_values = sink_keys

    def tables(self, part: TablePart, snapshots: pa.Table) -> pa.Table:
        rows: dict[str, list[Any]] = {}
        for index, source in enumerate(part.sources):
            times = snapshots[held_time(index)].cast(pa.int64()).to_pylist()
            held = zip(snapshots[held_value(index)].to_pylist(), times, strict=True)
            rows[source.name] = [None if value is None else (loaded(value), time // 1000) for value, time in held]
        for step in part.steps:
            if isinstance(step, TransformNode):
                rows[step.name] = [self._transformed(step, row) for row in rows[step.input]]
            else:
                pairs = zip(rows[step.input], rows[step.table], strict=True)
                rows[step.name] = [self._joined(step.type, *pair) for pair in pairs]
        answer = {"_key": snapshots[RAW_KEY]}
        for index, node in enumerate((*part.sources, *part.steps)):
            answer[present(index)] = pa.chunked_array([[row is not None for row in rows[node.name]]])
            times = [None if row is None else row[1] for row in rows[node.name]]
            answer[time_of(index)] = pa.chunked_array([times], pa.int64())
        for index, sink in enumerate(part.sinks):
            values = [None if row is None else json(v=row[0]) for row in rows[sink.input]]
            answer[written_to(index)] = pa.chunked_array([values], pa.binary())
        return pa.table(answer)

    @staticmethod
    def _transformed(step: TransformNode, row: Any) -> Any:
        if row is None or (step.where is not None and row[0] % 3 == 0):
            return None
        return row if step.where is not None else (row[0] * 2, row[1])

    @staticmethod
    def _joined(kind: str, left: Any, right: Any) -> Any:
        if (left is None and kind != "outer") or (right is None and kind == "inner") or left is right is None:
            return None
        number = (left[0] if left else 0) * 10 + (right[0] if right else 0)
        return number, max(row[1] for row in (left, right) if row is not None)


def keyed(sub: SubTopology, records: list[Record]) -> dict[str, StoreBatch]:
    """The records by the source that reads them, as the first stage gives them."""
    found = {}
    for part in table_parts(sub):
        for source in part.sources:
            rows = [each for each in records if each.topic == source.topic]
            times = pa.array([each.time for each in rows], pa.int64())
            columns = {
                OUT_VALUE: pa.array([each.value for each in rows], pa.binary()),
                "_topic": pa.array([each.topic for each in rows], pa.string()),
                "_offset": pa.array([each.offset for each in rows], pa.int64()),
                "_timestamp": pa.array([each.time * 1000 for each in rows], pa.timestamp("us", tz="UTC")),
                "_headers": pa.array([each.headers for each in rows], pa.list_(pa.struct([]))),
            }
            keys, partitions = [each.key for each in rows], [each.partition for each in rows]
            made = (pa.chunked_array([pa.array(each)]) for each in (partitions, pa.array(keys, pa.binary()), times))
            found[source.name] = StoreBatch(source, *made, pa.table(columns))
    return found


def passed_in_batches(tree: Tree, records: list[Record], cuts: list[int]) -> dict[str, list[Any]]:
    """What goes to each sink behind a where or a join: (key, number, time) in order."""
    steps = steps_of(tree)
    (sub,) = topology_of(steps.sources, steps.steps, steps.sinks).subtopologies
    found: dict[str, list[Any]] = {sink.topic: [] for part in table_parts(sub) for sink in part.sinks}
    tasks = {number: OneTask() for number in range(2)}
    for first, end in batches(len(records), cuts):
        changed = keyed(sub, records[first:end])
        for part in table_parts(sub):
            stores = {number: task.stores for number, task in tasks.items()}
            context = ApplyContext(PlayedRunner(), sub, stores, {}, changed, {}, {})  # type: ignore[arg-type]
            told = apply(part, context)
            for each in told.emissions:
                values = [loaded(value) for value in each.values]
                found[each.topic] += list(zip(each.keys, values, each.timestamps, strict=True))
        for one in changed.values():
            for partition, updates in table_updates(one).items():
                held = tasks[partition].stores[one.node.store].held
                for key, value, time in zip(updates.keys, updates.values, updates.timestamps, strict=True):
                    held.pop(key, None)
                    held |= {} if value is None else {key: stamp(time, value)}
    return found


@settings(max_examples=examples(300))
@given(TREES, RECORDS, st.lists(st.integers(0, 40), max_size=4), st.sampled_from([1, 2]))
def test_every_tree_passes_on_what_pushing_record_by_record_does_wherever_batches_begin(
    tree: Tree, given: list[Given], cuts: list[int], partitions: int
) -> None:
    topics = topics_of(tree)
    read = in_partitions(renamed(given, topics), topics, partitions)
    model = TablesModel(tree)
    model.feed(read)
    for topic, rows in passed_in_batches(tree, read, cuts).items():
        if partitions == 1:
            assert rows == model.sinks[topic]
        assert sorted(rows, key=lambda row: row[0]) == sorted(model.sinks[topic], key=lambda row: row[0])


def one(left: tuple[bool, bool], right: tuple[bool, bool], source: int, kind: str) -> Passed:
    """What a join passes on of one change at 5 beside a row of the other side at 7."""
    steps = steps_of(joined(kind, table("l"), table("r")))
    (part,) = table_parts(topology_of(steps.sources, steps.steps, steps.sinks).subtopologies[0])
    rows = {
        name: Rows(np.array([before]), np.array([after]), np.array([time]))
        for name, (before, after), time in (("l", left, (5, 7)[source]), ("r", right, (7, 5)[source]))
    }
    return passed_on(part, np.array([source]), np.array([5]), rows)["s0"]


NEW, GONE, NEVER, THERE = (False, True), (True, False), (False, False), (True, True)


@pytest.mark.parametrize("change", [NEW, GONE, NEVER, THERE])
def test_a_change_beside_a_row_is_passed_on_at_the_later_time_even_if_nothing_was_there(change: Any) -> None:
    for kind in KINDS:
        for left, right, source in ((change, THERE, 0), (THERE, change, 1)):
            found = one(left, right, source, kind)
            assert (found.which.tolist(), found.times.tolist()) == ([True], [7])


@pytest.mark.parametrize(
    ("kind", "source", "alone"),
    [
        ("inner", 0, False),
        ("inner", 1, False),
        ("left", 0, True),
        ("left", 1, False),
        ("outer", 0, True),
        ("outer", 1, True),
    ],
)
def test_a_change_without_a_row_beside_it_is_passed_on_by_the_sides_that_count_alone(
    kind: str, source: int, alone: bool
) -> None:
    for change in (NEW, GONE, NEVER, THERE):
        left, right = (change, NEVER) if source == 0 else (NEVER, change)
        found = one(left, right, source, kind)
        assert found.which.tolist() == [alone and change != NEVER]
        assert not found.which[0] or found.times.tolist() == [5]
