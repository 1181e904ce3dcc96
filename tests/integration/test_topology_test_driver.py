"""The test driver for users: what a topology makes of piped records, every step's kind in a small story of its own."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from topology_drivers import BOUGHT, ORDERS, REPARTITIONED, TOTALS, USERS, Made, document, refused

from streams_runtime.api import parse_application
from streams_runtime.errors import IllegalStateException, UnknownStateStoreException
from streams_runtime.kafka.producer.partitioner import partition_for
from streams_runtime.query.stores.key_value_handle import (
    ReadOnlyKeyValueStore,
    ReadOnlySessionStore,
    ReadOnlyWindowStore,
    Window,
    Windowed,
)
from streams_runtime.testing import START, Record

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]

EXAMPLES = Path(__file__).parents[2] / "examples"
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


def test_records_go_in_and_come_out_with_key_value_time_and_headers(made: Made) -> None:
    steps = [{"name": "large", "from": "orders", "where": "amount > 2", "select": {"user": "upper(user)", "at": "at"}}]
    driver = made(document([ORDERS], steps, {"large": "large"}))
    orders, large = driver.input_topic("orders"), driver.output_topic("large")
    at = datetime(2024, 5, 1, 12, 30, 0, 250_000, tzinfo=UTC)
    orders.pipe("alice", {"user": "al", "amount": 3, "at": at}, timestamp=at, headers={"trace": "x1", "none": None})
    orders.pipe("alice", {"user": "al", "amount": 1})
    orders.pipe(None, {"amount": 4}, timestamp=1_714_566_600_250)
    first = large.read()
    assert first == Record(
        "alice", {"user": "AL", "at": "2024-05-01T12:30:00.250000Z"}, at, (("trace", b"x1"), ("none", None))
    )
    assert first.partition == 0
    assert large.read_all() == [Record(None, {"user": None, "at": None}, at)]
    assert large.empty


def test_a_topic_has_a_time_of_its_own_which_only_the_test_moves(made: Made) -> None:
    driver = made(document([ORDERS], [], {"copy": "orders"}))
    orders, copy = driver.input_topic("orders", auto_advance=SECOND), driver.output_topic("copy")
    orders.pipe("a", {})
    orders.advance(MINUTE)
    orders.pipe_all([("b", {}), ("c", {}, START), Record("d", {}), ("e", {})])
    assert [(each.key, each.timestamp) for each in copy.read_all()] == [
        ("a", START),
        ("b", START + MINUTE + SECOND),
        ("c", START),
        ("d", START + MINUTE + 2 * SECOND),
        ("e", START + MINUTE + 3 * SECOND),
    ]
    assert orders.time == START + MINUTE + 4 * SECOND
    later = driver.input_topic("orders", start=START + timedelta(days=1))
    later.pipe("f", {})
    assert copy.read().timestamp == START + timedelta(days=1)
    with refused(ValueError, "the time of orders can't go back by 0:01:00; pipe a record with a timestamp instead"):
        orders.advance(-MINUTE)


def test_the_timestamp_that_a_source_declares_replaces_the_records_own(made: Made) -> None:
    driver = made(document([{**ORDERS, "timestamp": "at"}], [], {"copy": "orders"}))
    driver.input_topic("orders").pipe("a", {"at": START + MINUTE}, timestamp=START)
    assert driver.output_topic("copy").read().timestamp == START + MINUTE


PLAIN: list[tuple[str, Any, Any]] = [
    ("string", "ü", "ß"),
    ("bytes", b"\x00", b"\xff\x00"),
    ("long", -(2**63), 2**63 - 1),
    ("int", -1, 2**31 - 1),
    ("double", -0.5, 1e300),
]


def test_every_format_is_written_and_read_back_by_what_the_topology_declares(made: Made) -> None:
    sources = [
        {"name": name, "topic": f"in-{name}", "key": {"format": name}, "value": {"format": name}} for name, *_ in PLAIN
    ]
    sinks = [{"from": name, "topic": f"out-{name}", "value": {"format": name}} for name, *_ in PLAIN]
    driver = made(document(sources, [], sinks))
    with driver.batch():
        for name, key, value in PLAIN:
            driver.input_topic(f"in-{name}").pipe_all([(key, value), (key, None)])
    for name, key, value in PLAIN:
        found = driver.output_topic(f"out-{name}").read_all()
        assert [(each.key, each.value) for each in found] == [(key, value), (key, None)], name


def test_outputs_are_read_once_by_whichever_handle_and_the_last_value_of_each_key_can_be_had(made: Made) -> None:
    driver = made(document([ORDERS], [TOTALS], {"totals": "totals"}))
    orders, totals = driver.input_topic("orders"), driver.output_topic("totals")
    for key, amount in (("alice", 1), ("bob", 2), ("alice", 3)):
        orders.pipe(key, {"amount": amount})
    assert driver.output_topic("totals").read().value == {"total": 1, "n": 1}
    assert totals.read_latest_by_key() == {"bob": {"total": 2, "n": 1}, "alice": {"total": 4, "n": 2}}
    assert totals.read_all() == []
    with refused(IllegalStateException, "totals has no record that was not read yet; look at `empty` before"):
        totals.read()


def test_an_application_can_be_a_file_a_text_a_document_or_a_model(made: Made, tmp_path: Path) -> None:
    text = (EXAMPLES / "first.yaml").read_text()
    (tmp_path / "app.yaml").write_text(text)
    model = parse_application(text)
    for given in (text, model, str(tmp_path / "app.yaml"), tmp_path / "app.yaml", model.model_dump(mode="json")):
        driver = made(given)
        driver.input_topic("orders").pipe("ada", {"amount": 1.5})
        assert driver.store("totals").get("ada") == {"total": 1.5, "n": 1}
        driver.close()


def test_a_key_value_store_is_read_through_the_handle_of_interactive_queries(made: Made) -> None:
    driver = made(document([ORDERS], [TOTALS]), partitions=3)
    driver.input_topic("orders").pipe_all([(key, {"amount": len(key)}) for key in ("a", "bb", "ccc", "dddd", "a")])
    totals = driver.store("totals")
    assert isinstance(totals, ReadOnlyKeyValueStore)
    assert totals.get("a") == {"total": 2, "n": 2}
    assert totals.get("nobody") is None
    assert [(key, value["total"]) for key, value in totals.range("a", "ccc")] == [("a", 2), ("bb", 2), ("ccc", 3)]
    driver.input_topic("orders").pipe("a", {"amount": 5})
    assert totals.get("a") == {"total": 7, "n": 3}, "a handle sees what was committed since"


def test_tumbling_windows_close_by_the_times_of_records_and_late_ones_are_counted(made: Made) -> None:
    window = {"tumbling": {"size": "10s", "grace": "5s"}}
    step = {**TOTALS, "name": "per-window", "store": "windows", "window": window}
    driver = made(document([ORDERS], [step], {"windows": "per-window"}))
    orders, windows = driver.input_topic("orders"), driver.output_topic("windows")
    for seconds in (0, 3, 14, 9, 15, 9):  # the last one comes when its window's end and grace have passed
        orders.pipe("a", {"amount": 1}, timestamp=START + seconds * SECOND)
    first, second = (Window(START + each * SECOND, START + (each + 10) * SECOND) for each in (0, 10))
    assert [(each.key, each.value["n"], each.timestamp - START) for each in windows.read_all()] == [
        (Windowed("a", first), 1, 0 * SECOND),
        (Windowed("a", first), 2, 3 * SECOND),
        (Windowed("a", second), 1, 14 * SECOND),
        (Windowed("a", first), 3, 9 * SECOND),
        (Windowed("a", second), 2, 15 * SECOND),
    ]
    assert driver.counters.late_records == 1
    store = driver.store("windows")
    assert isinstance(store, ReadOnlyWindowStore)
    assert store.fetch("a", START) == {"total": 3, "n": 3}
    assert [key for key, _ in store.fetch("a", START, START + MINUTE)] == [START, START + 10 * SECOND]


def test_suppressed_windows_come_out_once_when_they_have_closed(made: Made) -> None:
    window = {"hopping": {"size": "10s", "advance": "5s", "grace": "0s"}}
    step = {**TOTALS, "name": "final", "store": "windows", "window": window, "suppress": "untilWindowCloses"}
    behind = {"name": "shown", "from": "final", "select": {"many": "n"}}
    driver = made(document([ORDERS], [step, behind], {"final": "shown"}))
    orders, final = driver.input_topic("orders"), driver.output_topic("final")
    orders.pipe("a", {"amount": 1}, START)
    orders.pipe("a", {"amount": 1}, START + 7 * SECOND)
    # The window that began 5 s before the start has ended.
    assert [(each.key.window.start - START, each.value) for each in final.read_all()] == [(-5 * SECOND, {"many": 1})]
    orders.pipe("b", {"amount": 1}, START + 20 * SECOND)
    assert final.read_latest_by_key() == {
        Windowed("a", Window(START, START + 10 * SECOND)): {"many": 2},
        Windowed("a", Window(START + 5 * SECOND, START + 15 * SECOND)): {"many": 1},
    }


def test_a_stream_of_closed_windows_sees_no_columns_of_those_that_a_where_took_out(made: Made) -> None:
    window = {"tumbling": {"size": "10s", "grace": "0s"}}
    final = {**TOTALS, "name": "final", "store": "windows", "window": window, "suppress": "untilWindowCloses"}
    steps = [
        final,
        {"name": "busy", "from": "final", "where": "n > 1"},
        {"name": "told", "from": "busy", "toStream": {}},
        {"name": "by-total", "from": "told", "keyBy": "coalesce(cast(total as string), 'nothing')"},
        {"name": "few", "from": "told", "where": "n = 1"},
    ]
    driver = made(document([ORDERS], steps, {"by-total": "by-total", "few": "few"}))
    orders = driver.input_topic("orders")
    orders.pipe("a", {"amount": 1}, START)
    orders.pipe_all([("b", {"amount": 3}, START), ("b", {"amount": 4}, START)])
    orders.pipe("c", {"amount": 1}, START + 20 * SECOND)
    found = [(each.key, each.value) for each in driver.output_topic("by-total").read_all()]
    assert found == [("nothing", None), ("7", {"total": 7, "n": 2})]
    assert driver.output_topic("few").empty


def test_sliding_windows_lie_around_the_records_and_late_ones_are_counted(made: Made) -> None:
    window = {"sliding": {"timeDifference": "10s", "grace": "5s"}}
    step = {**TOTALS, "name": "around", "store": "around", "window": window}
    driver = made(document([ORDERS], [step], {"around": "around"}))
    orders, around = driver.input_topic("orders"), driver.output_topic("around")
    orders.pipe_all([("a", {"amount": 1}), ("a", None), (None, {"amount": 1})])
    orders.pipe("a", {"amount": 2}, START + 4 * SECOND)

    def from_second(second: float) -> Windowed:
        start = START + second * SECOND
        return Windowed("a", Window(start, start + 10 * SECOND))

    assert {each.key: each.value for each in around.read_all()} == {
        from_second(-10): {"total": 1, "n": 1},
        from_second(-6): {"total": 3, "n": 2},
        from_second(0.001): {"total": 2, "n": 1},
    }
    assert driver.counters.records_dropped == 2
    orders.pipe("a", {"amount": 5}, START + 20 * SECOND)
    orders.pipe("a", {"amount": 7}, START + 4 * SECOND)
    assert driver.counters.late_records == 1, "of the windows around 4 s the one that it ends had closed"
    store = driver.store("around")
    assert isinstance(store, ReadOnlyWindowStore)
    assert store.fetch("a", from_second(0.001).window.start) == {"total": 2, "n": 1}


def test_sessions_grow_together_and_the_ones_they_replace_are_tombstones(made: Made) -> None:
    step = {**TOTALS, "name": "visits", "store": "visits", "window": {"session": {"gap": "5s", "grace": "1m"}}}
    driver = made(document([ORDERS], [step], {"visits": "visits"}), partitions=2)
    orders, visits = driver.input_topic("orders"), driver.output_topic("visits")
    for seconds in (0, 8, 4):
        orders.pipe("a", {"amount": 1}, START + seconds * SECOND)
    whole = Windowed("a", Window(START, START + 8 * SECOND))
    alone = [Windowed("a", Window(START + each * SECOND, START + each * SECOND)) for each in (0, 8)]
    found = visits.read_all()
    assert [each.partition for each in found] == [partition_for(b"a", 2)] * len(found), "placed by the key within"
    latest = {each.key: each.value for each in found}
    assert latest == {alone[0]: None, alone[1]: None, whole: {"total": 3, "n": 3}}
    store = driver.store("visits")
    assert isinstance(store, ReadOnlySessionStore)
    assert [tuple(each) for each in store.fetch("a")] == [(whole, {"total": 3, "n": 3})]


def test_a_stream_meets_what_its_table_holds_when_its_turn_comes(made: Made) -> None:
    step = {
        "name": "known",
        "from": "orders",
        "join": {"table": "users", "type": "left", "select": {"tier": "users.tier"}},
    }
    shown = {"name": "shown", "from": "known", "select": {"amount": "amount", "tier": "tier"}}
    driver = made(document([ORDERS, USERS], [step, shown], {"known": "shown"}), partitions=2)
    orders, users = driver.input_topic("orders"), driver.input_topic("users")
    orders.pipe("alice", {"amount": 1})
    users.pipe("alice", {"tier": "gold"})
    orders.pipe("alice", {"amount": 2})
    users.pipe("alice", None)
    orders.pipe("alice", {"amount": 3})
    known = driver.output_topic("known")
    assert [(each.value["amount"], each.value["tier"]) for each in known.read_all()] == [
        (1, None),
        (2, "gold"),
        (3, None),
    ]
    assert driver.store("users").get("alice") is None
    with driver.batch():
        for at, (topic, value) in enumerate(
            [(orders, {"amount": 4}), (users, {"tier": "new"}), (orders, {"amount": 5}), (users, None)]
        ):
            topic.pipe("alice", value, START + at * SECOND)
        assert known.empty, "nothing happens before the end of the block"
    assert [(each.value["amount"], each.value["tier"]) for each in known.read_all()] == [(4, None), (5, "new")]


def test_tables_hold_the_last_value_of_a_key_and_forget_at_a_tombstone(made: Made) -> None:
    driver = made(document([USERS], [], {"copy": "users"}))
    users, copy = driver.input_topic("users"), driver.output_topic("copy")
    users.pipe_all([("a", {"tier": "x"}), ("b", {"tier": "y"}), ("a", None), (None, {"tier": "nobody's"})])
    store = driver.store("users")
    assert dict(store.all()) == {"b": {"tier": "y"}}
    assert copy.read_latest_by_key()["a"] is None


@pytest.mark.parametrize("partitions", [1, 3])
def test_repartitioned_records_are_fed_back_until_nothing_is_left(made: Made, partitions: int) -> None:
    driver = made(REPARTITIONED, partitions=partitions)
    assert len(driver.topology.subtopologies) == 3
    driver.input_topic("orders").pipe_all(BOUGHT)
    spent, sizes = driver.output_topic("spent").read_all(), driver.output_topic("sizes").read_all()
    assert {each.key: each.value["total"] for each in spent} == {"al": 7, "bo": 6, "cy": 2}
    assert {each.key: each.value["n"] for each in sizes} == {"large": 3, "small": 2}
    assert all(each.partition == partition_for(each.key.encode(), partitions) for each in (*spent, *sizes))
    assert dict(driver.store("sizes").all()) == {"large": {"n": 3}, "small": {"n": 2}}
    assert driver.counters.records_processed == 3 * len(BOUGHT)
    assert driver.counters.batches == 3


def test_where_batches_begin_and_end_does_not_decide_what_comes_out(made: Made) -> None:
    one, each, some = (made(REPARTITIONED, partitions=2) for _ in range(3))
    one.input_topic("orders").pipe_all(BOUGHT)
    for record in BOUGHT:
        each.input_topic("orders").pipe(record.key, record.value)
    with some.batch():
        for record in BOUGHT[:4]:
            some.input_topic("orders").pipe(record.key, record.value)
    some.input_topic("orders").pipe_all(BOUGHT[4:])
    outcomes = [
        {name: dict(driver.store(name).all()) for name in ("spent", "sizes")}
        | {topic: driver.output_topic(topic).read_latest_by_key() for topic in ("spent", "sizes")}
        for driver in (one, each, some)
    ]
    assert outcomes[0] == outcomes[1] == outcomes[2]
    assert [driver.counters.batches for driver in (one, each, some)] == [3, 15, 6]


def test_keys_decide_the_partition_unless_the_test_names_one_and_keyless_records_take_turns(made: Made) -> None:
    stepped = document([ORDERS], [{"name": "at", "from": "orders", "select": {"p": "_partition"}}], {"copy": "at"})
    driver = made(stepped, partitions={"orders": 4})
    driver.input_topic("orders").pipe_all(
        [("a", {}), ("a", {}, None, (), 3), (None, {}), (None, {}), Record("b", {}, partition=1)]
    )
    found = [each.value["p"] for each in driver.output_topic("copy").read_all()]
    assert sorted(found) == sorted([partition_for(b"a", 4), 3, 0, 1, 1])


def test_the_example_runs_as_it_stands_with_a_spark_of_its_own() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(EXAMPLES / "test_first.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


def test_late_records_are_read_from_the_topic_that_they_are_sent_to(made: Made) -> None:
    window = {"tumbling": {"size": "1m"}, "late": {"topic": "late"}}
    driver = made(document([ORDERS], [{**TOTALS, "window": window}], {"totals": "totals"}))
    orders, late = driver.input_topic("orders"), driver.output_topic("late")
    orders.pipe("a", {"amount": 1}, START + MINUTE)
    assert late.empty
    orders.pipe("b", {"user": "bo", "amount": 2}, START, headers={"trace": "x1"})
    (found,) = late.read_all()
    assert (found.key, found.value, found.timestamp) == ("b", {"user": "bo", "amount": 2, "at": None}, START)
    start = str(round(START.timestamp() * 1000)).encode()
    assert found.headers[:3] == (
        ("trace", b"x1"),
        ("__streams.late.step", b"totals"),
        ("__streams.late.windows", start),
    )


def test_two_streams_meet_within_a_time_and_what_meets_nothing_waits_until_it_can_t_any_more(made: Made) -> None:
    paid = {**ORDERS, "name": "paid", "topic": "paid"}
    join = {"stream": "paid", "type": "left", "within": "10s", "select": {"paid": "paid.amount"}}
    driver = made(document([ORDERS, paid], [{"name": "both", "from": "orders", "join": join}], {"both": "both"}))
    orders, payments, both = driver.input_topic("orders"), driver.input_topic("paid"), driver.output_topic("both")
    orders.pipe("a", {"amount": 1}, START)
    orders.pipe("b", {"amount": 2}, START)
    payments.pipe("a", {"amount": 10}, START + 10 * SECOND)
    payments.pipe("b", {"amount": 20}, START + 11 * SECOND)
    assert [
        (each.key, each.value["amount"], each.value["paid"], each.timestamp - START) for each in both.read_all()
    ] == [
        ("a", 1, 10, 10 * SECOND),
        ("b", 2, None, 0 * SECOND),
    ]
    for store in driver.topology.stores:
        with pytest.raises(UnknownStateStoreException, match="only: none"):
            driver.store(store.name)


def test_two_tables_make_one_that_changes_with_either(made: Made) -> None:
    plans = {**USERS, "name": "plans", "topic": "plans", "table": {"store": "plans"}}
    join = {"table": "plans", "type": "inner", "select": {"plan": "plans.tier"}}
    driver = made(document([USERS, plans], [{"name": "both", "from": "users", "join": join}], {"both": "both"}))
    users, others, both = driver.input_topic("users"), driver.input_topic("plans"), driver.output_topic("both")
    users.pipe("a", {"tier": "gold"})
    assert both.empty
    others.pipe("a", {"tier": "free"})
    users.pipe("a", {"tier": "tin"})
    others.pipe("a", None)
    assert [each.value for each in both.read_all()] == [
        {"tier": "gold", "plan": "free"},
        {"tier": "tin", "plan": "free"},
        None,
    ]
