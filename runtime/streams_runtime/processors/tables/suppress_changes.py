"""A toStream with suppress: of each key's changes within a time the last one goes on, once its time has come."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pyarrow as pa

from streams_runtime.batch.columns import (
    ELEMENT,
    FROM_OFFSET,
    FROM_TOPIC,
    NULL_VALUE,
    ORDER_TIME,
    OUT_TIME,
    OUT_VALUE,
    WINDOW_END,
    WINDOW_START,
)
from streams_runtime.batch.encode import Bytes, encoded, windowed_keys
from streams_runtime.batch.record_order import Ordinal, fork_paths_of, ordinals
from streams_runtime.batch.rows import moments
from streams_runtime.batch.stage import StageInput
from streams_runtime.errors import StreamsException
from streams_runtime.processors.contract import Applied, ApplyContext
from streams_runtime.processors.tables.change_buffer import BufferFull, ChangeBuffer
from streams_runtime.state.open_store import AnyStore
from streams_runtime.state.serdes import Serde
from streams_runtime.state.store import Updates, unstamp
from streams_runtime.state.suppress_store import Change, SuppressStore, change_key, change_of, packed, unpacked
from streams_runtime.topology.nodes.suppress_node import SuppressNode
from streams_runtime.topology.nodes.window_kinds import SessionWindows, Windows
from streams_runtime.topology.table_parts import windows_of

_TIME_BYTES = 8


@dataclass(frozen=True, slots=True)
class _Gone:
    """A change that goes on, the row of the batch with which it does, and its partition."""

    row: int
    partition: int
    key: bytes
    change: Change


@dataclass(slots=True)
class Suppressed:
    """What a batch comes to: the changes that go on, and what the stores will hold."""

    rows: pa.Table
    updates: list[tuple[AnyStore, Updates]] = field(default_factory=list)


def apply(given: StageInput, context: ApplyContext) -> Applied:
    """The changes that go on, and what the store will hold."""
    node = given.node
    assert isinstance(node, SuppressNode)
    stores = {partition: cast(SuppressStore, store) for partition, store in context.stores_of(node.store).items()}
    windows = windows_of(context.sub, node.input)
    found = suppressed(node, given.rows, stores, context.spark.key_serde(node.name), windows)
    return Applied(updates=found.updates, rows=found.rows)


def suppressed(
    node: SuppressNode, rows: pa.Table, stores: dict[int, SuppressStore], keys: Serde, windows: Windows | None
) -> Suppressed:
    """Put a batch's changes into the buffers of their partitions, in their order; writes nothing.

    `stores` are by partition, `keys` is the keys' serde, `windows` are those in the keys.

    Raises:
        ProcessorStateException: a store can't be read.
        StreamsException: a buffer is full, and the node's `full` is `fail`.
    """
    result = Suppressed(rows)
    gone: list[_Gone] = []
    made, times = _changes(rows), rows[OUT_TIME].to_pylist()
    whole_keys = _keys(rows, windows)
    found = ordinals(rows["_partition"].to_pylist(), rows)
    for partition, in_order in _in_turn(rows, found).items():
        store = stores[partition]
        buffer = ChangeBuffer(node, store.waiting())
        passed: list[tuple[int, bytes, bytes | None]] = []
        try:
            for row in in_order:
                key = whole_keys[row]
                assert key is not None, "a row of a table has a key"
                passed += [(row, each.key, each.change) for each in buffer.put(key, times[row], made[row])]
        except BufferFull as error:
            raise _too_full(node, store, error) from error
        gone += _with_what_the_store_holds(partition, passed, store)
        if len(updates := buffer.updates()):
            result.updates.append((store, updates))
    result.rows = _table(rows, [time for _, time, *_ in found], gone, keys, windows)
    return result


def _too_full(node: SuppressNode, store: SuppressStore, error: BufferFull) -> StreamsException:
    records = "" if node.records is None else f" of at most {node.records}"
    size = "" if node.bytes is None else f" of at most {node.bytes}"
    return StreamsException(
        f"{node.path}.toStream.suppress.buffer: the buffer of {node.name}, partition {store.partition}, is full:"
        f" {error.records} keys{records} have changes that wait, with {error.size} bytes{size}. Give it more room or a"
        " shorter time (within), or let the oldest changes go on before theirs (full: emitEarly)"
    )


def _with_what_the_store_holds(
    partition: int, passed: Sequence[tuple[int, bytes, bytes | None]], store: SuppressStore
) -> Iterator[_Gone]:
    wanted = [key for _, key, change in passed if change is None]
    stored = dict(zip(wanted, store.get_stored([change_key(key) for key in wanted]), strict=True))
    for row, key, change in passed:
        if change is None:
            held = stored[key]
            assert held is not None, "the store's index holds what it does"
            change = change_of(unstamp(held)[1])  # noqa: PLW2901 - what the loop gives is a key's, or the store's
        yield _Gone(row, partition, key, unpacked(change))


def _in_turn(rows: pa.Table, ordinals: Sequence[Ordinal]) -> dict[int, list[int]]:
    """The rows of each partition in their order."""
    sort_keys = list(zip(ordinals, fork_paths_of(rows), strict=True))
    found: defaultdict[int, list[int]] = defaultdict(list)
    for row in sorted(range(len(sort_keys)), key=sort_keys.__getitem__):
        partition, *_ = ordinals[row]
        found[partition].append(row)
    return found


def _keys(rows: pa.Table, windows: Windows | None) -> Bytes:
    """The keys' bytes, of windows with their times, as they go to a topic."""
    plain = encoded(rows["_key"])
    if windows is None:
        return plain
    starts, ends = (_milliseconds(rows[name]) for name in (WINDOW_START, WINDOW_END))
    return windowed_keys(plain, starts, ends if isinstance(windows, SessionWindows) else None)


