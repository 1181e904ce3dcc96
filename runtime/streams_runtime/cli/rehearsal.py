"""A small application that runs once, so that JVMs later start with the classes that it took.

It does what applications do: reads with Spark and without, repartitions, joins, aggregates by key and by windows.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import yaml

from streams_runtime.api import parse_application
from streams_runtime.client import StreamsClient
from streams_runtime.errors import EnvironmentException
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.broker.embedded_broker import EmbeddedBroker
from streams_runtime.kafka.producer.batch_producer import BatchProducer
from streams_runtime.kafka.types import TopicPartition, TopicSpec
from streams_runtime.pipeline.batch_input import BatchInput, OffsetRange
from streams_runtime.pipeline.record_reader import RecordReader
from streams_runtime.pipeline.spark.spark_session import end_jvm, open_session
from streams_runtime.settings import InstanceSettings
from streams_runtime.states import ClientState
from streams_runtime.topology.nodes.source_and_sink_nodes import Format, SourceNode

_PATIENCE = 600.0  # seconds, for each of its steps
_TICK = 0.1
_RECORDS = 100  # in either source
_SHORT_RUN = "-XX:TieredStopAtLevel=1"  # what the JVM compiles is not archived
_START = 1_700_000_000_000  # ms since 1970
_APPLICATION = """
apiVersion: streamsoperator.io/v1alpha1
kind: StreamsApplication
metadata: {name: rehearsal}
spec:
  processing: {guarantee: exactly_once_v2}
  topology:
    sources:
      - {name: orders, topic: orders, value: {format: json, schema: "user STRING, amount DOUBLE"}}
      - name: users
        topic: users
        key: {format: string}
        value: {format: json, schema: "city STRING"}
        table: {store: users}
    steps:
      - {name: paid, from: orders, where: amount > 0, select: {user: user, amount: "round(amount, 2)"}}
      - {name: by-user, from: paid, keyBy: user}
      - {name: with-city, from: by-user, join: {table: users, type: left, select: {city: users.city}}}
      - {name: totals, from: with-city, aggregate: {total: sum(amount), orders: count(*)}, store: totals}
      - {name: minutes, from: with-city, window: {tumbling: {size: 1m}}, aggregate: {paid: sum(amount)}, store: minutes}
    sinks:
      - {from: with-city, topic: orders-with-city}
      - {from: totals, topic: totals}
      - {from: minutes, topic: minutes}
"""
_TOPICS = ("orders", "users", "orders-with-city", "totals", "minutes")


_ORDERS = SourceNode("orders", "orders", Format("bytes"), Format("bytes"), None, "")


def rehearse(spark_options: Sequence[str], broker_options: Sequence[str]) -> None:
    """Run the application beside a broker, with these options of their JVMs, and end both in order.

    Raises StreamsException: it did not work out; the message says what to do.
    """
    with tempfile.TemporaryDirectory(prefix="streamsapp-rehearsal-") as place:
        folder = Path(place)
        with EmbeddedBroker(folder / "broker", jvm_options=[*broker_options, _SHORT_RUN]) as broker:
            _run(broker.bootstrap_servers, folder / "state", spark_options)
            if not end_jvm(_PATIENCE):
                raise EnvironmentException(f"Spark's JVM has not ended within {_PATIENCE:.0f} s; try again")
            if not broker.stop(_PATIENCE):
                raise EnvironmentException(f"the broker has not ended within {_PATIENCE:.0f} s; try again")


def _run(bootstrap: str, state: Path, spark_options: Sequence[str]) -> None:
    with closing(Admin({"bootstrap.servers": bootstrap})) as admin:
        admin.create_topics([TopicSpec(name, 1) for name in _TOPICS])
    _feed(bootstrap)
    # The client runs on this session, since one is there.
    session = open_session(
        "rehearsal", "local[2]", {"spark.driver.extraJavaOptions": " ".join([*spark_options, _SHORT_RUN])}
    )
    ranges = (OffsetRange(TopicPartition("orders", 0), 0, _RECORDS),)
    RecordReader(session, {"bootstrap.servers": bootstrap}).read(_ORDERS, BatchInput(ranges)).toArrow()
    client = StreamsClient(
        parse_application(yaml.safe_load(_APPLICATION)), InstanceSettings("rehearsal-0", bootstrap, state)
    )
    client.start()
    try:
        _wait_for(client, 3 * _RECORDS)
    finally:
        client.close()
        client.wait_for_end(_PATIENCE)
        session.stop()
    if client.error is not None:
        raise client.error


def _feed(bootstrap: str) -> None:
    numbers = range(_RECORDS)
    with closing(BatchProducer({"bootstrap.servers": bootstrap}, "rehearsal")) as producer:
        times = [_START + number for number in numbers]
        keys, cities = [f"u{number}".encode() for number in numbers], [b'{"city": "Berlin"}' for _ in numbers]
        producer.send("users", keys, cities, times)
        orders = [f'{{"user": "u{number}", "amount": {number}.5}}'.encode() for number in numbers]
        producer.send("orders", [None for _ in numbers], orders, times)
        producer.flush()


def _wait_for(client: StreamsClient, records: int) -> None:
    """Wait until so many records are processed; those of repartition topics count too."""
    end = time.monotonic() + _PATIENCE
    while sum(each.records_processed for each in client.counters) < records and client.state is not ClientState.ERROR:
        if time.monotonic() > end:
            raise EnvironmentException(f"the rehearsal is not done after {_PATIENCE:.0f} s: {client.state}; try again")
        time.sleep(_TICK)
