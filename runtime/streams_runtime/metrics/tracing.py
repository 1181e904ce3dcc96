"""OpenTelemetry traces of batches, where the process's environment asks for them by OpenTelemetry's own variables.

A batch of a sub-topology is a span, and its stages (thread_recorder.STAGES) are spans in it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from streams_runtime.errors import ConfigException

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Tracer

_LOGGER = logging.getLogger("streams_runtime.client")
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_EXPORTER = "OTEL_TRACES_EXPORTER"
_PROTOCOL = "http/protobuf"
_CLOSE_MILLISECONDS = 3000  # for spans that are still to be sent; a collector that is away must not hold a pod up
_NANOSECONDS = 1_000_000_000


class Tracing:
    """The exporter of one client's spans. A thread of its own sends them; one that can't be sent is dropped."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider

    def batches(self, thread: str) -> BatchTrace:
        """The spans of one stream thread."""
        return BatchTrace(self._provider.get_tracer("streams_runtime"), thread)

    def close(self) -> None:
        """Send what is left, for at most three seconds."""
        self._provider.force_flush(_CLOSE_MILLISECONDS)
        self._provider.shutdown()


class BatchTrace:
    """The spans of one thread's batches; its thread alone calls it."""

    def __init__(self, tracer: Tracer, thread: str, now: Callable[[], int] = time.time_ns) -> None:
        """`now`: nanoseconds since 1970."""
        self._tracer = tracer
        self._thread = thread
        self._now = now
        self._stages: list[tuple[str, int, int]] = []
        self._attributes: dict[str, str | int] = {}

    def stage(self, name: str, seconds: float) -> None:
        """A stage has ended that took so long."""
        end = self._now()
        self._stages.append((name, end - round(seconds * _NANOSECONDS), end))

    def processed(self, subtopology: int, records: int) -> None:
        """What the present batch was."""
        self._attributes = {"streams.subtopology": subtopology, "streams.records": records}

    def end(self, error: BaseException | None = None) -> None:
        """The batch is stored; or it failed with `error`, and will be read again."""
        stages, self._stages = self._stages, []
        attributes, self._attributes = self._attributes, {}
        if not stages:
            return
        # Only here: the package takes a tenth of a second to load, and most clients trace nothing.
        from opentelemetry.trace import Status, StatusCode, set_span_in_context

        facts = {"streams.thread": self._thread, **attributes}
        batch = self._tracer.start_span("batch", start_time=stages[0][1], attributes=facts)
        inside = set_span_in_context(batch)
        for name, start, stop in stages:
            self._tracer.start_span(name, context=inside, start_time=start).end(stop)
        if error is not None:
            batch.set_status(Status(StatusCode.ERROR, f"{type(error).__name__}: {error}"))
        batch.end(stages[-1][2])


def tracing_of(environment: Mapping[str, str], application_id: str, instance: str) -> Tracing | None:
    """Tracing as the variables ask for it; None where they ask for none.

    OTEL_EXPORTER_OTLP_ENDPOINT (or …_TRACES_ENDPOINT) asks for it, unless OTEL_TRACES_EXPORTER is `none` or
    OTEL_SDK_DISABLED is `true`. Headers, timeouts, samplers, limits and resource attributes are read from their
    variables by OpenTelemetry itself. The service's name is the application id, unless OTEL_SERVICE_NAME says another.

    Raises:
        ConfigException: another exporter or protocol is asked for than OTLP by http/protobuf.
    """
    exporter = environment.get(_EXPORTER) or "otlp"
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true" or exporter == "none":
        return None
    if not any(environment.get(name) for name in _ENDPOINTS) and not environment.get(_EXPORTER):
        return None
    if exporter != "otlp":
        raise ConfigException(f"{_EXPORTER}: {exporter} is not there. Use otlp, or none")
    protocol = next((found for name in _PROTOCOLS if (found := environment.get(name))), _PROTOCOL)
    if protocol != _PROTOCOL:
        raise ConfigException(f"{_PROTOCOLS[1]}: {protocol} is not there. Use {_PROTOCOL}")
    return Tracing(_provider(application_id, instance))


def _provider(application_id: str, instance: str) -> TracerProvider:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    known = Resource({"service.name": application_id, "service.instance.id": instance})
    provider = TracerProvider(resource=known.merge(OTELResourceDetector().detect()))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    _LOGGER.info("traces of batches go to an OpenTelemetry collector, as OTEL_* variables ask")
    return provider