def _changes(rows: pa.Table) -> list[bytes]:
    columns = [rows[name].to_pylist() for name in (OUT_TIME, "_topic", "_offset", "_headers")]
    changes = zip(*columns, encoded(rows[OUT_VALUE]), strict=True)
    return [packed(Change(time, topic, offset, headers, value)) for time, topic, offset, headers, value in changes]


def _table(
    rows: pa.Table, order_times: Sequence[int], gone: Sequence[_Gone], keys: Serde, windows: Windows | None
) -> pa.Table:
    """The changes as the next stage reads them.

    Each has the metadata of the record that brought it about, and its turn when the change comes with which it goes on.
    """
    which = pa.array([each.row for each in gone], pa.int64())
    split = [_split(each.key, windows) for each in gone]
    changes = [each.change for each in gone]
    values = [each.value for each in changes]
    columns = {
        "_key": pa.array([keys.decode(key) for key, _, _ in split], rows["_key"].type),
        "_timestamp": moments(pa.array([each.time for each in changes], pa.int64())),
        "_topic": pa.array([each.topic for each in changes], pa.string()),
        "_partition": pa.array([each.partition for each in gone], pa.int32()),
        "_offset": pa.array([each.offset for each in changes], pa.int64()),
        "_headers": pa.array([each.headers for each in changes], rows["_headers"].type),
        NULL_VALUE: pa.array([each is None for each in values], pa.bool_()),
        OUT_VALUE: pa.array(values, pa.binary()).cast(pa.string()),
        FROM_TOPIC: rows[FROM_TOPIC].take(which),
        FROM_OFFSET: rows[FROM_OFFSET].take(which),
        ORDER_TIME: pa.array([order_times[each.row] for each in gone], pa.timestamp("us", tz="UTC")),
        ELEMENT: pa.array(_elements(rows, which), pa.list_(pa.int32())),
    }
    if windows is not None:
        columns[WINDOW_START] = moments(pa.array([start for _, start, _ in split], pa.int64()))
        columns[WINDOW_END] = moments(pa.array([end for _, _, end in split], pa.int64()))
    return pa.table(columns)


def _elements(rows: pa.Table, which: pa.Array) -> list[list[int]]:
    """Where each change stands among all that come of the record with which it goes on."""
    return [[*path, number] for number, path in enumerate(fork_paths_of(rows.take(which)))]


def _split(key: bytes, windows: Windows | None) -> tuple[bytes, int, int]:
    """Key, start and end of what `_keys` has made; without windows the times mean nothing."""
    if windows is None:
        return key, 0, 0
    if isinstance(windows, SessionWindows):
        plain, end = key[: -2 * _TIME_BYTES], key[-2 * _TIME_BYTES : -_TIME_BYTES]
        return plain, int.from_bytes(key[-_TIME_BYTES:], "big"), int.from_bytes(end, "big")
    start = int.from_bytes(key[-_TIME_BYTES:], "big")
    return key[:-_TIME_BYTES], start, windows.end_of(start)


def _milliseconds(times: pa.ChunkedArray) -> Any:
    return times.cast(pa.timestamp("ms", tz="UTC")).cast(pa.int64())
