"""The left side of a join by a foreign key: which rows it asks for, and what the result is once they come.

What Kafka Streams has asked of the right side is decided here where it is known here: a row without a foreign key has
its result, or has none any more, at once. Of every other row an answer is asked for, also where Kafka Streams asks for
none because the old row can't have been joined: there an answer that comes late may be dropped for one that never
comes, and the old result would stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from streams_runtime.pipeline.compile import Compiler
from streams_runtime.pipeline.encode import encoded
from streams_runtime.pipeline.foreign_keys import FOREIGN_KEY, OTHER, PRESENT
from streams_runtime.pipeline.nodes import KEPT, OUT_VALUE
from streams_runtime.pipeline.runner import Emission, TableRows
from streams_runtime.state.store import Updates
from streams_runtime.state.subscriptions import Instruction, Response, Subscription, hash_of
from streams_runtime.tasks.foreign_rows import At, Done, Event, Snapshots
from streams_runtime.tasks.task import Task
from streams_runtime.topology.foreign_key_nodes import ForeignKeyJoinNode
from streams_runtime.topology.table_parts import TablePart


@dataclass(frozen=True, slots=True)
class _Decided:
    """The last thing that a batch says of a row: the number of its snapshot, and the other table's row beside it."""

    snapshot: int
    other: bytes | None
    time: int


def subscriptions(old: bytes | None, new: bytes | None) -> list[tuple[bytes, Instruction]]:
    """What a left row asks for when its foreign key goes from `old` to `new`; None: no row, or none that it names.

    Each with the foreign key whose rows it goes to.
    """
    asked = []
    if old is not None and old != new:
        asked.append((old, Instruction.DELETE_KEY_NO_PROPAGATE))
    if new is not None:
        asked.append((new, Instruction.PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE))
    return asked


def joined(
    node: ForeignKeyJoinNode,
    side: TablePart,
    compiler: Compiler,
    events: Sequence[Event],
    snapshots: Snapshots,
    tasks: Mapping[int, Task],
) -> Done:
    """A batch's subscriptions, and what the stores of the result will hold.

    `events` are the changes of the source of `side` and the answers of the batch, in turn; there are some.

    Raises ProcessorStateException: a store can't be read.
    """
    keys: list[bytes | None] = []
    if any(event.message is None for event in events):
        keys = encoded(compiler.foreign_keys(node, side, snapshots.table())[FOREIGN_KEY])
    asked: list[tuple[bytes, bytes, int]] = []
    decided: dict[At, _Decided] = {}
    for event in events:
        mine = hash_of(snapshots.stored(event.after))
        if event.message is None:
            asked += _asked(event, keys[event.before], keys[event.after], mine)
            if keys[event.after] is None:
                decided[event.at] = _Decided(event.after, None, event.time)
        elif (response := Response.of(event.message)).hash == mine:
            decided[event.at] = _Decided(event.after, response.row, event.time)
    done = _result(node, side, compiler, snapshots, decided, tasks)
    if asked:
        foreign, told, times = zip(*asked, strict=True)
        done.emissions.append(Emission(node.registrations, True, list(foreign), list(told), list(times)))
    return done


def _asked(event: Event, old: bytes | None, new: bytes | None, mine: bytes | None) -> list[tuple[bytes, bytes, int]]:
    partition, key = event.at
    return [
        (foreign, Subscription(instruction, mine, key, partition).to_bytes(), event.time)
        for foreign, instruction in subscriptions(old, new)
    ]


def _result(
    node: ForeignKeyJoinNode,
    side: TablePart,
    compiler: Compiler,
    snapshots: Snapshots,
    decided: Mapping[At, _Decided],
    tasks: Mapping[int, Task],
) -> Done:
    """The rows of the result that change; one that was not there and is not now is no change."""
    if not decided:
        return Done()
    order = sorted(decided)
    chosen = [decided[at] for at in order]
    beside = pa.array([each.other for each in chosen], pa.binary())
    asked = snapshots.table([each.snapshot for each in chosen]).append_column(OTHER, beside)
    answer = compiler.joined_by_foreign_key(node, side, asked)
    rows = zip(answer[OUT_VALUE].to_pylist(), answer[PRESENT].to_pylist(), strict=True)
    values = [text.encode() if found else None for text, found in rows]
    done, changes = Done(), []
    for partition in sorted({partition for partition, _ in order}):
        mine = [row for row, at in enumerate(order) if at[0] == partition]
        store = tasks[partition].key_value_store(node.store)
        stored = store.get_stored([order[row][1] for row in mine])
        mine = [row for row, old in zip(mine, stored, strict=True) if old is not None or values[row] is not None]
        changes += mine
        if mine:
            times = [chosen[row].time for row in mine]
            done.updates.append((store, Updates([order[row][1] for row in mine], [values[row] for row in mine], times)))
    if changes:
        times = [chosen[row].time for row in changes]
        done.rows = _rows(answer.take(pa.array(changes)), [order[row][0] for row in changes], times)
    return done


def _rows(answer: pa.Table, partitions: list[int], times: list[int]) -> TableRows:
    return TableRows(
        pa.array(partitions, pa.int32()),
        answer["_key"],
        pa.array(times, pa.int64()),
        pa.Table.from_struct_array(answer[KEPT]),
        gone=pa.array([not found for found in answer[PRESENT].to_pylist()], pa.bool_()),
    )
