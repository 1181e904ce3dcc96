"""Messages as librdkafka lays them in memory: in columns they say what they say one by one."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from state_kit import contents, key_value_store, memory_folder

from streams_runtime.kafka.client.librdkafka import Message
from streams_runtime.kafka.consumer import message_columns
from streams_runtime.kafka.consumer.message_columns import (
    Latest,
    bytes_at,
    latest_of,
    merged,
    messages_at,
    timestamps_of,
    where,
)
from streams_runtime.restore.bulk.bulk_worker import _stored
from streams_runtime.state.database.rocksdb_adapter import write_sst
from streams_runtime.state.store import stamp

Record = tuple[bytes | None, bytes | None]
BYTES = st.none() | st.binary(max_size=20) | st.sampled_from([b"a", b"b", b"a" * 300])
RECORDS = st.lists(st.tuples(st.none() | st.sampled_from([b"", b"a", b"aa", b"\xff", b"long" * 50]), BYTES), min_size=1)


def address(content: bytes | None, kept: list[object]) -> int | None:
    if content is None:
        return None
    kept.append(ctypes.create_string_buffer(content, len(content) + 1))
    return ctypes.addressof(kept[-1])  # type: ignore[arg-type]


@contextmanager
def laid_out(records: Sequence[Record], monkeypatch: pytest.MonkeyPatch) -> Iterator[message_columns.Messages]:
    """The records in memory, each where there was room; a message's time is its offset."""
    kept: list[object] = []
    messages = [
        Message(0, 7, 3, address(value, kept), len(value or b""), address(key, kept), len(key or b""), offset, None)
        for offset, (key, value) in enumerate(records)
    ]
    addresses = np.array([ctypes.addressof(each) for each in messages], np.int64)
    with monkeypatch.context() as patched:
        offsets = {at: offset for offset, at in enumerate(addresses.tolist())}
        patched.setattr(message_columns, "message_timestamp", lambda at, _: offsets[at])
        yield messages_at(addresses)
    del kept


def as_dict(latest: Latest) -> dict[bytes, tuple[bytes | None, int]]:
    pairs = zip(latest.values.to_pylist(), latest.timestamps.tolist(), strict=True)
    return dict(zip(latest.keys.to_pylist(), pairs, strict=True))


@given(records=RECORDS)
@settings(max_examples=examples(60), deadline=None)
def test_the_last_record_of_each_key_is_taken_with_its_value_and_its_time(records: list[Record]) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch, laid_out(records, monkeypatch) as messages:
        found = latest_of(messages)
    expected = {key: (value, offset) for offset, (key, value) in enumerate(records) if key is not None}
    assert as_dict(found) == expected
    assert len(found) == len(expected)


def test_the_fields_of_a_message_are_those_of_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    with laid_out([(b"a", b"1"), (b"b", None)], monkeypatch) as messages:
        assert messages.offsets.tolist() == [0, 1]
        assert (messages.topics.tolist(), messages.partitions.tolist(), messages.errors.tolist()) == (
            [7, 7],
            [3, 3],
            [0, 0],
        )
        assert (messages.key_lengths.tolist(), messages.value_lengths.tolist()) == ([1, 1], [1, 0])
        assert messages.values[1] == 0


def latest(contents: dict[bytes, bytes | None], time: int) -> Latest:
    return Latest(
        pa.array(list(contents), pa.large_binary()),
        pa.array(list(contents.values()), pa.large_binary()),
        np.full(len(contents), time, np.int64),
    )


@given(st.lists(st.dictionaries(st.sampled_from([b"", b"a", b"b", b"c" * 40]), BYTES), min_size=1, max_size=5))
@settings(max_examples=examples(60), deadline=None)
def test_of_several_parts_a_later_one_wins(parts: list[dict[bytes, bytes | None]]) -> None:
    found = merged([latest(each, time) for time, each in enumerate(parts)])
    expected = {key: (value, time) for time, each in enumerate(parts) for key, value in each.items()}
    assert as_dict(found) == expected
    assert len(found) == len(expected)


def test_a_file_of_them_is_what_a_store_holds() -> None:
    with memory_folder() as folder, key_value_store(folder) as store:
        write_sst(folder / "0.sst", _stored(latest({b"b": b"2", b"": b"", b"\xff": None, b"a": b"x" * 2000}, -1)))
        store.ingest([folder / "0.sst"], 4)
        assert contents(store) == {b"b": b"2", b"": b"", b"a": b"x" * 2000}
        assert store.get_stored([b"a"]) == [stamp(-1, b"x" * 2000)]


@given(st.lists(BYTES | st.binary(min_size=50, max_size=90), max_size=40))
@settings(max_examples=examples(200), deadline=None)
def test_a_copy_is_equal(contents: list[bytes | None]) -> None:
    array = pa.array(contents, pa.large_binary())
    assert bytes_at(*where(array)).equals(array)


@given(st.lists(st.integers(500, 2000), min_size=20, max_size=40))
@settings(max_examples=examples(60), deadline=None)
def test_a_copy_takes_just_the_room_that_it_needs(sizes: list[int]) -> None:
    lying = where(pa.array([b"x" * size for size in sizes], pa.large_binary()))
    pool = pa.default_memory_pool()
    before = pool.total_bytes_allocated()
    bytes_at(*lying)
    # With too little room Arrow takes more, or other, and moves what it has copied.
    assert pool.total_bytes_allocated() - before <= sum(sizes) + 8 * (len(sizes) + 1) + 3 * 64


def test_of_a_part_of_an_array_the_part_is_found() -> None:
    array = pa.array([b"", b"a", None, b"bc", b"d"], pa.large_binary())
    assert bytes_at(*where(array[1:4])).to_pylist() == [b"a", None, b"bc"]


class _Whole(ctypes.Structure):
    """A message with words of its own behind what is public."""

    _fields_ = (("message", Message), ("behind", ctypes.c_int64 * 8))


@pytest.mark.parametrize(
    ("places", "calls"),
    [([3], 64), ([7], 64), ([], 264), ([2, 5], 264)],
    ids=["one fits", "the last one fits", "none fits", "two fit"],
)
def test_times_are_read_where_they_lie_if_it_is_known_where(
    places: list[int], calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = [1_700_000_000_000 + number % 7 for number in range(200)]
    whole = [_Whole() for _ in times]
    for number, each in enumerate(whole):
        each.behind[:] = range(number, number + 8)
        for place in places:
            each.behind[place] = times[number]
    addresses = np.array([ctypes.addressof(each) for each in whole], np.int64)
    told = dict(zip(addresses.tolist(), times, strict=True))
    asked: list[int] = []

    def answer(at: int, _: None) -> int:
        asked.append(at)
        return told[at]

    monkeypatch.setattr(message_columns, "message_timestamp", answer)
    assert timestamps_of(addresses).tolist() == times
    assert len(asked) == calls


def test_a_place_that_fits_some_messages_only_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = [_Whole() for _ in range(100)]
    for number, each in enumerate(whole):
        each.behind[:] = [5] * 8 if number < 60 else [6] * 8
    addresses = np.array([ctypes.addressof(each) for each in whole], np.int64)
    monkeypatch.setattr(message_columns, "message_timestamp", lambda _at, _: 5)
    assert timestamps_of(addresses).tolist() == [5] * 100
