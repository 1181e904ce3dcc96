"""State side of steps over tables: what each change of a source makes its tables pass on, as Kafka Streams does.

A change is the step from one snapshot of its key to the next (processors.tables.table_snapshots); Spark says what each
table has in either (pipeline.steps.table_rows), and here it is decided, for all changes at once, how far each goes and
at which time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streams_runtime.batch.columns import ELEMENT, NULL_VALUE, ORDER_TIME
from streams_runtime.batch.encode import headers_of
from streams_runtime.batch.snapshot_columns import RAW_KEY, chosen_for, present, streamed, time_of, written_to
from streams_runtime.batch.stage import ChosenTopics, Emission, StageInput
from streams_runtime.processors.aggregates.window_changes import Bounds, bounds_of, numbers_within
from streams_runtime.processors.contract import Applied, ApplyContext
from streams_runtime.processors.tables.table_regroups import regrouped
from streams_runtime.processors.tables.table_snapshots import Event, events_of
from streams_runtime.topology.nodes.source_and_sink_nodes import SinkNode
from streams_runtime.topology.nodes.step_nodes import TransformNode
from streams_runtime.topology.nodes.table_nodes import TableJoinNode
from streams_runtime.topology.table_parts import TablePart

Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Rows:
    """Whether a table had a row before and after each change, and the times of these rows (ms; of none: anything)."""

    before: Mask
    after: Mask
    time: Numbers


@dataclass(frozen=True, slots=True)
class Passed:
    """Which changes a table passes on, and the time of each, in ms."""

    which: Mask
    times: Numbers


def apply(part: TablePart, context: ApplyContext) -> Applied:
    """What a part's sinks and groups are told of a batch's changes, and the records that its toStreams make of them."""
    spark = context.spark
    if not part.leads_on:
        return Applied()
    events = events_of(part, context.changes, context.stores, spark)
    changes = events.sequence
    if not changes:
        return Applied()
    bounds = bounds_of(part, [each.key for each in events.snapshots])
    asked = events.table() if bounds is None else bounds.beside(events.table(), RAW_KEY)
    answer = spark.tables(part, asked)
    before, after = np.array([each.before for each in changes]), np.array([each.after for each in changes])
    rows = {}
    for index, node in enumerate((*part.sources, *part.steps)):
        there = answer[present(index)].to_numpy()
        rows[node.name] = Rows(there[before], there[after], answer[time_of(index)].fill_null(0).to_numpy()[after])
    source, times = np.array([each.source for each in changes]), np.array([each.time for each in changes])
    passed = passed_on(part, source, times, rows)
    applied = Applied()
    for index, sink in enumerate(part.sinks):
        which = np.flatnonzero(passed[sink.input].which)
        snapshots: list[int] = after[which].tolist()
        keys, values = (
            spark.sink_keys(sink, answer["_key"]),
            spark.sink_values(sink, answer[written_to(index)]),
        )
        headers = [changes[change].headers for change in which.tolist()]
        whose = [keys[row] for row in snapshots]
        applied.emissions.append(
            Emission(
                sink.one_topic,
                False,
                whose if bounds is None else bounds.windowed(whose, snapshots),
                [values[row] for row in snapshots],
                passed[sink.input].times[which].tolist(),
                headers_of(headers) if any(headers) else None,
                None if bounds is None else whose,
                chosen=None if sink.is_direct else _chosen(sink, answer[chosen_for(index)], snapshots, which, changes),
            )
        )
    for index, regroup in enumerate(part.regroups):
        which = np.flatnonzero(passed[regroup.input].which)
        when: list[int] = passed[regroup.input].times[which].tolist()
        applied.emissions.append(regrouped(regroup, index, [changes[at] for at in which.tolist()], when, answer))
    for index, stream in enumerate(part.streams):
        fork_paths = {number: spark.fork_path(each.name, stream.name) for number, each in enumerate(part.sources)}
        rows_passed_on = _as_records(changes, passed[stream.input], after, answer, index, fork_paths, bounds)
        if len(rows_passed_on):
            applied.inputs.append(StageInput(stream, rows_passed_on))
    return applied


def _chosen(
    sink: SinkNode, topics: pa.ChunkedArray, snapshots: Sequence[int], which: Numbers, changes: Sequence[Event]
) -> ChosenTopics:
    """The topic of each change that is passed on, by the row as it is after the change."""
    given = topics.to_pylist()
    ordinals = [changes[change].ordinal for change in which.tolist()]
    origins = (
        [topic for _, _, _, topic, _, _ in ordinals],
        [partition for partition, *_ in ordinals],
        [offset for *_, offset, _ in ordinals],
    )
    return ChosenTopics(sink, [given[row] for row in snapshots], origins)


def _as_records(
    changes: Sequence[Event],
    passed: Passed,
    after: Numbers,
    answer: pa.Table,
    stream: int,
    fork_paths: Mapping[int, Sequence[int] | None],
    bounds: Bounds | None,
) -> pa.Table:
    """The changes that are passed on, as the stage behind a toStream reads them.

    `fork_paths` lead from each of the part's sources to the toStream; None where rows have no ELEMENT.
    """
    which = np.flatnonzero(passed.which)
    rows = answer.select(["_key", streamed(stream)]).take(pa.array(after[which]))
    row = rows[streamed(stream)].combine_chunks()
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    chosen = [changes[change] for change in which.tolist()]
    ordinals = [each.ordinal for each in chosen]
    metadata = {
        "_key": rows["_key"],
        "_timestamp": pa.array(passed.times[which] * 1000, pa.int64()).cast(pa.timestamp("us", tz="UTC")),
        "_topic": pa.array([topic for _, _, _, topic, _, _ in ordinals], pa.string()),
        "_partition": pa.array([partition for partition, *_ in ordinals], pa.int32()),
        "_offset": pa.array([offset for *_, offset, _ in ordinals], pa.int64()),
        "_headers": pa.array([each.headers for each in chosen], kind),
        NULL_VALUE: row.is_null(),
        ORDER_TIME: pa.array([time for _, time, *_ in ordinals], pa.int64()).cast(pa.timestamp("us", tz="UTC")),
    }
    further = [fork_paths[each.source] for each in chosen]
    if bounds is not None or all(each is not None for each in further):
        before = [each.way for each in changes]
        if bounds is not None:
            numbers = numbers_within([each.ordinal for each in changes], before)
            before = [[*way, number] for way, number in zip(before, numbers, strict=True)]
        gone_at = zip(which.tolist(), further, strict=True)
        gone = [[*before[change], *(way or ())] for change, way in gone_at]
        metadata[ELEMENT] = pa.array(gone, pa.list_(pa.int32()))
    columns = dict(zip((field.name for field in row.type), row.flatten(), strict=True))
    columns.pop("_timestamp")
    if bounds is not None:
        metadata |= bounds.columns(after[which])
        columns = {name: column for name, column in columns.items() if name not in metadata}
    return pa.table(metadata | columns)


def passed_on(part: TablePart, source: Numbers, times: Numbers, rows: Mapping[str, Rows]) -> dict[str, Passed]:
    """Which changes each table of a part passes on, by its name.

    `source` and `times` are those of the changes; `rows` are what each table has before and after them.
    """
    passed = {node.name: Passed(source == index, times) for index, node in enumerate(part.sources)}
    for step in part.steps:
        if isinstance(step, TableJoinNode):
            passed[step.name] = _joined(step, passed, rows)
        else:
            passed[step.name] = _transformed(step, passed[step.input], rows[step.name])
    return passed


def _transformed(step: TransformNode, reached: Passed, rows: Rows) -> Passed:
    """A where is silent about rows that were not in its table and are not now; a select tells every change."""
    if step.where is None:
        return reached
    return Passed(reached.which & (rows.before | rows.after), reached.times)


def _joined(step: TableJoinNode, passed: Mapping[str, Passed], rows: Mapping[str, Rows]) -> Passed:
    """Changes of either side that concern the result, also where it has no row before and none after.

    A change beside a row of the other side is always passed on. Without one, a side that counts alone passes on what
    it had or has.
    """
    left, right = rows[step.input], rows[step.table]
    from_left = right.after if step.type == "inner" else right.after | left.before | left.after
    from_right = left.after | right.before | right.after if step.type == "outer" else left.after
    sides = ((passed[step.input], from_left, right), (passed[step.table], from_right, left))
    which = np.zeros(len(left.after), bool)
    times = np.zeros(len(left.after), np.int64)
    for side, concerned, other in sides:
        mine = side.which & concerned
        latest = np.where(other.after, np.maximum(side.times, other.time), side.times)
        which, times = which | mine, np.where(mine, latest, times)
    return Passed(which, times)
