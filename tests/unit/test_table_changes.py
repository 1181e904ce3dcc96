"""What tables over tables pass on: the rules of Kafka Streams, in any tree of joins and filters, in any batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from pipeline_kit import Record, loaded, topology_of
from shared_cases import batches
from table_trees import (
    KINDS,
    MEETING,
    RECORDS,
    TREES,
    Given,
    Tree,
    in_partitions,
    joined,
    renamed,
    steps_of,
    table,
    topics_of,
)
from tables_model import TablesModel
from tables_played import OneTask, PlayedRunner, keyed

from streams_runtime.processors.aggregates.store_updates import table_updates
from streams_runtime.processors.contract import ApplyContext
from streams_runtime.processors.tables.table_changes import Passed, Rows, apply, passed_on
from streams_runtime.state.store import stamp
from streams_runtime.topology.table_parts import table_parts


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
@given(TREES | MEETING, RECORDS, st.lists(st.integers(0, 40), max_size=4), st.sampled_from([1, 2]))
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
    rows = [
        Rows(np.array([before]), np.array([after]), np.array([time]))
        for (before, after), time in ((left, (5, 7)[source]), (right, (7, 5)[source]), (NEW, 0))
    ]
    return passed_on(part, np.array([source]), np.array([5]), rows)[-1]


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
