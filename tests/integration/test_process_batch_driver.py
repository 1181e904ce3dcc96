"""Processors of batches in the test driver: Spark before and behind them, records that fail, and the clock."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from topology_drivers import Made, document

from streams_runtime.errors import InvalidApplicationException, UserCodeException
from streams_runtime.testing import START, Record, TopologyTestDriver

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]

IN = {
    "name": "in",
    "topic": "in",
    "key": {"format": "string"},
    "value": {"format": "json", "schema": "op STRING, n BIGINT"},
}
STORES = {"seen": {"key": "STRING", "value": "n BIGINT"}}


def step(of: str, source: str = "in", key: str | None = "STRING", **more: Any) -> dict[str, Any]:
    process = {"python": f"batch_processors:{of}", "value": "seen STRING", "stores": STORES, **more}
    return {"name": "p", "from": source, "process": process | ({} if key is None else {"key": key})}


def piped(driver: TopologyTestDriver, records: list[Record], size: int) -> None:
    """The records in batches of this size."""
    topic = driver.input_topic("in")
    for first in range(0, len(records), size):
        with driver.batch():
            topic.pipe_all(records[first : first + size])


def told(driver: TopologyTestDriver, topic: str = "out") -> list[tuple[Any, Any]]:
    found = driver.output_topic(topic).read_all()
    return [(each.key, None if each.value is None else each.value["seen"]) for each in found]


@pytest.mark.parametrize("size", [1, 3, 6])
def test_columns_go_through_a_processor_between_steps_of_spark(made: Made, size: int) -> None:
    steps = [
        {"name": "some", "from": "in", "where": "op is null or op != 'no'", "select": {"op": "trim(op)", "n": "n + 1"}},
        step("Columns", "some", None),
        {"name": "loud", "from": "p", "select": {"seen": "concat(seen, '!')"}},
    ]
    driver = made(document([IN], steps, {"out": "loud"}))
    given = [("a", "x ", 1), ("b", "no", 2), (None, "y", 2), ("c", None, 0), ("d", "z", None), ("e", "v", 3)]
    records: list[Any] = [
        Record(key, {"op": op, "n": n}, START + timedelta(milliseconds=at)) for at, (key, op, n) in enumerate(given)
    ]
    piped(driver, [*records, Record("f", None)], size)
    # Numbers that were even are odd, and come twice.
    assert told(driver) == [("a", "X!"), (None, "Y!"), (None, "y!"), ("c", None), ("c", None), ("e", "V!")]


def test_batches_of_the_driver_change_nothing_but_how_records_come_together(made: Made) -> None:
    ops = [("a", "put"), ("b", "put"), ("a", "get"), ("c", None), ("b", "twice"), ("a", "all"), ("a", "delete")]
    records = [
        Record(key, None if op is None else {"op": op, "n": at}, START + timedelta(milliseconds=3 * at))
        for at, (key, op) in enumerate(ops)
    ]
    found = []
    for module, size in (("processor_classes", 1), ("batch_processors", 1), ("batch_processors", 3)):
        keeping = step("Everything")
        keeping["process"]["python"] = f"{module}:Everything"
        driver = made(document([IN], [keeping], {"out": "p"}))
        piped(driver, records, size)
        driver.advance_wall_clock(timedelta(milliseconds=60))
        found.append((told(driver), [*driver.store("seen").all()]))
    assert found[0] == found[1] == found[2]
    assert len(found[0][0]) > len(ops)


@pytest.mark.parametrize("policy", ["continue", {"deadLetter": {"topic": "letters"}}], ids=["continue", "deadLetter"])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_of_a_batch_that_fails_only_the_records_to_blame_are_left_out(made: Made, policy: Any, size: int) -> None:
    application = document([IN], [step("Keeping", key=None)], {"out": "p"}, processing={"onProcessingError": policy})
    driver = made(application)
    ops = [("a", "put"), ("b", "raise"), ("c", "put"), ("d", "raise"), ("a", "put")]
    piped(driver, [Record(key, {"op": op, "n": at}) for at, (key, op) in enumerate(ops)], size)
    assert {each.key: each.value["n"] for each in driver.store("seen").all()} == {"a": 4, "c": 2}
    assert driver.counters.processing_errors == 2
    if policy != "continue":
        assert [each.key for each in driver.output_topic("letters").read_all()] == [b"b", b"d"]


def test_a_failure_ends_the_batch_and_names_its_first_and_last_record(made: Made) -> None:
    driver = made(document([IN], [step("Failing")], {"out": "p"}))
    records = [Record("k", {"op": "raised", "n": at}) for at in range(3)]
    where = "failed in process_batch for the 3 records from in-0@0 to in-0@2: ValueError: a bad batch"
    with pytest.raises(UserCodeException, match=where), driver.batch():
        driver.input_topic("in").pipe_all(records)
    assert told(driver) == []


def test_a_class_with_both_methods_is_a_mistake_at_its_field(made: Made) -> None:
    with pytest.raises(InvalidApplicationException) as refused:
        made(document([IN], [step("Both")], {"out": "p"}))
    assert [(each.path, each.remedy) for each in refused.value.mistakes] == [
        ("spec.topology.steps[0].process.python", "define one of the two")
    ]
