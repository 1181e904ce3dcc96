"""Global tables in the test driver: joins by any expression, what is dropped, what can't be read, and their stores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from streams_runtime.errors import DeserializationException, InvalidApplicationException
from streams_runtime.testing import TopologyTestDriver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.integration

TOPOLOGY = """
apiVersion: streamsoperator.io/v1alpha1
kind: StreamsApplication
metadata: {{name: named}}
spec:
  processing: {{onDeserializationError: {policy}}}
  topology:
    sources:
      - {{name: flights, topic: flights, key: {{format: string}},
          value: {{format: json, schema: "carrier STRING, origin STRING"}}}}
      - {{name: airlines, topic: airlines, key: {{format: string}}, value: {{format: json, schema: "name STRING"}},
          table: {{store: airlines, global: true}}}}
      - {{name: airports, topic: airports, key: {{format: string}}, value: {{format: string}},
          table: {{store: airports, global: true}}}}
    steps:
      - {{name: named, from: flights, join: {{table: airlines, "key": {on}, select: {{airline: airlines.name}}}}}}
      - {{name: placed, from: named,
          join: {{table: airports, type: left, "key": origin, select: {{at: airports.value}}}}}}
      - {{name: by-airport, from: placed, keyBy: at}}
      - {{name: counted, from: by-airport, aggregate: {{"n": count(*)}}, store: counted}}
    sinks:
      - {{from: placed, topic: placed, value: {{format: json}}}}
"""


def text(on: str = '"upper(carrier)"', policy: str = "fail") -> str:
    return TOPOLOGY.format(on=on, policy=policy)


@pytest.fixture(scope="module")
def played(spark: SparkSession) -> Iterator[TopologyTestDriver]:
    del spark
    with TopologyTestDriver(text(), partitions={"flights": 2, "airlines": 3}) as played:
        yield played


def flight(carrier: str | None, origin: str | None = None) -> dict[str, Any]:
    return {"carrier": carrier, "origin": origin}


def test_a_global_table_is_looked_up_in_by_an_expression_whatever_the_records_key(played: TopologyTestDriver) -> None:
    flights, airlines, airports = (played.input_topic(topic) for topic in ("flights", "airlines", "airports"))
    placed = played.output_topic("placed")
    airlines.pipe_all([("AA", {"name": "American"}), ("UA", {"name": "United"}), ("DL", {"name": "Delta"})])
    airports.pipe("JFK", "New York")
    before = played.counters.records_dropped
    some = [("k", flight("aa", "JFK")), (None, flight("ua", "XXX")), ("k", flight("dl")), ("k", flight("zz", "JFK"))]
    flights.pipe_all(some)
    found = sorted((each.key is None, each.value["airline"], each.value["at"]) for each in placed.read_all())
    assert found == [(False, "American", "New York"), (False, "Delta", None), (True, "United", None)]
    # A lookup of nothing is dropped by an inner join, as a record without a value is; not to be there is no such thing.
    assert played.counters.records_dropped - before == 2  # by the count, which takes no null keys
    flights.pipe_all([("k", flight(None)), ("k", None)])
    assert placed.empty
    assert played.counters.records_dropped - before == 4
    assert played.store("counted").get("New York") == {"n": 1}


def test_changes_of_a_global_table_are_seen_by_what_comes_later(played: TopologyTestDriver) -> None:
    flights, airlines, placed = (
        played.input_topic("flights"),
        played.input_topic("airlines"),
        played.output_topic("placed"),
    )
    airlines.pipe("HA", {"name": "Hawaiian"})
    flights.pipe("k", flight("HA"))
    airlines.pipe("HA", {"name": "Aloha"})
    flights.pipe("k", flight("HA"))
    airlines.pipe("HA", None)
    flights.pipe("k", flight("HA"))
    assert [each.value["airline"] for each in placed.read_all()] == ["Hawaiian", "Aloha"]
    with played.batch():
        flights.pipe("k", flight("AS"))
        airlines.pipe("AS", {"name": "Alaska"})  # the table first, whatever came first
    assert [each.value["airline"] for each in placed.read_all()] == ["Alaska"]


def test_a_global_store_is_read_as_one_partition_however_many_its_topic_has(played: TopologyTestDriver) -> None:
    airlines = played.input_topic("airlines")
    airlines.pipe_all([(key, {"name": key.lower()}) for key in ("VA", "VB", "VC", "VD")])
    before = played.counters.records_dropped
    airlines.pipe(None, {"name": "nobody"})
    assert played.counters.records_dropped == before + 1
    store = played.store("airlines")
    assert store.get("VC") == {"name": "vc"}
    with store.range("VB", "VD") as found:
        assert [key for key, _ in found] == ["VB", "VC", "VD"]
    assert store.approximate_num_entries() >= 4


def test_a_record_of_a_global_table_that_cannot_be_read_is_told_or_left_out(
    played: TopologyTestDriver, spark: SparkSession
) -> None:
    del spark
    with pytest.raises(DeserializationException, match="airlines-"):
        played.input_topic("airlines").pipe("BR", b"no json")
    assert played.store("airlines").get("BR") is None
    with TopologyTestDriver(text(policy="continue")) as lenient:
        lenient.input_topic("airlines").pipe_all([("BR", {"name": "a"}), ("BR", b"no json"), ("BS", {"name": "b"})])
        assert lenient.store("airlines").get("BR") == {"name": "a"}
        assert lenient.store("airlines").get("BS") == {"name": "b"}
        assert lenient.counters.deserialization_errors == 1


@pytest.mark.usefixtures("spark")
def test_what_only_spark_can_tell_of_a_lookup_is_told_at_its_field() -> None:
    with pytest.raises(
        InvalidApplicationException, match=r"join\.key: hash\(carrier\) is INT, the key of airlines STRING"
    ):
        TopologyTestDriver(text(on="hash(carrier)"))
