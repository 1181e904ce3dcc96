"""Spans of batches, as a collector gets them by OTLP; and a collector that is away, or is not asked for."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Iterator

import pytest
from otlp_collector import Collector, attributes_of, collecting
from waiting import eventually

from streams_runtime.errors import ConfigException
from streams_runtime.metrics.thread_recorder import ThreadRecorder
from streams_runtime.metrics.tracing import tracing_of


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as made:
        yield made


def run_batch(recorder: ThreadRecorder, error: Exception | None = None) -> None:
    recorder.stage("spark", 0.5)
    recorder.stage("process", 0.25)
    recorder.processed(1, 0.75, 1000)
    if error is None:
        recorder.stage("commit", 0.1)
        recorder.stage("store", 0.1)
    recorder.ended(error)


def test_a_batch_is_a_span_with_its_stages_and_one_that_failed_says_why(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_RESOURCE_ATTRIBUTES": "team=shop"}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    tracing = tracing_of(variables, "orders", "orders-0")
    assert tracing is not None
    recorder = ThreadRecorder(trace=tracing.batches("orders-0-StreamThread-1"))
    begun = time.time_ns()
    run_batch(recorder)
    run_batch(recorder, OSError("disk full"))
    recorder.ended()  # a round without a batch
    tracing.close()
    eventually(lambda: len(collector.spans()) == 8, "all spans have come")
    assert (
        attributes_of(collector.got[0].resource_spans[0].resource).items()
        >= {
            "service.name": "orders",
            "service.instance.id": "orders-0",
            "team": "shop",
        }.items()
    )
    spans = collector.spans()
    good, bad = sorted((span for span in spans if span.name == "batch"), key=lambda span: span.status.code)
    assert attributes_of(good) == {
        "streams.thread": "orders-0-StreamThread-1",
        "streams.subtopology": 1,
        "streams.records": 1000,
    }
    assert (bad.status.message, good.status.message) == ("OSError: disk full", "")
    inside = [span for span in spans if span.parent_span_id == good.span_id]
    assert [span.name for span in inside] == ["spark", "process", "commit", "store"]
    assert all(span.trace_id == good.trace_id for span in inside)
    assert inside[0].end_time_unix_nano - inside[0].start_time_unix_nano == 500_000_000
    assert good.start_time_unix_nano == inside[0].start_time_unix_nano
    assert begun <= good.end_time_unix_nano == inside[-1].end_time_unix_nano


def test_a_collector_that_is_away_costs_spans_and_neither_the_batch_nor_the_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        tracing = tracing_of({"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}, "orders", "orders-0")
        assert tracing is not None
        run_batch(ThreadRecorder(trace=tracing.batches("t")))
        with caplog.at_level(logging.INFO):
            tracing.close()
    assert all(record.exc_info is None for record in caplog.records)


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"OTEL_SERVICE_NAME": "orders"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": ""},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_TRACES_EXPORTER": "none"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_SDK_DISABLED": "True"},
    ],
)
def test_nothing_is_traced_where_nothing_asks_for_it(variables: dict[str, str]) -> None:
    assert tracing_of(variables, "orders", "orders-0") is None


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "OTEL_TRACES_EXPORTER: zipkin is not there. Use otlp"),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            "OTEL_EXPORTER_OTLP_PROTOCOL: grpc is not there. Use http/protobuf",
        ),
    ],
)
def test_what_is_not_there_is_refused_by_name(variables: dict[str, str], named: str) -> None:
    with pytest.raises(ConfigException, match=named):
        tracing_of(variables, "orders", "orders-0")
