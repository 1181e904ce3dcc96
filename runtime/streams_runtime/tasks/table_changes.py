"""State side of steps over tables: what each change of a source makes its tables pass on, as Kafka Streams does.

The changes of all sources that joins bring together have one order (tasks.places). A change is the step from one
snapshot of its key to the next; Spark says what each table has in either (pipeline.tables), and here it is decided,
for all changes at once, how far each goes and at which time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streams_runtime.pipeline.decode import NULL_VALUE, TURN
from streams_runtime.pipeline.nodes import OUT_VALUE, moments
from streams_runtime.pipeline.runner import Emission, Keyed, SubTopologyRunner, headers_of
from streams_runtime.pipeline.stream_nodes import ELEMENT
from streams_runtime.pipeline.tables import (
    RAW_KEY,
    SHOWN,
    held_time,
    held_value,
    present,
    streamed,
    time_of,
    written_to,
)
from streams_runtime.pipeline.to_table import Streamed
from streams_runtime.state.shown import Shown
from streams_runtime.tasks.places import Place, places_among, ways_of
from streams_runtime.tasks.task import Task
from streams_runtime.tasks.window_changes import Bounds, bounds_of, held_in, numbers_within
from streams_runtime.topology.nodes import TransformNode
from streams_runtime.topology.table_nodes import TableJoinNode
from streams_runtime.topology.table_parts import TablePart

_Held = tuple[int | None, bytes | None]
"""Time (ms) and bytes of what a source holds for a key; None and None where it holds nothing."""
_NOTHING: _Held = (None, None)
Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]


@dataclass(slots=True)
class Changes:
    """A batch's changes of a part's sources, in turn.

    `source`: which of the part's sources has changed; `before` and `after`: which snapshots the change leads from and
    to; `times` those of the records, in ms; `headers` their headers, `places` where they are, `ways` which of their
    records' rows. `snapshots` are (key, shown, and what each source holds).
    """

    source: list[int] = field(default_factory=list)
    before: list[int] = field(default_factory=list)
    after: list[int] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    headers: list[Any] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    ways: list[list[int]] = field(default_factory=list)
    snapshots: list[tuple[bytes, bool, tuple[_Held, ...]]] = field(default_factory=list)

    def table(self) -> pa.Table:
        """The snapshots as Spark takes them."""
        keys, shown, held = zip(*self.snapshots, strict=True)
        columns = {RAW_KEY: pa.array(keys, pa.binary()), SHOWN: pa.array(shown, pa.bool_())}
        for index, of_source in enumerate(zip(*held, strict=True)):
            times, values = zip(*of_source, strict=True)
            columns[held_value(index)] = pa.array(values, pa.binary())
            columns[held_time(index)] = moments(pa.array(times, pa.int64()))
        return pa.table(columns)


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


@dataclass(frozen=True, slots=True)
class Told:
    """What goes out of a part: what its sinks write, and the records that its toStreams make of changes."""

    emissions: list[Emission] = field(default_factory=list)
    streams: list[Streamed] = field(default_factory=list)


class Stores(Protocol):
    """Knows how what a store holds becomes what is seen of it."""

    def shown_by(self, table: str) -> Shown:
        """By the node that keeps the table."""


def told_changes(
    part: TablePart,
    changed: Mapping[str, Keyed],
    runner: SubTopologyRunner,
    tasks: Mapping[int, Task],
    stores: Stores,
) -> Told:
    """What is told of a batch's changes; `changed` has them by source, nothing is in the stores yet.

    Raises ProcessorStateException: a store can't be read.
    """
    changes = changes_of(part, changed, tasks, stores) if part.sinks or part.streams else Changes()
    if not changes.source:
        return Told()
    bounds = bounds_of(part, [key for key, *_ in changes.snapshots])
    asked = changes.table() if bounds is None else bounds.beside(changes.table(), RAW_KEY)
    answer = runner.run_tables(part, asked)
    before, after = np.array(changes.before), np.array(changes.after)
    rows = {}
    for index, node in enumerate((*part.sources, *part.steps)):
        there = answer[present(index)].to_numpy()
        rows[node.name] = Rows(there[before], there[after], answer[time_of(index)].fill_null(0).to_numpy()[after])
    passed = passed_on(part, np.array(changes.source), np.array(changes.times), rows)
    told = Told()
    for index, sink in enumerate(part.sinks):
        which = np.flatnonzero(passed[sink.input].which)
        snapshots: list[int] = after[which].tolist()
        keys, values = runner.keys(sink, answer["_key"]), runner.values(sink, answer[written_to(index)])
        headers = [changes.headers[change] for change in which.tolist()]
        whose = [keys[row] for row in snapshots]
        told.emissions.append(
            Emission(
                sink.topic,
                False,
                whose if bounds is None else bounds.windowed(whose, snapshots),
                [values[row] for row in snapshots],
                passed[sink.input].times[which].tolist(),
                headers_of(headers) if any(headers) else None,
                None if bounds is None else whose,
            )
        )
    for index, stream in enumerate(part.streams):
        ways = {number: runner.way_between(each.name, stream.name) for number, each in enumerate(part.sources)}
        rows_told = _as_records(changes, passed[stream.input], after, answer, index, ways, bounds)
        if len(rows_told):
            told.streams.append(Streamed(stream, rows_told))
    return told


def _as_records(
    changes: Changes,
    passed: Passed,
    after: Numbers,
    answer: pa.Table,
    stream: int,
    ways: Mapping[int, Sequence[int] | None],
    bounds: Bounds | None,
) -> pa.Table:
    """The changes that are passed on, as the stage behind a toStream reads them.

    `ways` are those from each of the part's sources to the toStream; None where no places are kept.
    """
    which = np.flatnonzero(passed.which)
    rows = answer.select(["_key", streamed(stream)]).take(pa.array(after[which]))
    row = rows[streamed(stream)].combine_chunks()
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    places = [changes.places[change] for change in which.tolist()]
    metadata = {
        "_key": rows["_key"],
        "_timestamp": pa.array(passed.times[which] * 1000, pa.int64()).cast(pa.timestamp("us", tz="UTC")),
        "_topic": pa.array([topic for _, _, _, topic, _, _ in places], pa.string()),
        "_partition": pa.array([partition for partition, *_ in places], pa.int32()),
        "_offset": pa.array([offset for *_, offset, _ in places], pa.int64()),
        "_headers": pa.array([changes.headers[change] for change in which.tolist()], kind),
        NULL_VALUE: row.is_null(),
        TURN: pa.array([time for _, time, *_ in places], pa.int64()).cast(pa.timestamp("us", tz="UTC")),
    }
    further = [ways[changes.source[change]] for change in which.tolist()]
    if bounds is not None or all(each is not None for each in further):
        before = changes.ways
        if bounds is not None:
            numbers = numbers_within(changes.places, changes.ways)
            before = [[*way, number] for way, number in zip(changes.ways, numbers, strict=True)]
        told = zip(which.tolist(), further, strict=True)
        gone = [[*before[change], *(way or ())] for change, way in told]
        metadata[ELEMENT] = pa.array(gone, pa.list_(pa.int32()))
    columns = dict(zip((field.name for field in row.type), row.flatten(), strict=True))
    columns.pop("_timestamp")
    if bounds is not None:
        metadata |= bounds.columns(after[which])
        columns = {name: column for name, column in columns.items() if name not in metadata}
    return pa.table(metadata | columns)


def changes_of(part: TablePart, changed: Mapping[str, Keyed], tasks: Mapping[int, Task], stores: Stores) -> Changes:
    """The batch's changes of the part's sources in turn, and the snapshots between them.

    Raises ProcessorStateException: a store can't be read.
    """
    rows = []
    there = {index: changed[node.name] for index, node in enumerate(part.sources) if node.name in changed}
    several = [(keyed.partitions.to_pylist(), keyed.columns) for keyed in there.values()]
    for (source, keyed), turns in zip(there.items(), places_among(*several), strict=True):
        if len(keyed.keys):
            partitions = keyed.partitions.to_pylist()
            whose = zip(partitions, keyed.keys.to_pylist(), strict=True)
            held = zip(keyed.timestamps.to_pylist(), keyed.columns[OUT_VALUE].to_pylist(), strict=True)
            times = keyed.columns["_timestamp"].cast(pa.int64()).to_pylist()
            headers = keyed.columns["_headers"].to_pylist()
            sources = [source] * len(turns)
            several_columns = (turns, sources, whose, held, times, headers, ways_of(keyed.columns))
            rows += [row for row in zip(*several_columns, strict=True) if row[2][1] is not None]
    found = Changes()
    rows.sort(key=lambda row: row[0])
    current = _held(part, {row[2] for row in rows}, tasks, stores)
    latest: dict[tuple[int, bytes], int] = {}
    for place, source, at, (time, value), micros, headers, way in rows:
        if at not in latest:
            latest[at] = len(found.snapshots)
            found.snapshots.append((at[1], False, tuple(current[at])))
        current[at][source] = _NOTHING if value is None else (time, value)
        found.source.append(source)
        found.before.append(latest[at])
        found.after.append(len(found.snapshots))
        found.times.append(micros // 1000)
        found.headers.append(headers)
        found.places.append(place)
        found.ways.append(way)
        latest[at] = len(found.snapshots)
        found.snapshots.append((at[1], True, tuple(current[at])))
    return found


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


def _held(
    part: TablePart, wanted: set[tuple[int, bytes]], tasks: Mapping[int, Task], stores: Stores
) -> dict[tuple[int, bytes], list[_Held]]:
    """What each source's store has for the keys of these partitions, before the batch."""
    found: dict[tuple[int, bytes], list[_Held]] = {at: [] for at in wanted}
    by_partition: dict[int, list[bytes]] = {}
    for partition, key in sorted(wanted):
        by_partition.setdefault(partition, []).append(key)
    for partition, keys in by_partition.items():
        for node in part.sources:
            held = [each or _NOTHING for each in held_in(tasks[partition].stores[node.store], keys)]
            values = stores.shown_by(node.name)([value for _, value in held])
            for key, (time, _), value in zip(keys, held, values, strict=True):
                found[partition, key].append((time, value))
    return found
