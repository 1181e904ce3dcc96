"""Queries of a time, of a table with a history: by handles, over HTTP, by the client and on the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta

import pytest
from query_stage import KEY_VALUE, KEYS, T0, Place, QueryStage, key_in, ms, query_stage, value_of
from typer.testing import CliRunner

from streams_runtime import InvalidQueryException, StoreQueryParameters, StreamsQueryClient, VersionedRecord
from streams_runtime.cli.query.query_command import app as query_command
from streams_runtime.errors import InvalidStateStorePartitionException, StoreTypeMismatch
from streams_runtime.query.server.query_server import QueryServer
from streams_runtime.query.stores.key_value_handle import ReadOnlyKeyValueStore, open_store
from streams_runtime.state.store import Updates

MINUTE = timedelta(minutes=1)
KEY = key_in(1)
LATER = T0 + 10 * MINUTE


@pytest.fixture
def history() -> Iterator[QueryStage]:
    """The key had its first value for ten minutes, then another one, and none from the eleventh on."""
    with query_stage(history=3_600_000) as made:
        key, values = KEY.encode(), [b'{"n": 7}', None]
        made.store(KEY_VALUE, 1).write(Updates([key, key], values, [ms(LATER), ms(LATER + MINUTE)]), 9)
        yield made


def first() -> object:
    return value_of(KEYS.index(KEY))


def handle(stage: QueryStage) -> ReadOnlyKeyValueStore:
    found = open_store(stage, StoreQueryParameters(KEY_VALUE))
    assert isinstance(found, ReadOnlyKeyValueStore)
    return found


def test_a_handle_says_what_a_key_had_and_from_when_to_when(history: QueryStage) -> None:
    store = handle(history)
    assert store.get(KEY) is None
    assert store.get(KEY, as_of=T0) == VersionedRecord(first(), T0, LATER)
    assert store.get(KEY, as_of=LATER) == VersionedRecord({"n": 7}, LATER, LATER + MINUTE)
    assert store.get(KEY, as_of=LATER + MINUTE) is None
    assert store.get(KEY, as_of=T0 - MINUTE) is None
    assert store.get("nobody", as_of=LATER) is None


def test_the_newest_has_no_end(history: QueryStage) -> None:
    other = key_in(2)
    found = handle(history).get(other, as_of=LATER)
    assert isinstance(found, VersionedRecord)
    assert (found.valid_from, found.valid_to) == (T0, None)


def test_a_time_needs_its_offset(history: QueryStage) -> None:
    with pytest.raises(ValueError, match="as_of"):
        handle(history).get(KEY, as_of=T0.replace(tzinfo=None))


def test_a_table_without_a_history_says_so(stage: QueryStage) -> None:
    with pytest.raises(StoreTypeMismatch, match="historyRetention"):
        handle(stage).get(KEY, as_of=T0)


def test_a_partition_that_is_elsewhere_is_named(history: QueryStage) -> None:
    history.put(1, Place.ELSEWHERE)
    with pytest.raises(InvalidStateStorePartitionException):
        handle(history).get(KEY, as_of=T0)


@pytest.fixture
def url(history: QueryStage) -> Iterator[str]:
    server = QueryServer(history, "127.0.0.1", 0, grace=0)
    history.url = f"http://127.0.0.1:{server.start()}"
    yield history.url
    server.stop()


def test_the_client_gives_the_same(url: str) -> None:
    with StreamsQueryClient(url, deadline=5) as client:
        assert client.get(KEY_VALUE, KEY, as_of=T0 + MINUTE) == VersionedRecord(first(), T0, LATER)
        assert client.get(KEY_VALUE, KEY, as_of=LATER + MINUTE) is None
        with pytest.raises(InvalidQueryException, match="asOf"):
            client.get(KEY_VALUE, KEY, as_of=T0.replace(tzinfo=None))


def test_so_does_the_command_line(url: str) -> None:
    def printed(*more: str) -> object:
        result = CliRunner().invoke(query_command, [KEY_VALUE, "get", KEY, "--url", url, *more])
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    assert printed() == {"key": KEY, "value": None}
    assert printed("--as-of", str(ms(LATER))) == {
        "key": KEY,
        "value": {"n": 7},
        "validFrom": "2026-01-01T12:10:00.000Z",
        "validTo": "2026-01-01T12:11:00.000Z",
    }
    assert printed("--as-of", "2026-01-01T11:00:00Z") == {"key": KEY, "value": None}
