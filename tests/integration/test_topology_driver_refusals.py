"""The test driver where something is wrong: unreadable records, failing steps, slips of a test; and how it closes."""

from __future__ import annotations

import os
import re
import threading
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from topology_drivers import (
    BOUGHT,
    BY_SIZE,
    BY_USER,
    ORDERS,
    REPARTITIONED,
    SIZES,
    TOTALS,
    USERS,
    Made,
    document,
    refused,
)

from streams_runtime.errors import (
    ConfigException,
    DeserializationException,
    IllegalStateException,
    InvalidApplicationException,
    StateStoreNotAvailableException,
    StreamsException,
    TopologyException,
    UnknownStateStoreException,
)
from streams_runtime.pipeline.spark.spark_session import is_running
from streams_runtime.state.serdes import SerdeException
from streams_runtime.testing import START, Record, TopologyTestDriver

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]


def open_files() -> list[Path]:
    """The files that this process has open now, as links."""
    return [each for each in Path("/proc/self/fd").iterdir() if each.is_symlink()]


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where drivers make their folders: a test's own, since other workers have drivers too."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def test_an_unreadable_record_is_raised_and_nothing_of_its_batch_is_written(made: Made) -> None:
    driver = made(document([ORDERS], [TOTALS], {"copy": "orders", "totals": "totals"}))
    orders, totals = driver.input_topic("orders"), driver.output_topic("totals")
    orders.pipe("a", {"amount": 1})
    with pytest.raises(
        DeserializationException, match=r"^record orders-0@2 can't be read: its value is not JSON"
    ) as raised:
        orders.pipe_all([("a", {"amount": 2}), ("b", b"{")])
    assert (raised.value.topic, raised.value.partition, raised.value.offset) == ("orders", 0, 2)
    assert [each.value["total"] for each in totals.read_all()] == [1]
    assert len(driver.output_topic("copy").read_all()) == 1
    orders.pipe("a", {"amount": 4})
    assert totals.read().value == {"total": 5, "n": 2}, "the batch that failed is forgotten, and the next one goes on"


def test_with_continue_it_is_left_out_and_counted(made: Made) -> None:
    policy = {"onDeserializationError": "continue"}
    driver = made(document([ORDERS], [TOTALS], {"totals": "totals"}, processing=policy))
    driver.input_topic("orders").pipe_all([("a", b"{"), ("a", b'{"amount": "many"}'), ("a", {"amount": 2})])
    assert [each.value for each in driver.output_topic("totals").read_all()] == [{"total": 2, "n": 1}]
    assert driver.counters.deserialization_errors == 2


def test_dead_letters_come_as_they_were_with_headers_that_say_why(made: Made) -> None:
    policy = {"onDeserializationError": {"deadLetter": {"topic": "letters"}}}
    driver = made(document([ORDERS], [TOTALS], {"totals": "totals"}, processing=policy))
    driver.input_topic("orders").pipe_all([("a", b"{", START, {"own": b"1"}), ("a", {"amount": 2})])
    (letter,) = driver.output_topic("letters").read_all()
    assert (letter.key, letter.value, letter.timestamp, letter.headers[0]) == (b"a", b"{", START, ("own", b"1"))
    assert dict(letter.headers)["__streams.errors.exception"] == b"DeserializationException"
    assert driver.store("totals").get("a") == {"total": 2, "n": 1}


def test_a_step_that_fails_in_spark_is_raised_as_the_runtime_does(made: Made) -> None:
    steps = [{"name": "number", "from": "orders", "select": {"n": "cast(user as int)"}}]
    driver = made(document([ORDERS], steps, {"out": "number"}))
    with pytest.raises(StreamsException, match=r"^a step failed in Spark: \[CAST_INVALID_INPUT\]"):
        driver.input_topic("orders").pipe("a", {"user": "seven"})
    driver.input_topic("orders").pipe("a", {"user": "7"})
    assert driver.output_topic("out").read().value == {"n": 7}


