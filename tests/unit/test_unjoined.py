"""Keys and values of the records that have met no other: they sort as they are passed on, and come back whole."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from streams_runtime.state.unjoined_records import (
    STREAM_TIME,
    first_key_after,
    joined_values,
    ordinal_of,
    split_values,
    unjoined_key,
)
from streams_runtime.state.window_keys import LATEST
from streams_runtime.topology.nodes.stream_join_node import Side

places = st.tuples(st.integers(0, LATEST - 1), st.sampled_from(list(Side)), st.binary(max_size=4))


def test_a_key_is_time_side_and_key_as_kafka_streams_writes_it() -> None:
    assert unjoined_key((1, Side.LEFT, b"k")) == bytes([0, 0, 0, 0, 0, 0, 0, 1, 1]) + b"k"
    assert unjoined_key((256, Side.RIGHT, b"")) == bytes([0, 0, 0, 0, 0, 0, 1, 0, 0])


@given(st.lists(places))
def test_keys_sort_as_places_do_and_come_back(given: list[tuple[int, Side, bytes]]) -> None:
    keys = sorted(map(unjoined_key, given))
    assert [ordinal_of(key) for key in keys] == sorted(given)
    assert all(key < STREAM_TIME for key in keys)


@given(places, st.integers(0, LATEST - 1))
def test_an_end_lies_behind_what_has_come_by_its_time_and_before_all_later(
    place: tuple[int, Side, bytes], time: int
) -> None:
    assert (unjoined_key(place) <= first_key_after(time)) == (place[0] <= time)


@given(st.lists(st.binary(max_size=20)))
def test_values_come_back_from_one(values: list[bytes]) -> None:
    assert split_values(joined_values(values)) == values
