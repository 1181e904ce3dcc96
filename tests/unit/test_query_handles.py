"""Handles and iterators in every state of the client and of the store's partitions."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from query_fakes import KEYS, FakeClient, FakeView, client_with, entries_of, key_in

from streams_runtime.errors import (
    IllegalStateException,
    InvalidStateStoreException,
    InvalidStateStorePartitionException,
    StateStoreMigratedException,
    StateStoreNotAvailableException,
    StoreTypeMismatch,
    StreamsNotStartedException,
    StreamsRebalancingException,
    UnknownStateStoreException,
)
from streams_runtime.query.stores.key_value_handle import (
    KeyValue,
    ReadOnlyKeyValueStore,
    StoreQueryParameters,
    open_store,
)
from streams_runtime.states import ClientState

STARTED = [state for state in ClientState if state is not ClientState.CREATED]
RECORDS = sorted((KeyValue(key, {"n": number}) for number, key in enumerate(KEYS)), key=lambda r: r.key.encode())

METHODS: dict[str, Callable[[ReadOnlyKeyValueStore], object]] = {
    "get": lambda handle: handle.get(key_in(1)),
    "range": lambda handle: list(handle.range("A", "Z")),
    "reverse_range": lambda handle: list(handle.reverse_range("A", "Z")),
    "all": lambda handle: list(handle.all()),
    "reverse_all": lambda handle: list(handle.reverse_all()),
    "prefix_scan": lambda handle: list(handle.prefix_scan("U")),
    "approximate_num_entries": lambda handle: handle.approximate_num_entries(),
}
ANSWERS: dict[str, object] = {
    "get": {"n": KEYS.index("UA")},
    "range": [r for r in RECORDS if r.key < "Z"],
    "reverse_range": [r for r in reversed(RECORDS) if r.key < "Z"],
    "all": RECORDS,
    "reverse_all": RECORDS[::-1],
    "prefix_scan": [r for r in RECORDS if r.key == "UA"],
    "approximate_num_entries": len(KEYS),
}
ITERATOR_METHODS = ("next", "has_next", "peek_next_key")


def opened(client: FakeClient, partition: int | None = None) -> ReadOnlyKeyValueStore:
    return open_store(client, StoreQueryParameters("counts", "key-value", partition))


def outside_running(state: ClientState) -> type[InvalidStateStoreException]:
    """What any query meets in a started client that is not RUNNING."""
    return StreamsRebalancingException if state is ClientState.REBALANCING else StateStoreNotAvailableException


def make_open(_: FakeClient) -> None:
    pass


def make_closed(client: FakeClient) -> None:
    client.local.pop(1).is_open = False


def make_reopened(client: FakeClient) -> None:
    client.local[1].is_open = False
    client.local[1] = FakeView(1, entries_of(1))


def make_restoring(client: FakeClient) -> None:
    client.restoring.add(1)


def make_nothing_local(client: FakeClient) -> None:
    client.local.clear()


# --- looking a store up


@pytest.mark.parametrize("state", ClientState)
@pytest.mark.parametrize(
    ("prepare", "while_running"),
    [
        (make_open, None),
        (lambda client: setattr(client.local[1], "is_open", False), StateStoreMigratedException),
        (lambda client: (client.local.pop(1), make_restoring(client)), StreamsRebalancingException),
        (make_nothing_local, InvalidStateStorePartitionException),
    ],
    ids=["open", "closed", "restoring", "elsewhere"],
)
@pytest.mark.parametrize("partition", [None, 1])
def test_looking_up_a_store_meets_the_table(
    state: ClientState,
    prepare: Callable[[FakeClient], object],
    while_running: type[InvalidStateStoreException] | None,
    partition: int | None,
) -> None:
    client = client_with(0, 1)
    prepare(client)
    client.state = state
    expected = while_running
    if state is ClientState.CREATED:
        expected = StreamsNotStartedException
    elif state is not ClientState.RUNNING:
        expected = outside_running(state)
    if expected is None:
        assert opened(client, partition).get("UA") == ANSWERS["get"]
        return
    with pytest.raises(InvalidStateStoreException) as raised:
        opened(client, partition)
    assert raised.type is expected


@pytest.mark.parametrize("partition", [2, 3, -1])
def test_looking_up_a_partition_that_is_not_here_names_it(partition: int) -> None:
    with pytest.raises(InvalidStateStorePartitionException, match=f"partition {partition}"):
        opened(client_with(0, 1), partition)


@pytest.mark.parametrize("state", [ClientState.RUNNING, ClientState.REBALANCING])
def test_an_unknown_store_is_refused_with_the_names_that_there_are(state: ClientState) -> None:
    client = client_with(0)
    client.state = state
    with pytest.raises(UnknownStateStoreException, match=r"'count'.*only: counts; fix the name$"):
        open_store(client, StoreQueryParameters("count"))


def test_a_client_that_has_not_started_says_so_before_it_looks_at_the_name() -> None:
    client = client_with(0)
    client.state = ClientState.CREATED
    with pytest.raises(StreamsNotStartedException):
        open_store(client, StoreQueryParameters("count"))


def test_another_type_of_store_is_a_type_mismatch() -> None:
    with pytest.raises(StoreTypeMismatch, match=r"'key-value', not 'window'"):
        open_store(client_with(0), StoreQueryParameters("counts", "window"))


# --- the methods of a handle


@pytest.mark.parametrize("state", STARTED)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("happening", [make_open, make_closed, make_reopened])
def test_each_method_meets_the_table_of_its_partition(
    state: ClientState, method: str, happening: Callable[[FakeClient], None]
) -> None:
    client = client_with(0, 1, 2)
    handle = opened(client)
    happening(client)
    client.state = state
    if state is ClientState.RUNNING and happening is make_open:
        assert METHODS[method](handle) == ANSWERS[method]
        return
    expected = StateStoreMigratedException if state is ClientState.RUNNING else outside_running(state)
    with pytest.raises(InvalidStateStoreException) as raised:
        METHODS[method](handle)
    assert raised.type is expected


@pytest.mark.parametrize("state", STARTED)
@pytest.mark.parametrize("method", METHODS)
def test_each_method_waits_for_an_assigned_partition_that_is_being_restored(state: ClientState, method: str) -> None:
    client = client_with(0, 2)
    handle = opened(client)
    make_restoring(client)
    client.state = state
    expected = StreamsRebalancingException if state is ClientState.RUNNING else outside_running(state)
    with pytest.raises(InvalidStateStoreException) as raised:
        METHODS[method](handle)
    assert raised.type is expected


@pytest.mark.parametrize("state", STARTED)
def test_a_key_of_a_partition_that_is_elsewhere_is_never_simply_absent(state: ClientState) -> None:
    client = client_with(0, 2)
    handle = opened(client)
    client.state = state
    expected = InvalidStateStorePartitionException if state is ClientState.RUNNING else outside_running(state)
    with pytest.raises(InvalidStateStoreException) as raised:
        handle.get("UA")
    assert raised.type is expected


def test_a_key_is_found_while_another_partition_is_closed_or_restoring() -> None:
    client = client_with(0, 1, 2)
    handle = opened(client)
    make_closed(client)
    make_restoring(client)
    assert handle.get("AA") == {"n": 0}


def test_an_absent_key_is_none() -> None:
    assert opened(client_with(0, 1, 2)).get("nobody") is None


def test_a_narrowed_handle_reads_its_partition_alone() -> None:
    handle = opened(client_with(0, 1, 2), partition=1)
    assert [record.key for record in handle.all()] == ["UA"]
    assert handle.approximate_num_entries() == 1
    with pytest.raises(
        InvalidStateStorePartitionException, match="partition 0, and the handle was made for partition 1"
    ):
        handle.get("AA")


def test_a_handle_goes_on_after_a_rebalance_that_left_its_partitions_in_place() -> None:
    client = client_with(0, 1, 2)
    handle = opened(client)
    client.state = ClientState.REBALANCING
    with pytest.raises(StreamsRebalancingException):
        handle.get("UA")
    client.state = ClientState.RUNNING
    assert handle.get("UA") == ANSWERS["get"]


def test_a_partition_that_arrives_is_read_and_its_leaving_is_noticed() -> None:
    client = client_with(0, 2)
    handle = opened(client)
    client.local[1] = FakeView(1, entries_of(1))
    assert list(handle.all()) == RECORDS
    make_closed(client)
    with pytest.raises(StateStoreMigratedException):
        handle.all()


def test_range_ends_are_inclusive_and_may_be_open_or_reversed() -> None:
    handle = opened(client_with(0, 1, 2))
    assert [r.key for r in handle.range("B6", "UA")] == ["B6", "DL", "EV", "UA"]
    assert [r.key for r in handle.range(None, "B6")] == ["AA", "B6"]
    assert [r.key for r in handle.range("WN", None)] == ["WN", "hello", "ü"]
    assert list(handle.range("UA", "B6")) == []


def test_a_key_of_another_type_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="string"):
        opened(client_with(0)).get(5)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("state", [ClientState.RUNNING, ClientState.PENDING_SHUTDOWN])
def test_a_partition_that_closes_under_a_read_is_judged_by_the_clients_state(method: str, state: ClientState) -> None:
    client = client_with(0, 1, 2)
    handle = opened(client)
    view = client.local[1]

    def lose() -> None:
        client.state = state
        view.lost = True
        FakeView.check(view)

    view.check = lose  # type: ignore[method-assign]
    expected = StateStoreMigratedException if state is ClientState.RUNNING else StateStoreNotAvailableException
    with pytest.raises(InvalidStateStoreException) as raised:
        METHODS[method](handle)
    assert raised.type is expected
    assert all(scan.closed for each in client.local.values() for scan in each.scans)


# --- iterators


@pytest.mark.parametrize("state", STARTED)
@pytest.mark.parametrize("method", ITERATOR_METHODS)
@pytest.mark.parametrize("happening", [make_open, make_closed])
@pytest.mark.parametrize("scan", ["range", "all", "reverse_range", "reverse_all", "prefix_scan"])
def test_each_iterator_method_meets_the_table_in_mid_iteration(
    state: ClientState, method: str, happening: Callable[[FakeClient], None], scan: str
) -> None:
    client = client_with(0, 1, 2)
    handle = opened(client)
    arguments = {"range": (None, None), "reverse_range": (None, None), "prefix_scan": ("",)}.get(scan, ())
    with getattr(handle, scan)(*arguments) as records:
        first = next(records)
        happening(client)
        client.state = state
        if state is ClientState.RUNNING and happening is make_open:
            second = (RECORDS[::-1] if scan.startswith("reverse") else RECORDS)[1]
            assert getattr(records, method)() == {"next": second, "has_next": True, "peek_next_key": second.key}[method]
            assert first != second
            return
        expected = StateStoreMigratedException if state is ClientState.RUNNING else outside_running(state)
        for _ in range(2):
            with pytest.raises(InvalidStateStoreException) as raised:
                getattr(records, method)()
            assert raised.type is expected


def test_an_iterator_goes_on_after_a_rebalance_that_left_its_partitions_in_place() -> None:
    client = client_with(0, 1, 2)
    with opened(client).all() as records:
        seen = [records.next()]
        client.state = ClientState.REBALANCING
        with pytest.raises(StreamsRebalancingException):
            records.next()
        client.state = ClientState.RUNNING
        assert [*seen, *records] == RECORDS


def test_a_read_that_failed_in_mid_merge_never_looks_like_the_end() -> None:
    client = client_with(0, 1, 2)
    records = opened(client).all()
    records.next()
    client.local[0].lost = True
    for _ in range(3):
        with pytest.raises(StateStoreMigratedException, match="partitions 0, 1, 2"):
            list(records)


def test_has_next_and_peek_do_not_move_on() -> None:
    with opened(client_with(0, 1, 2)).range("A", "B") as records:
        assert records.has_next()
        assert records.peek_next_key() == "AA"
        assert records.next() == RECORDS[0]
        assert not records.has_next()
        with pytest.raises(StopIteration):
            records.peek_next_key()
        with pytest.raises(StopIteration):
            records.next()


@pytest.mark.parametrize("method", ITERATOR_METHODS)
def test_a_closed_iterator_refuses_every_call(method: str) -> None:
    records = opened(client_with(0, 1, 2)).all()
    records.next()
    records.close()
    records.close()
    with pytest.raises(IllegalStateException, match="was closed"):
        getattr(records, method)()


@pytest.mark.parametrize("end", ["close", "exhaust"])
def test_an_iterator_gives_the_stores_resources_back(end: str) -> None:
    client = client_with(0, 1, 2)
    records = opened(client).all()
    records.next()
    if end == "close":
        records.close()
    else:
        list(records)
    scans = [scan for view in client.local.values() for scan in view.scans]
    assert len(scans) == 3
    assert all(scan.closed for scan in scans)


@given(
    st.dictionaries(st.text(max_size=3), st.integers()),
    st.integers(1, 5),
    st.text(max_size=3),
    st.text(max_size=3),
)
def test_a_composite_reads_as_one_sorted_store(data: dict[str, int], partitions: int, start: str, end: str) -> None:
    keys = tuple(data)
    views = {p: FakeView(p, entries_of(p, keys, partitions)) for p in range(partitions)}
    handle = opened(FakeClient(views, partitions=partitions))
    ordered = sorted(keys, key=str.encode)
    assert [r.key for r in handle.all()] == ordered
    assert [r.key for r in handle.reverse_all()] == ordered[::-1]
    between = [key for key in ordered if start.encode() <= key.encode() <= end.encode()]
    assert [r.key for r in handle.range(start, end)] == between
    assert [r.key for r in handle.prefix_scan(start)] == [key for key in ordered if key.startswith(start)]
    assert all(handle.get(key) == {"n": keys.index(key)} for key in keys)
