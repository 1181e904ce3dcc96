"""Tables of topics with records that can't be read: left out for good, wherever the table is restored."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from clients import client, make_topics, read, run_until_done, send, until_done
from topology_drivers import ORDERS, USERS, Made, document

from streams_runtime import StoreQueryParameters
from streams_runtime.errors import TopologyException
from streams_runtime.states import ClientState
from streams_runtime.testing import START

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]

JOINED = {"name": "joined", "from": "orders", "join": {"table": "users", "type": "left", "select": {"t": "users.tier"}}}
CHANGES = {"name": "changes", "from": "users", "toStream": {}}
LETTERS = {"onDeserializationError": {"deadLetter": {"topic": "letters"}}}
SECOND = timedelta(seconds=1)


@pytest.mark.parametrize("history", [None, "1h"])
@pytest.mark.parametrize("at_once", [True, False])
def test_a_record_that_is_left_out_leaves_the_row_as_it_was(made: Made, history: str | None, at_once: bool) -> None:
    table = {"store": "users"} | ({} if history is None else {"historyRetention": history})
    steps = [JOINED] if history else [JOINED, CHANGES]
    sinks = {"out": "joined"} if history else {"out": "joined", "changes": "changes"}
    driver = made(document([ORDERS, {**USERS, "table": table}], steps, sinks, processing=LETTERS))
    users, orders = driver.input_topic("users"), driver.input_topic("orders")

    def given() -> None:
        users.pipe("al", {"tier": "tin"}, timestamp=START)
        users.pipe("al", b"{", timestamp=START + SECOND)
        users.pipe("bo", b'{"tier": [', timestamp=START + SECOND)
        orders.pipe("al", {"user": "al"}, timestamp=START + 2 * SECOND)
        orders.pipe("bo", {"user": "bo"}, timestamp=START + 2 * SECOND)
        users.pipe("al", None, timestamp=START + 3 * SECOND)
        orders.pipe("al", {"user": "al"}, timestamp=START + 4 * SECOND)

    if at_once:
        with driver.batch():
            given()
    else:
        given()
    assert [(each.key, each.value["t"]) for each in driver.output_topic("out").read_all()] == [
        ("al", "tin"),
        ("bo", None),
        ("al", None),
    ]
    if not history:
        assert [each.value for each in driver.output_topic("changes").read_all()] == [{"tier": "tin"}, None]
    letters = driver.output_topic("letters").read_all()
    assert [(each.key, each.value) for each in letters] == [(b"al", b"{"), (b"bo", b'{"tier": [')]
    assert dict(letters[0].headers)["__streams.errors.topic"] == b"users"
    assert (driver.counters.deserialization_errors, driver.counters.dead_letters) == (2, 2)
    assert driver.counters.recorder.dropped_records(0.0)["users", "unreadable"] == 2
    assert driver.store("users").get("al") is None


def topology(prefix: str) -> str:
    key = "{format: string}"
    return f"""
sources:
  - {{name: users, topic: {prefix}-users, key: {key}, value: {{format: json, schema: "tier STRING"}},
     table: {{store: users}}}}
  - {{name: orders, topic: {prefix}-orders, key: {key}, value: {{format: json, schema: "n BIGINT"}}}}
steps:
  - {{name: joined, from: orders, join: {{table: users, type: left, select: {{tier: users.tier}}}}}}
sinks: [{{from: joined, topic: {prefix}-out}}]
"""


USERS_SENT: list[tuple[Any, Any]] = [
    *((f"u{number}", {"tier": f"t{number}"}) for number in range(20)),
    ("u1", b"{oops"),
    ("u2", None),
    ("u2", b'{"tier": 7'),
    ("u3", {"tier": "new"}),
    ("u99", b"nothing"),
]
KEPT = {f"u{number}": {"tier": f"t{number}"} for number in range(20) if number != 2} | {"u3": {"tier": "new"}}


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_a_restored_table_has_what_was_processed_and_nothing_that_was_left_out(
    broker: Any, namespace: str, tmp_path: Path, guarantee: str
) -> None:
    bootstrap = broker.bootstrap_servers
    users, orders, out, letters = (f"{namespace}-{name}" for name in ("users", "orders", "out", "letters"))
    make_topics(bootstrap, **{users: 2, orders: 2, out: 1, letters: 1})
    processing = {"guarantee": guarantee, "onDeserializationError": {"deadLetter": {"topic": letters}}}
    send(bootstrap, users, USERS_SENT)
    with client(bootstrap, namespace, topology(namespace), tmp_path / "first", processing=processing) as made:
        run_until_done(made, [users, orders])
        assert dict(made.store(StoreQueryParameters("users")).all()) == KEPT
    send(bootstrap, users, [("u4", b"{"), ("u5", {"tier": "newer"})])
    with client(bootstrap, namespace, topology(namespace), tmp_path / "second", processing=processing) as made:
        run_until_done(made, [users, orders])
        assert dict(made.store(StoreQueryParameters("users")).all()) == KEPT | {"u5": {"tier": "newer"}}
        send(bootstrap, orders, [(key, {"n": 1}) for key in ("u1", "u2", "u4", "u5", "u99")])
        until_done(made, [users, orders])
    tiers = {each.key().decode(): each.value() for each in read(bootstrap, out, committed=True)}
    assert tiers == {
        key: (b'{"n":1,"tier":"%s"}' % tier if tier else b'{"n":1,"tier":null}')
        for key, tier in {"u1": b"t1", "u2": None, "u4": b"t4", "u5": b"newer", "u99": None}.items()
    }
    assert sorted(each.key() for each in read(bootstrap, letters, committed=True)) == [b"u1", b"u2", b"u4", b"u99"]


def test_a_table_that_was_restored_from_its_topic_gets_no_changelog_that_lacks_its_rows(
    broker: Any, namespace: str, tmp_path: Path
) -> None:
    bootstrap = broker.bootstrap_servers
    users, orders, out = (f"{namespace}-{name}" for name in ("users", "orders", "out"))
    make_topics(bootstrap, **{users: 1, orders: 1, out: 1})
    send(bootstrap, users, [("al", {"tier": "tin"})])
    with client(bootstrap, namespace, topology(namespace), tmp_path) as made:
        run_until_done(made, [users, orders])
    processing = {"onDeserializationError": "continue"}
    with client(bootstrap, namespace, topology(namespace), tmp_path, processing=processing) as made:
        made.start()
        assert made.wait_for(ClientState.ERROR, timeout=60)
        assert isinstance(made.error, TopologyException)
        assert f"the changelog {namespace}-users-changelog of the table users" in str(made.error)
    with client(bootstrap, namespace, topology(namespace), tmp_path) as made:
        run_until_done(made, [users, orders])
        assert dict(made.store(StoreQueryParameters("users")).all()) == {"al": {"tier": "tin"}}
