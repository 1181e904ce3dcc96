"""The store of a table with a history beside a plain model, wherever batches begin and whatever is opened again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from state_kit import memory_folder
from versions_model import Found, Put, Versions

from streams_runtime.kafka.types import TopicPartition
from streams_runtime.state.store import KeyValueStore, Updates
from streams_runtime.state.versioned_store import VersionedStore

CHANGELOG = TopicPartition("prices", 0)
MINUTE = 60_000
RETENTION = 3 * MINUTE
# Times about the retention apart, on both sides of segments' ends, and close together.
TIMES = st.one_of(
    st.integers(0, 8).map(lambda number: number * MINUTE),
    st.integers(0, 12).map(lambda number: 5 * MINUTE - 6 + number),
    st.integers(0, 12).map(lambda number: 2 * MINUTE - 6 + number),
)
PUTS = st.lists(st.tuples(st.sampled_from(["a", "ab", "b"]), st.none() | st.integers(0, 9), TIMES), max_size=30)
CUTS = st.lists(st.integers(0, 30), max_size=5)


def opened(folder: Path, retention: int = RETENTION) -> VersionedStore:
    return VersionedStore("prices", CHANGELOG, folder, retention)


def written(store: VersionedStore, puts: Sequence[Put], offset: int | None = None) -> None:
    values = [None if value is None else str(value).encode() for _, value, _ in puts]
    store.write(Updates([key.encode() for key, _, _ in puts], values, [time for *_, time in puts]), offset)


def model_of(puts: Iterable[Put]) -> Versions:
    model = Versions(RETENTION)
    for each in puts:
        model.put(*each)
    return model


def found(store: VersionedStore, key: str, time: int) -> Found | None:
    version = store.as_of(key.encode(), time)
    if version is None:
        return None
    assert version.value is not None
    return int(version.value), version.valid_from, version.valid_to


def asked(puts: Iterable[Put]) -> list[int]:
    """Every time at which an answer may change."""
    times = {time for *_, time in puts}
    around = {time + more for time in times for more in (-1, 0, 1)}
    return sorted(around | {time - RETENTION + more for time in times for more in (-1, 0, 1)})


def check(store: VersionedStore, puts: Sequence[Put]) -> None:
    model = model_of(puts)
    for key in ("a", "ab", "b"):
        for time in asked(puts):
            assert found(store, key, time) == model.as_of(key, time), (key, time)
    newest = {key.decode(): int(value) for key, value in store.scan(None, None)}
    assert newest == {key: value for key, (value, _) in model.newest().items()}
    assert store.stream_time == model.stream_time


# A key that is deleted and comes back before its deletion; one that is replaced at its own time; one too late.
BACK = [("a", 1, 5 * MINUTE), ("a", None, 6 * MINUTE), ("a", 2, 5 * MINUTE + 1), ("a", 3, 6 * MINUTE), ("a", 4, 0)]


@given(PUTS, CUTS)
@example(BACK, [1, 2, 3, 4])
@example(BACK, [])
def test_a_store_answers_as_its_versions_do_wherever_writes_are_cut(puts: list[Put], cuts: list[int]) -> None:
    with memory_folder() as folder, ExitStack() as closing:
        store = opened(folder / "store")
        closing.callback(store.close)
        bounds = sorted({0, len(puts), *(cut for cut in cuts if cut < len(puts))})
        for start, end in pairwise(bounds):
            written(store, puts[start:end], end)
            check(store, puts[:end])
        store.close()
        store = opened(folder / "store")
        closing.callback(store.close)
        check(store, puts)


@given(PUTS)
def test_records_that_are_written_twice_change_nothing(puts: list[Put]) -> None:
    with memory_folder() as folder, ExitStack() as closing:
        store = opened(folder / "store")
        closing.callback(store.close)
        taken = [each for each, kept in _judged(puts) if kept]
        written(store, taken)
        written(store, taken)
        model = model_of(taken)
        oldest = model.stream_time - RETENTION
        for key in ("a", "ab", "b"):
            for time in asked(puts):
                if time >= oldest:
                    assert found(store, key, time) == model.as_of(key, time)


def _judged(puts: Sequence[Put]) -> list[tuple[Put, bool]]:
    model = Versions(RETENTION)
    return [(each, model.put(*each)) for each in puts]


def test_what_the_history_no_longer_reaches_is_dropped_from_the_disk(tmp_path: Path) -> None:
    store = opened(tmp_path)
    try:
        for minute in range(30):
            written(store, [("a", minute, minute * MINUTE), ("b", None, minute * MINUTE)])
        assert len(store.segments) == 4, "a retention of three segments, and the one that is being filled"
        assert store.approximate_num_entries() <= 30
    finally:
        store.close()


def test_another_retention_begins_with_nothing_and_no_offset(tmp_path: Path) -> None:
    store = opened(tmp_path)
    written(store, [("a", 1, MINUTE), ("a", 2, 2 * MINUTE)], 2)
    store.close()
    store = opened(tmp_path, 2 * RETENTION)
    try:
        assert (store.offset(), store.is_empty(), store.stream_time) == (None, True, -1)
    finally:
        store.close()


@pytest.mark.parametrize("history_first", [True, False])
def test_a_table_that_gets_a_history_or_loses_it_begins_with_nothing(tmp_path: Path, history_first: bool) -> None:
    first, second = opened(tmp_path) if history_first else KeyValueStore("prices", CHANGELOG, tmp_path), None
    first.write(Updates([b"a", b"a"], [b"1", b"2"], [MINUTE, 2 * MINUTE]), 2)
    first.close()
    second = KeyValueStore("prices", CHANGELOG, tmp_path) if history_first else opened(tmp_path)
    try:
        assert second.offset() is None
        assert second.is_empty()
        second.write(Updates([b"a"], [b"3"], [MINUTE]), 3)
        assert second.get(b"a") == b"3"
    finally:
        second.close()


def test_only_a_deletion_leaves_no_history_behind_for_ever(tmp_path: Path) -> None:
    store = opened(tmp_path)
    try:
        written(store, [("a", None, 0)])
        assert not store.is_empty()
        written(store, [("b", 1, 10 * MINUTE)])
        assert store.newest([b"a"]) == [None]
    finally:
        store.close()
