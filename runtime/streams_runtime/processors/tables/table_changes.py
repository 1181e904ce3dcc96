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

from streams_runtime.api.steps.topology_spec import JoinType
from streams_runtime.batch.columns import ELEMENT, NULL_VALUE, ORDER_TIME
from streams_runtime.batch.encode import headers_of
from streams_runtime.batch.record_order import Ordinal
from streams_runtime.batch.snapshot_columns import RAW_KEY, chosen_for, present, streamed, time_of, written_to
from streams_runtime.batch.stage import ChosenTopics, Emission, StageInput
from streams_runtime.processors.aggregates.window_changes import Bounds, bounds_of, numbers_within
from streams_runtime.processors.contract import Applied, ApplyContext, SparkSide
from streams_runtime.processors.tables.table_regroups import regrouped
from streams_runtime.processors.tables.table_snapshots import Event, events_of
from streams_runtime.topology.nodes.source_and_sink_nodes import SinkNode
from streams_runtime.topology.nodes.step_nodes import TransformNode
from streams_runtime.topology.nodes.table_nodes import TableJoinNode, ToStreamNode
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
    rows = []
    for index in range(len(part.copies.sources) + len(part.copies.steps)):
        there = answer[present(index)].to_numpy()
        rows.append(Rows(there[before], there[after], answer[time_of(index)].fill_null(0).to_numpy()[after]))
    source, times = np.array([each.source for each in changes]), np.array([each.time for each in changes])
    of_copies = passed_on(part, source, times, rows)
    passed = {name: of_copies[copy] for name, copy in part.copies.first.items()}
    applied = Applied()
    for index, sink in enumerate(part.sinks):
        which = in_turn(part, sink.input, np.flatnonzero(passed[sink.input].which), changes)
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
        rows_passed_on = _as_records(
            changes,
            in_turn(part, stream.input, np.flatnonzero(passed[stream.input].which), changes),
            passed[stream.input].times,
            after,
            answer,
            index,
            _paths_to(part, stream, spark),
            bounds,
        )
        if len(rows_passed_on):
            applied.inputs.append(StageInput(stream, rows_passed_on))
    return applied


def in_turn(part: TablePart, table: str, which: Numbers, changes: Sequence[Event]) -> Numbers:
    """Changes that a table passes on, in the order in which they reach it, one path after the other."""
    if not part.copies.has_several:
        return which
    paths = part.copies.paths[table]
    return np.array(sorted(which.tolist(), key=lambda at: (changes[at].change, paths[changes[at].source])), np.int64)


def _paths_to(part: TablePart, stream: ToStreamNode, spark: SparkSide) -> Mapping[int, Sequence[int] | None]:
    """What the paths from each copy of a source to a toStream add to a row's ELEMENT; None where rows have none.

    Where copies are several, every row has one: of one record there may be several rows, in an order.
    """
    sources = part.copies.sources
    if not part.copies.has_several:
        return {number: spark.fork_path(each.node.name, stream.name) for number, each in enumerate(sources)}
    last = 2 * part.copies.ordinals[stream.name]
    return {number: (*path, last) for number, path in part.copies.paths[stream.input].items()}


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
    which: Numbers,
    times: Numbers,
    after: Numbers,
    answer: pa.Table,
    stream: int,
    fork_paths: Mapping[int, Sequence[int] | None],
    bounds: Bounds | None,
) -> pa.Table:
    """The changes that are passed on (`which`, in turn), as the stage behind a toStream reads them.

    `fork_paths` lead from each copy of the part's sources to the toStream; None where rows have no ELEMENT.
    """
    rows = answer.select(["_key", streamed(stream)]).take(pa.array(after[which]))
    row = rows[streamed(stream)].combine_chunks()
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    chosen = [changes[change] for change in which.tolist()]
    ordinals = [each.ordinal for each in chosen]
    metadata = {
        "_key": rows["_key"],
        "_timestamp": pa.array(times[which] * 1000, pa.int64()).cast(pa.timestamp("us", tz="UTC")),
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
            numbers = _numbers_of(changes)
            before = [[*each.way, numbers[each.change]] for each in changes]
        gone_at = zip(which.tolist(), further, strict=True)
        gone = [[*before[change], *(way or ())] for change, way in gone_at]
        metadata[ELEMENT] = pa.array(gone, pa.list_(pa.int32()))
    columns = dict(zip((field.name for field in row.type), row.flatten(), strict=True))
    columns.pop("_timestamp")
    if bounds is not None:
        metadata |= bounds.columns(after[which])
        columns = {name: column for name, column in columns.items() if name not in metadata}
    return pa.table(metadata | columns)


def _numbers_of(changes: Sequence[Event]) -> dict[int, int]:
    """Of each change of windows which of its record's it is, whichever source it changes and however many copies."""
    firsts = {each.change: each for each in reversed(changes)}
    in_order = [firsts[number] for number in sorted(firsts)]
    records: list[Ordinal] = [(*each.ordinal[:-1], 0) for each in in_order]
    return dict(zip(sorted(firsts), numbers_within(records, [each.way for each in in_order]), strict=True))


def passed_on(part: TablePart, source: Numbers, times: Numbers, rows: Sequence[Rows]) -> list[Passed]:
    """Which changes each copy of a part's tables passes on, by its number.

    `source` (the number of a copy) and `times` are those of the changes; `rows` are what each copy has before and after
    them.
    """
    passed = [Passed(source == number, times) for number in range(len(part.copies.sources))]
    for copy, mine in zip(part.copies.steps, rows[len(passed) :], strict=True):
        reached, held = [passed[number] for number in copy.inputs], [rows[number] for number in copy.inputs]
        if isinstance(copy.node, TableJoinNode):
            passed.append(_joined(copy.node.type, reached, held))
        else:
            passed.append(_transformed(copy.node, reached[0], mine))
    return passed


def _transformed(step: TransformNode, reached: Passed, rows: Rows) -> Passed:
    """A where is silent about rows that were not in its table and are not now; a select tells every change."""
    if step.where is None:
        return reached
    return Passed(reached.which & (rows.before | rows.after), reached.times)


def _joined(kind: JoinType, passed: Sequence[Passed], rows: Sequence[Rows]) -> Passed:
    """Changes of either side that concern the result, also where it has no row before and none after.

    A change beside a row of the other side is always passed on. Without one, a side that counts alone passes on what
    it had or has.
    """
    left, right = rows
    from_left = right.after if kind == "inner" else right.after | left.before | left.after
    from_right = left.after | right.before | right.after if kind == "outer" else left.after
    sides = ((passed[0], from_left, right), (passed[1], from_right, left))
    which = np.zeros(len(left.after), bool)
    times = np.zeros(len(left.after), np.int64)
    for side, concerned, other in sides:
        mine = side.which & concerned
        latest = np.where(other.after, np.maximum(side.times, other.time), side.times)
        which, times = which | mine, np.where(mine, latest, times)
    return Passed(which, times)
