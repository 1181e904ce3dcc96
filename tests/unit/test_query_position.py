"""What an answer has to contain (PositionBound): how it is written, and which stores contain it."""

from __future__ import annotations

import pytest
from query_fakes import PARTITIONS, FakeClient, client_with, key_in

from streams_runtime.errors import NotUpToBoundException
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.query.stores.composite import CompositeStore
from streams_runtime.query.stores.key_value_handle import StoreQueryParameters, open_store
from streams_runtime.query.stores.position_bound import PositionBound, bound_texts, parse_bound
from streams_runtime.query.stores.store_target import target_of
from streams_runtime.query.stores.views import StoreType
from streams_runtime.query.wire.problems import InvalidQueryException

FLIGHTS = [TopicPartition("flights", number) for number in range(PARTITIONS)]
CARRIERS = TopicPartition("carriers", 0)


def at(**positions: int) -> FakeClient:
    """A client whose partition `flights_N` has this offset next."""
    client = client_with(*range(PARTITIONS))
    for name, offset in positions.items():
        number = int(name.removeprefix("flights_"))
        client.local[number].position = {FLIGHTS[number]: offset}
    return client


def opened(client: FakeClient, bound: PositionBound) -> CompositeStore:
    return CompositeStore(target_of(client, "counts", StoreType.KEY_VALUE, bound=bound))


@pytest.mark.parametrize(
    "bound",
    [
        {},
        {TopicPartition("orders", 2): 57},
        {TopicPartition("a-1", 0): 0, TopicPartition("a.b_c-2-3", 11): 2**62},
    ],
)
def test_a_bound_is_read_as_it_is_written(bound: PositionBound) -> None:
    assert parse_bound("position", bound_texts(bound)) == bound


def test_of_one_partition_the_largest_offset_counts() -> None:
    assert parse_bound("position", ["a-0:5", "a-0:7", "a-0:6"]) == {TopicPartition("a", 0): 7}


@pytest.mark.parametrize(
    "text", ["", "orders", "orders-2", "orders:57", "-2:57", "orders-2:", "orders-2:-1", "o-x:1", "o-1:²"]
)
def test_another_text_is_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidQueryException, match=r"position: .* such as orders-2:57"):
        parse_bound("position", [text])


@pytest.mark.parametrize(("next_offset", "contains"), [(0, False), (57, False), (58, True), (70, True)])
def test_a_record_is_contained_once_the_offset_behind_it_comes_next(next_offset: int, contains: bool) -> None:
    client = at(flights_0=99, flights_1=next_offset, flights_2=99)
    bound = {FLIGHTS[1]: 57}
    if contains:
        assert len(list(opened(client, bound).scan(None, None))) > 0
    else:
        with pytest.raises(
            NotUpToBoundException, match=f"partition 1: .* before offset {next_offset} alone.* 57; retry"
        ):
            opened(client, bound)


def test_a_key_is_answered_whatever_other_partitions_contain() -> None:
    client = at(flights_0=10)
    target = target_of(client, "counts", StoreType.KEY_VALUE, bound=dict.fromkeys(FLIGHTS, 9))
    key = key_in(0).encode()
    assert CompositeStore(target.at_key(key)).get(key) is not None
    other = key_in(1).encode()
    with pytest.raises(NotUpToBoundException, match="partition 1"):
        CompositeStore(target.at_key(other))


def test_a_handle_that_was_made_looks_again_at_each_read() -> None:
    client = at(flights_0=10, flights_1=10, flights_2=10)
    handle = open_store(client, StoreQueryParameters("counts", position={FLIGHTS[0]: 9}))
    assert len(list(handle.all())) > 0  # type: ignore[union-attr]
    client.local[0].position = {FLIGHTS[0]: 3}  # its topic was made anew
    with pytest.raises(NotUpToBoundException):
        handle.all()  # type: ignore[union-attr]


def test_every_input_counts() -> None:
    client = at(flights_0=10)
    with pytest.raises(NotUpToBoundException, match="carriers-0 before offset 0 alone"):
        opened(client, {FLIGHTS[0]: 9, CARRIERS: 0})
    client.local[0].position |= {CARRIERS: 1}
    opened(client, {FLIGHTS[0]: 9, CARRIERS: 0})


@pytest.mark.parametrize(
    ("bound", "stale", "words"),
    [
        ({TopicPartition("orders", 0): 1}, False, "reads carriers, flights, and not orders"),
        ({TopicPartition("flights", 3): 1}, False, "flights-3 of 3 partitions"),
        ({TopicPartition("flights", 0): 1}, True, "stale"),
    ],
)
def test_what_says_nothing_of_the_store_is_refused(bound: PositionBound, stale: bool, words: str) -> None:
    with pytest.raises(InvalidQueryException, match=rf"position: .*{words}"):
        target_of(at(flights_0=10), "counts", StoreType.KEY_VALUE, stale=stale, bound=bound)


def test_a_global_table_has_no_position() -> None:
    client = at(flights_0=10)
    client.inputs = set()
    with pytest.raises(InvalidQueryException, match=r"position: store .counts. has none"):
        target_of(client, "counts", StoreType.KEY_VALUE, bound={FLIGHTS[0]: 1})
