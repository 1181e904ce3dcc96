"""A stream beside a table, in whole columns: each record meets what a loop, record by record, would let it meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from join_rows import Row, changes_of, chunked, placed

from streams_runtime.batch.columns import MATCH, OUT_VALUE
from streams_runtime.batch.record_order import order_among, ordinals_among
from streams_runtime.batch.stage import StageInput, StoreBatch
from streams_runtime.processors.joins.stream_table_join import matched
from streams_runtime.state.shown_values import as_stored
from streams_runtime.state.store import stamp
from streams_runtime.topology.nodes.join_node import JoinNode

KEYS = st.none() | st.sampled_from(["", "a", "b", "c" * 40])
ROWS = st.lists(st.tuples(st.integers(0, 2), KEYS, st.integers(0, 9)), max_size=25)
VALUES = st.none() | st.binary(max_size=3)


@dataclass
class Store:
    held: dict[bytes, bytes] = field(default_factory=dict)

    def get_stored(self, keys: Sequence[bytes]) -> list[bytes | None]:
        assert list(keys) == sorted(set(keys)), "sorted keys are read faster"
        return [self.held.get(key) for key in keys]


def by_a_loop(
    rows: Sequence[Row], changes: StoreBatch, stores: dict[int, Store], records: pa.Table
) -> list[bytes | None]:
    held = {(at, key.decode()): value[8:] for at, store in stores.items() for key, value in store.held.items()}
    at, keys, values = changes.partitions.to_pylist(), changes.keys.to_pylist(), changes.columns[OUT_VALUE].to_pylist()
    turns, mine = ordinals_among((at, changes.columns), (records["_partition"].to_pylist(), records))
    events = [(turn, 0, row) for row, turn in enumerate(turns)] + [(turn, 1, row) for row, turn in enumerate(mine)]
    found: list[bytes | None] = [None] * len(rows)
    for _, of_stream, row in sorted(events):
        if of_stream:
            found[row] = None if rows[row][1] is None else held.get(rows[row][:2])  # type: ignore[arg-type]
        elif keys[row] is not None:
            held[at[row], keys[row]] = values[row]
    return found


@settings(max_examples=examples(300), deadline=None)
@given(ROWS, ROWS, st.data(), st.booleans())
def test_each_record_meets_what_the_table_holds_when_its_turn_comes(
    rows: list[Row], changed: list[Row], data: st.DataObject, left: bool
) -> None:
    values = data.draw(st.lists(VALUES, min_size=len(changed), max_size=len(changed)))
    stored = data.draw(st.dictionaries(st.tuples(st.integers(0, 2), KEYS), st.binary(max_size=3)))
    stores = {number: Store() for number in range(3)}
    for (number, key), value in stored.items():
        if key is not None:
            stores[number].held[key.encode()] = stamp(0, value)
    partitions, keys = [at for at, *_ in rows], [key for _, key, _ in rows]
    columns = {"_partition": chunked(partitions, pa.int32()), "_key": chunked(keys, pa.string())}
    records = pa.table({**columns, **placed("orders", rows)})
    join = StageInput(JoinNode("joined", "orders", "users", left, (), "p"), records)
    changes = changes_of(changed, values)
    expected = by_a_loop(rows, changes, stores, records)
    found = matched(join, changes, stores, as_stored)  # type: ignore[arg-type]
    kept = [row for row, value in enumerate(expected) if left or value is not None]
    assert found[MATCH].to_pylist() == [expected[row] for row in kept]
    assert found.drop_columns([MATCH]).to_pylist() == records.take(pa.array(kept, pa.int64())).to_pylist()


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.tuples(st.sampled_from("ab"), ROWS), min_size=1, max_size=3))
def test_numbers_of_turns_sort_as_places_do(given: list[tuple[str, list[Row]]]) -> None:
    several = [([at for at, *_ in rows], pa.table(placed(topic, rows))) for topic, rows in given]
    places = [place for each in ordinals_among(*several) for place in each]
    turns = [turn for each in order_among(*several) for turn in each.tolist()]
    assert sorted(range(len(places)), key=places.__getitem__) == sorted(range(len(turns)), key=turns.__getitem__)