def test_a_total_that_fails_takes_back_what_the_batch_had_for_other_sinks(made: Made) -> None:
    driver = made(document([ORDERS], [TOTALS], {"copy": "orders", "totals": "totals"}))
    orders, copy = driver.input_topic("orders"), driver.output_topic("copy")
    orders.pipe("a", {"amount": 2**63 - 1})
    with pytest.raises(StreamsException, match=r"steps\[0\]\.aggregate\.total"):
        orders.pipe("a", {"amount": 1})
    assert len(copy.read_all()) == 1
    assert driver.store("totals").get("a") == {"total": 2**63 - 1, "n": 1}


def test_a_failure_behind_a_repartition_topic_is_forgotten_with_all_that_waits(made: Made) -> None:
    failing = {"name": "n", "from": "by-user", "aggregate": {"n": "sum(cast(user as int))"}, "store": "n"}
    driver = made(
        document([ORDERS], [BY_USER, failing, {**BY_SIZE, "from": "orders"}, SIZES], {"out": "n", "sizes": "sizes"})
    )
    with pytest.raises(StreamsException, match="CAST_INVALID_INPUT"):
        driver.input_topic("orders").pipe_all(
            [("a", {"user": "seven", "amount": 9}), ("a", {"user": "8", "amount": 9})]
        )
    driver.input_topic("orders").pipe("a", {"user": "7", "amount": 9})
    assert driver.output_topic("out").read_all() == [Record("7", {"n": 7}, START)]
    assert driver.output_topic("sizes").read_all() == [Record("large", {"n": 1}, START)]


def test_unknown_names_are_told_with_the_nearest_one(made: Made) -> None:
    policy = {"onDeserializationError": {"deadLetter": {"topic": "letters"}}}
    driver = made(document([ORDERS], [TOTALS], {"totals": "totals"}, processing=policy))
    with refused(TopologyException, "no source reads the topic 'order'; did you mean 'orders'?"):
        driver.input_topic("order")
    with refused(TopologyException, "no source reads the topic 'totals'; it is written; use output_topic"):
        driver.input_topic("totals")
    with refused(TopologyException, "no sink writes the topic 'letter'; did you mean 'letters'?"):
        driver.output_topic("letter")
    with refused(TopologyException, "no sink writes the topic 'orders'; it is read; use input_topic"):
        driver.output_topic("orders")
    with refused(UnknownStateStoreException, "the topology has no store 'total', only: totals; fix the name"):
        driver.store("total")


def test_a_value_that_does_not_fit_is_told_with_its_field_and_nothing_is_piped(made: Made) -> None:
    numbers = {"name": "n", "topic": "numbers", "key": {"format": "long"}, "value": {"format": "string"}}
    driver = made(document([ORDERS, numbers], [], {"copy": "orders", "ncopy": "n"}))
    orders = driver.input_topic("orders")
    for message, value in {
        "value for orders has no column 'amuont' in its schema; did you mean 'amount'?": {"amuont": 3},
        "value for orders.amount is '3' (str), which is no LONG; give an int from": {"amount": "3"},
        "value for orders.at is 3.5 (float), which is no TIMESTAMP; give a datetime with a time zone": {"at": 3.5},
        "value for orders is 3 (int), which is no STRUCT; give a dict whose keys are names": 3,
    }.items():
        with refused(SerdeException, message):
            orders.pipe_all([("a", {"amount": 1}), ("b", value)])
    with refused(SerdeException, "key for orders: string: a value of type int can't be written; give a str"):
        orders.pipe(1, {})
    with refused(SerdeException, "key for numbers: long: a value of type str can't be written; give an int"):
        driver.input_topic("numbers").pipe("1", "one")
    with pytest.raises(ValueError, match="no time zone; give an aware datetime"):
        orders.pipe("a", {}, timestamp=datetime(2024, 1, 1))  # noqa: DTZ001
    with refused(DeserializationException, "record orders-0@0 can't be read: its time is -1 ms, and records have"):
        orders.pipe("a", {}, timestamp=-1)
    with refused(ValueError, "orders has no partition 1: it has 1, numbered from 0; say how many"):
        orders.pipe("a", {}, partition=1)
    orders.pipe("z", {"amount": 9})
    assert [each.key for each in driver.output_topic("copy").read_all()] == ["z"]


