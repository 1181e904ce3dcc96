"""Keys of windows and sessions, byte for byte as Kafka Streams writes them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from streams_runtime.state.window_keys import (
    SESSION_KEYS,
    WINDOW_KEYS,
    largest_with_suffix,
    session_key,
    split_session_key,
    split_window_key,
    window_key,
)

NOON = 1_767_268_800_000  # 2026-01-01T12:00Z


def test_a_windows_key_is_the_records_key_then_start_then_sequence_number() -> None:
    data = window_key(b"ada", NOON)
    assert data.hex() == "6164610000019b796dd60000000000"
    assert window_key(b"ada", NOON, 7).hex() == "6164610000019b796dd60000000007"
    assert split_window_key(window_key(b"", NOON, 7)) == (b"", NOON, 7)
    assert WINDOW_KEYS.segment_time(data) == NOON


def test_a_sessions_key_is_the_records_key_then_end_then_start() -> None:
    data = session_key(b"ada", NOON, NOON + 255)
    assert data.hex() == "6164610000019b796dd6ff0000019b796dd600"
    assert split_session_key(data) == (b"ada", NOON, NOON + 255)
    assert SESSION_KEYS.segment_time(data) == NOON + 255


SMALL = st.binary(max_size=8).map(lambda data: bytes(byte % 3 for byte in data))


@given(SMALL, SMALL.filter(bool))
def test_the_end_of_a_range_is_the_largest_of_all_keys_that_it_holds(to_key: bytes, suffix: bytes) -> None:
    beginnings = [to_key[:end] for end in range(len(to_key) + 1)]
    assert largest_with_suffix(to_key, suffix) == max(each + suffix for each in beginnings)
