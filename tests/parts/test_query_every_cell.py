"""The six exceptions (KIP-216): every client state, every state of the store, every method, on real stores.

The tables stand in support/query_cells.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from query_cells import ARRIVING, ENDING, HELD, LOOKUP, PLACES, STARTED
from query_methods import METHODS, Method
from query_stage import SPECS, STORES, Place, QueryStage

from streams_runtime.errors import (
    FatalStateStoreException,
    InvalidStateStoreException,
    InvalidStateStorePartitionException,
    RetryableStateStoreException,
    StateStoreMigratedException,
    StateStoreNotAvailableException,
    StoreTypeMismatch,
    StreamsNotStartedException,
    StreamsRebalancingException,
    UnknownStateStoreException,
)
from streams_runtime.query.stores.key_value_handle import StoreQueryParameters, open_store
from streams_runtime.states import ClientState

pytestmark = pytest.mark.filterwarnings("ignore:times as ints:DeprecationWarning")

LETTERS = {
    StreamsNotStartedException: "S",
    StreamsRebalancingException: "B",
    StateStoreMigratedException: "M",
    StateStoreNotAvailableException: "N",
    UnknownStateStoreException: "U",
    InvalidStateStorePartitionException: "P",
}


def opened(stage: QueryStage, store: str, partition: int | None = None, stale: bool = False) -> Any:
    return open_store(stage, StoreQueryParameters(store, SPECS[store].kind, partition, stale))


def outcome(call: Callable[[], object]) -> str:
    """The letter of what the call met."""
    try:
        call()
    except InvalidStateStoreException as error:
        return LETTERS[type(error)]
    return "."


def answered(method: Method, handle: Any) -> Any:
    if not method.iterates:
        return method.call(handle)
    with method.call(handle) as records:
        return [tuple(record) for record in records]


def expected_row(table: dict[str, str], state: ClientState, place: Place) -> str:
    return (table | ENDING)[state][PLACES.index(place)]


def test_the_tables_name_every_state_once() -> None:
    assert all({*rows, *ENDING} == set(ClientState) for rows in LOOKUP.values())
    assert all({*rows, *ENDING} == set(STARTED) for rows in [*HELD.values(), *ARRIVING.values()])
    assert set(PLACES) == set(Place)


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("place", PLACES)
def test_looking_a_store_up_meets_the_table(stage: QueryStage, store: str, place: Place) -> None:
    stage.put(1, place)
    met, table = {}, {}
    for state in ClientState:
        stage.state = state
        for (stale, partition), rows in LOOKUP.items():
            cell = (str(state), stale, partition)
            met[cell] = outcome(lambda p=partition, s=stale: opened(stage, store, p, s))
            table[cell] = expected_row(rows, state, place)
    assert met == table


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("stale", [False, True])
@pytest.mark.parametrize("place", PLACES)
def test_every_method_of_a_handle_meets_the_table(stage: QueryStage, store: str, stale: bool, place: Place) -> None:
    handle = opened(stage, store, stale=stale)
    stage.put(1, place)
    met, table = {}, {}
    for state in STARTED:
        stage.state = state
        for method in METHODS[store]:
            cell = (str(state), method.name)
            table[cell] = expected_row(HELD[stale], state, place)
            met[cell] = outcome(lambda m=method: answered(m, handle))
            if table[cell] == met[cell] == ".":
                assert answered(method, handle) == method.answer({0, 1, 2}), cell
    assert met == table


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("stale", [False, True])
@pytest.mark.parametrize("place", PLACES)
def test_every_method_of_an_iterator_meets_the_table_in_mid_iteration(
    stage: QueryStage, store: str, stale: bool, place: Place
) -> None:
    handle = opened(stage, store, stale=stale)
    methods = [method for method in METHODS[store] if method.iterates]
    # `next` moves on, so each state has iterators of its own.
    iterators = {(state, method.name): method.call(handle) for state in STARTED for method in methods}
    for records in iterators.values():
        records.next()
    stage.put(1, place)
    met, table = {}, {}
    for (state, name), records in iterators.items():
        stage.state = state
        for step in ("has_next", "peek_next_key", "next"):
            met[state, name, step] = outcome(getattr(records, step))
            table[state, name, step] = expected_row(HELD[stale], state, place)
        records.close()  # never raises, so that `with` can end whatever became of the store
        records.close()
    assert met == table


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("stale", [False, True])
@pytest.mark.parametrize("place", PLACES)
def test_every_method_meets_the_table_of_a_partition_that_was_elsewhere(
    stage: QueryStage, store: str, stale: bool, place: Place
) -> None:
    stage.put(1, Place.ELSEWHERE)
    cells = [(state, method) for state in STARTED for method in METHODS[store]]
    # A handle that has read a partition once holds on to it, so each cell has its own.
    handles = [opened(stage, store, stale=stale) for _ in cells]
    stage.put(1, place)
    met, table = {}, {}
    for (state, method), handle in zip(cells, handles, strict=True):
        stage.state = state
        table[state, method.name] = expected = expected_row(ARRIVING[stale, method.one_key], state, place)
        met[state, method.name] = outcome(lambda m=method, h=handle: answered(m, h))
        if expected == met[state, method.name] == ".":
            local = {0, 2} if place is Place.ELSEWHERE or (place is Place.STANDBY and not stale) else {0, 1, 2}
            assert answered(method, handle) == method.answer(local), (state, method.name)
    assert met == table


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("state", ClientState)
def test_an_unknown_name_and_another_type_are_told_where_the_client_answers_at_all(
    stage: QueryStage, store: str, state: ClientState
) -> None:
    stage.state = state
    row = {"CREATED": "S", "REBALANCING": "U", "RUNNING": "U"} | dict.fromkeys(ENDING, "N")
    assert outcome(lambda: open_store(stage, StoreQueryParameters("nothing", SPECS[store].kind))) == row[state]
    if row[state] == "U":
        for other in {spec.kind for spec in SPECS.values()} - {SPECS[store].kind}:
            with pytest.raises(StoreTypeMismatch, match=f"'{SPECS[store].kind}', not '{other}'"):
                open_store(stage, StoreQueryParameters(store, other))


def test_nothing_local_is_elsewhere(stage: QueryStage) -> None:
    stage.put_all(Place.ELSEWHERE)
    for store in STORES:
        assert [outcome(lambda s=store, st=st: opened(stage, s, stale=st)) for st in (False, True)] == ["P", "P"]


def test_each_letter_is_one_of_the_six_in_its_category() -> None:
    retryable = {error for error in LETTERS if issubclass(error, RetryableStateStoreException)}
    assert {LETTERS[error] for error in retryable} == {"S", "B", "M"}
    assert all(issubclass(error, FatalStateStoreException) for error in {*LETTERS} - retryable)