def test_numbers_of_partitions_have_to_fit(made: Made) -> None:
    joined = {"name": "known", "from": "orders", "join": {"table": "users", "select": {"tier": "users.tier"}}}
    both = document([ORDERS, USERS], [joined], {"known": "known"})
    with refused(TopologyException, "partitions: no source and no sink has the topic 'order'; did you mean 'o"):
        made(both, partitions={"order": 2})
    with refused(TopologyException, "partitions: found 0 for orders; a topic has at least 1"):
        made(both, partitions=0)
    with pytest.raises(TopologyException, match="need the same number of partitions: orders has 2, users has 1"):
        made(both, partitions={"orders": 2})


def test_mistakes_of_the_application_are_told_all_at_once_and_leave_nothing(
    made: Made, tmp_path: Path, temporary: Path
) -> None:
    with pytest.raises(InvalidApplicationException, match=re.escape("spec.topology.steps[0].where")):
        made(document([ORDERS], [{"name": "x", "from": "orders", "where": "amount >"}], {"out": "x"}))
    with pytest.raises(InvalidApplicationException, match=re.escape("spec.topology.steps[0].where")):
        made(document([ORDERS], [{"name": "x", "from": "orders", "where": "amount + at > 1"}], {"out": "x"}))
    with refused(ConfigException, f"there is no file {tmp_path}/none.yaml; give the path of a StreamsApplication"):
        made(str(tmp_path / "none.yaml"))
    assert list(temporary.iterdir()) == []


def test_a_topic_that_sinks_write_differently_cannot_be_read(made: Made) -> None:
    steps = [TOTALS, {**TOTALS, "name": "w", "store": "w", "window": {"tumbling": {"size": "1m"}}}]
    driver = made(document([ORDERS], steps, [{"from": "totals", "topic": "out"}, {"from": "w", "topic": "out"}]))
    with refused(ConfigException, "totals, w write keys or values of different formats to out, which can't be"):
        driver.output_topic("out")


def test_a_batch_that_is_broken_off_is_left_out_and_batches_do_not_nest(made: Made) -> None:
    driver = made(document([ORDERS], [], {"copy": "orders"}))
    orders = driver.input_topic("orders")
    with refused(SerdeException, "value for orders is 3 (int)"), driver.batch():
        orders.pipe_all([("a", {}), ("c", {})])
        orders.pipe("a", 3)
    with refused(IllegalStateException, "a batch is already open"), driver.batch(), driver.batch():
        pass
    with driver.batch():
        orders.pipe("b", {})
    assert [each.key for each in driver.output_topic("copy").read_all()] == ["b"]


def test_a_closed_driver_leaves_no_folder_and_no_thread_and_says_so(spark: Any, temporary: Path) -> None:
    threads = set(threading.enumerate())
    with TopologyTestDriver(REPARTITIONED, partitions=2) as driver:
        driver.input_topic("orders").pipe_all(BOUGHT)
        (folder,) = temporary.glob("topology-test-driver-*")
        assert [each for each in map(os.readlink, open_files()) if folder.name in each]
        assert len([each for each in folder.rglob("rocksdb/*") if each.is_dir()]) == 4
        spent, written, orders = driver.store("spent"), driver.output_topic("spent"), driver.input_topic("orders")
    assert list(temporary.iterdir()) == []
    assert not [each for each in map(os.readlink, open_files()) if folder.name in each]
    assert set(threading.enumerate()) <= threads
    assert is_running(), "the session was there before"
    assert spark.range(3).count() == 3
    driver.close()
    assert len(written.read_all()) == 3, "what was written can still be read"
    with refused(StateStoreNotAvailableException, "store 'spent' is closed: "):
        spent.get("al")
    for use in (
        lambda: orders.pipe("a", {}),
        lambda: driver.input_topic("orders"),
        lambda: driver.output_topic("spent"),
        lambda: driver.store("spent"),
        lambda: driver.batch().__enter__(),
    ):
        with refused(IllegalStateException, "the driver is closed; make another one, which begins with empty"):
            use()
