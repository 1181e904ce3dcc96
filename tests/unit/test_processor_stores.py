"""A processor's view of its store: typed, over what is committed, and as the store will be once the batch is."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from processor_kit import ModelStore
from state_kit import key_value_store, memory_folder

from streams_runtime.batch.json_columns import json_rows
from streams_runtime.errors import ProcessorStateException, TopologyException
from streams_runtime.processors.user_processors.declared_types import ValueCodec, columns_type, key_type
from streams_runtime.processors.user_processors.processor_call import Call, CurrentCall
from streams_runtime.processors.user_processors.processor_context import ProcessorContext
from streams_runtime.processors.user_processors.stores.session_store_view import SessionStoreView
from streams_runtime.processors.user_processors.stores.state_store_view import StateStoreView
from streams_runtime.processors.user_processors.stores.store_overlay import StoreOverlay
from streams_runtime.processors.user_processors.stores.stored_forms import StoredForms
from streams_runtime.processors.user_processors.stores.window_store_view import WindowStoreView
from streams_runtime.state.serdes import key_serde
from streams_runtime.state.store import KeyValueStore, unstamp
from streams_runtime.topology.nodes.source_and_sink_nodes import Format

ALL = (
    "a STRING, b DOUBLE, c TIMESTAMP, d DATE, e BOOLEAN, f BINARY, g TINYINT, h SMALLINT, i INT, j BIGINT, k FLOAT,"
    " l ARRAY<STRUCT<x: INT, y: BINARY>>, m STRUCT<z: ARRAY<DOUBLE>>"
)
WHOLE = {
    "a": "ä",
    "b": math.inf,
    "c": datetime(2024, 1, 2, 3, 4, 5, 6, UTC),
    "d": date(2024, 2, 29),
    "e": True,
    "f": b"\0\xff",
    "g": -128,
    "h": 7,
    "i": 8,
    "j": 2**63 - 1,
    "k": 0.5,
    "l": [{"x": 1, "y": b"z"}, None, {"x": None, "y": None}],
    "m": {"z": [0.1, None, -math.inf]},
}


IDLE = CurrentCall(Call())


def view_of(
    store: KeyValueStore | StoreOverlay, value: str = "n BIGINT", keys: str = "string", current: CurrentCall = IDLE
) -> StateStoreView:
    """A view of a store, or of one over which a batch writes."""
    written = StoreOverlay(store) if isinstance(store, KeyValueStore) else store
    forms = StoredForms("seen", keys, key_serde(Format(keys)), ValueCodec(columns_type(value)))
    return StateStoreView("seen", forms, written, current)


@pytest.fixture
def store() -> Iterator[KeyValueStore]:
    with memory_folder() as folder, key_value_store(folder) as made:
        yield made


def test_values_of_every_type_come_back_and_lie_in_the_store_as_those_of_tables_do() -> None:
    kind = columns_type(ALL)
    codec = ValueCodec(kind)
    nothing = dict.fromkeys(WHOLE)
    for value in (WHOLE, nothing):
        data = codec.encode(value)
        assert [data] == json_rows(pa.Table.from_struct_array(pa.array([value], kind)))
        assert codec.decode(data) == value
    nan = codec.decode(codec.encode(nothing | {"b": math.nan}))["b"]
    assert math.isnan(nan)


def test_a_column_that_was_not_there_when_a_value_was_written_is_none() -> None:
    assert ValueCodec(columns_type("n BIGINT, more STRING")).decode(b'{"n":1,"gone":2}') == {"n": 1, "more": None}


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ({}, "the field 'n' is missing"),
        ({"n": 1, "m": 2}, "there is no field 'm'"),
        ({"n": "x"}, "int"),
        ({"n": 2**63}, "too big|too large|out of"),
        (5, "struct"),
    ],
)
def test_a_value_of_another_type_is_refused(value: Any, found: str, store: KeyValueStore) -> None:
    with pytest.raises(ValueError, match=f"a value of the store 'seen' is not of its declared type: .*({found})"):
        view_of(store).put("a", value)


@pytest.mark.parametrize(("keys", "key"), [("string", 5), ("long", "a"), ("long", True), ("bytes", "a"), ("int", None)])
def test_a_key_of_another_type_is_refused(keys: str, key: Any, store: KeyValueStore) -> None:
    with pytest.raises(TypeError, match="'seen'"):
        view_of(store, keys=keys).get(key)


def test_only_texts_and_bytes_have_prefixes(store: KeyValueStore) -> None:
    with pytest.raises(TypeError, match="no texts and no bytes; use range"):
        view_of(store, keys="long").prefix_scan(1)


def test_what_a_store_holds_of_another_type_is_told_by_its_name(store: KeyValueStore) -> None:
    view_of(store, "n STRING").put("a", {"n": "x"})
    written = StoreOverlay(store)
    view_of(written, "n STRING").put("a", {"n": "x"})
    store.write(written.take_updates(), None)
    with pytest.raises(ProcessorStateException, match="store seen has a value that is not of its declared type"):
        view_of(store, "n BIGINT").get("a")


def test_a_value_that_was_read_can_be_changed_without_changing_the_store(store: KeyValueStore) -> None:
    view = view_of(store, "n BIGINT, all ARRAY<BIGINT>")
    given = {"n": 1, "all": [1]}
    view.put("a", given)
    given["all"].append(2)  # type: ignore[attr-defined]
    view.get("a")["all"].append(3)
    assert view.get("a") == {"n": 1, "all": [1]}


def test_updates_have_the_time_of_what_wrote_them_and_each_key_once(store: KeyValueStore) -> None:
    written, current = StoreOverlay(store), CurrentCall(Call(5))
    view = view_of(written, current=current)
    view.put("a", {"n": 1})
    view.put("b", {"n": 1})
    current.now = Call(7)
    view.put("a", {"n": 2})
    assert view.delete("b") == {"n": 1}
    updates = written.take_updates()
    store.write(updates, None)
    assert dict(zip(updates.keys, updates.values, strict=True)) == {b"a": b'{"n":2}', b"b": None}
    (stored,) = store.get_stored([b"a"])
    assert stored is not None
    assert unstamp(stored) == (7, b'{"n":2}')
    assert len(written.take_updates()) == 0


def test_an_iterator_shows_the_store_as_it_was_when_it_was_asked_for(store: KeyValueStore) -> None:
    view = view_of(store)
    view.put("a", {"n": 1})
    view.put("c", {"n": 3})
    found = view.all()
    view.put("b", {"n": 2})
    view.delete("c")
    assert list(found) == [("a", {"n": 1}), ("c", {"n": 3})]
    assert [key for key, _ in view.all()] == ["a", "b"]


def test_an_iterator_ends_with_the_call_that_asked_for_it(store: KeyValueStore) -> None:
    current = CurrentCall(Call(5))
    view = view_of(store, current=current)
    view.put("a", {"n": 1})
    view.put("b", {"n": 2})
    found = view.all()
    assert next(found) == ("a", {"n": 1})
    current.now = Call(5)
    with pytest.raises(RuntimeError, match="an iterator of the store 'seen' is for the call of process"):
        next(found)


KEYS = ("a", "ab", "ab\uffff", "b", "ba", "c")
OPERATIONS = ("put", "delete", "absent", "get", "range", "reverse", "all", "prefix", "commit")


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.tuples(st.sampled_from(OPERATIONS), st.sampled_from(KEYS), st.sampled_from(KEYS)), max_size=25))
def test_reads_are_those_of_a_mapping_wherever_batches_end(steps: list[tuple[str, str, str]]) -> None:
    with memory_folder() as folder, key_value_store(folder) as store:
        written, model = StoreOverlay(store), ModelStore()
        view = view_of(written)
        for number, (operation, key, other) in enumerate(steps):
            value = {"n": number}
            answers = [_answer(each, operation, key, other, value) for each in (view, model)]
            assert answers[0] == answers[1], operation
            if operation == "commit":
                store.write(written.take_updates(), None)
        assert list(view.all()) == list(model.all())


def _answer(store: Any, operation: str, key: str, other: str, value: dict[str, int]) -> Any:
    calls = {
        "put": lambda: store.put(key, value),
        "delete": lambda: store.delete(key),
        "absent": lambda: store.put_if_absent(key, value),
        "range": lambda: list(store.range(key, other)),
        "reverse": lambda: list(store.range(key, other, reverse=True)),
        "all": lambda: list(store.all(reverse=True)),
        "prefix": lambda: list(store.prefix_scan(key)),
        "get": lambda: store.get(key),
        "commit": lambda: None,
    }
    return calls[operation]()


def test_keys_have_the_order_of_their_bytes(store: KeyValueStore) -> None:
    view = view_of(store, keys="long")
    for key in (-1, 0, 1, 2):
        view.put(key, {"n": key})
    assert [key for key, _ in view.all()] == [0, 1, 2, -1]
    assert [key for key, _ in view.range(1, None)] == [1, 2, -1]


def test_types_that_json_does_not_hold_have_no_place_here() -> None:
    with pytest.raises(TopologyException):
        columns_type("n DECIMAL(3, 1)")
    assert key_type("BIGINT") == pa.int64()


def test_users_see_of_contexts_and_stores_what_kafka_streams_has_and_nothing_more() -> None:
    assert _public(StateStoreView) == {"get", "put", "put_if_absent", "delete", "range", "all", "prefix_scan"}
    assert _public(WindowStoreView) == {"put", "fetch", "fetch_all", "all"}
    found = {"put", "remove", "fetch_session", "fetch", "find_sessions", "all"}
    assert _public(SessionStoreView) == found
    assert _public(ProcessorContext) == {
        "forward",
        "forward_batch",
        "state_store",
        "schedule",
        "record_metadata",
        "current_stream_time_ms",
        "current_system_time_ms",
    }


def _public(kind: type) -> set[str]:
    return {name for name in vars(kind) if not name.startswith("_")}
