"""Checks of settings that have to agree with each other or with what the runtime does by itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from itertools import chain

from streams_runtime.api.checks.disruption_checks import disruption_mistakes
from streams_runtime.api.checks.function_checks import function_mistakes
from streams_runtime.api.checks.init_checks import init_mistakes
from streams_runtime.api.checks.label_checks import is_key
from streams_runtime.api.checks.network_checks import network_mistakes
from streams_runtime.api.checks.operations.autoscaling_checks import autoscaling_mistakes
from streams_runtime.api.checks.operations.reset_checks import reset_mistakes
from streams_runtime.api.checks.query_checks import query_mistakes
from streams_runtime.api.checks.spark_checks import spark_mistakes
from streams_runtime.api.checks.state_checks import state_mistakes
from streams_runtime.api.checks.template_checks import template_mistakes
from streams_runtime.api.reading.field_paths import under
from streams_runtime.api.reading.not_yet import global_table_limits
from streams_runtime.api.reading.readable_parts import Parts
from streams_runtime.api.schemas.avro_checks import registry_mistakes
from streams_runtime.api.spec.kafka_spec import LEAST_POLL, MOST_POLL, InternalTopicsSpec, KafkaSpec, ProcessingSpec
from streams_runtime.api.spec.spec_values import format_duration, parse_duration
from streams_runtime.api.steps.functions_spec import REFERENCE_PATTERN
from streams_runtime.errors import Mistake

_ADDRESS = re.compile(r"(?:[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\]):(\d{1,5})")
_REFERENCE = re.compile(REFERENCE_PATTERN)
_WHOLE = re.compile(r"-?\d+")
_COUNTED = {".ms": "milliseconds", ".bytes": "bytes"}  # by how the names of properties end
_COMPACTED = ("compact",)
_REPARTITION_FIXED = {"cleanup.policy": ("delete",), "retention.ms": ("-1",), "retention.bytes": ("-1",)}
_CHANGELOG_FIXED = {"cleanup.policy": _COMPACTED}
_ALL_FIXED = {"message.timestamp.type": ("CreateTime",)}


def setting_mistakes(parts: Parts, internal: Iterable[str]) -> Iterator[Mistake]:
    """Everything outside the topology; `internal`: the internal topics' names without the application's."""
    checks: list[Iterator[Mistake]] = []
    if parts.kafka:
        checks += [_kafka(parts.kafka), registry_mistakes(parts)]
    if parts.internal_topics:
        checks += [
            init_mistakes(parts.internal_topics),
            _topic_properties(parts.internal_topics, list(internal)),
        ]
    if parts.state:
        checks.append(state_mistakes(parts.state, parts.template))
    if parts.queries:
        checks.append(query_mistakes(parts.queries))
    if parts.spark:
        checks.append(spark_mistakes(parts.spark))
    if parts.template:
        checks.append(template_mistakes(parts.template))
    if parts.autoscaling:
        checks.append(autoscaling_mistakes(parts.autoscaling, parts.replicas))
    if parts.disruption_budget:
        checks.append(disruption_mistakes(parts.disruption_budget))
    if parts.network_policy:
        checks.append(network_mistakes(parts.network_policy))
    if parts.reset:
        checks.append(reset_mistakes(parts.reset, [each.model for each in parts.sources if each.model]))
    if parts.topology:
        checks.append(function_mistakes(parts.topology.functions))
    if parts.processing:
        sources = [source.model for source in parts.sources if source.model]
        checks += [
            _processing(parts.processing),
            global_table_limits(parts.processing, sources),
        ]
    yield from chain.from_iterable(checks)


def _kafka(kafka: KafkaSpec) -> Iterator[Mistake]:
    for address in kafka.bootstrap_servers.split(",") if kafka.bootstrap_servers is not None else ():
        match = _ADDRESS.fullmatch(address.strip())
        if match is None or not 0 < int(match[2]) < 65536:
            found = f"found {address.strip()!r}, which is no address"
            yield Mistake("spec.kafka.bootstrapServers", found, "write host:port, several joined by commas")


def _processing(processing: ProcessingSpec) -> Iterator[Mistake]:
    # Without a wait an idle reader takes a processor; a long one keeps a rebalance waiting for its end.
    if not LEAST_POLL <= processing.poll_duration <= MOST_POLL:
        least, most = format_duration(LEAST_POLL), format_duration(MOST_POLL)
        found = f"found {format_duration(processing.poll_duration)}"
        yield Mistake("spec.processing.pollDuration", found, f"give {least} to {most}; 100ms is the default")

    for field, reference in processing.error_handlers.items():
        if not _REFERENCE.fullmatch(reference):
            yield Mistake(field, f"found {reference!r}", "write package.module:function")

    at, seen = "spec.processing.rackAwareAssignmentTags", set[str]()
    for index, key in enumerate(processing.rack_aware_assignment_tags):
        if not is_key(key):
            found = f"found {key!r}, which is no key of a label"
            yield Mistake(f"{at}[{index}]", found, "write it like topology.kubernetes.io/zone")
        if key in seen:
            yield Mistake(f"{at}[{index}]", f"{key!r} is given twice", "keep one of the two")
        seen.add(key)


def _topic_properties(internal: InternalTopicsSpec, topics: list[str]) -> Iterator[Mistake]:
    at = "spec.internalTopics"
    if internal.replication_factor == 0:
        yield Mistake(f"{at}.replicationFactor", "found 0", "give at least 1, or -1 for the brokers' default")
    yield from _properties(internal.config, topics or ["-changelog", "-repartition"], f"{at}.config")
    for topic, config in internal.overrides.items():
        yield from _properties(config, [topic], under(f"{at}.overrides", topic))


def _properties(config: Mapping[str, str], topics: list[str], path: str) -> Iterator[Mistake]:
    """Of these topics."""
    unsafe = [mistake for topic in topics for mistake in _unsafe(config, topic, path)]
    reported = {mistake.path for mistake in unsafe}
    yield from unsafe
    for name, value in config.items():
        unit = next((unit for end, unit in _COUNTED.items() if name.endswith(end)), None)
        if unit is not None and not _WHOLE.fullmatch(value) and under(path, name) not in reported:
            yield Mistake(
                under(path, name), f"found {value!r}, which is no whole number", f"give {unit}{_meant(value)}"
            )


def _unsafe(config: Mapping[str, str], topic: str, path: str) -> Iterator[Mistake]:
    fixed = {**_ALL_FIXED, **(_CHANGELOG_FIXED if topic.endswith("-changelog") else _REPARTITION_FIXED)}
    for name, allowed in fixed.items():
        if name in config and config[name].replace(" ", "") not in allowed:
            what = topic.removeprefix("-") if topic.startswith("-") else topic
            found = f"found {config[name]!r}, with which {what} would lose records or their times"
            yield Mistake(under(path, name), found, f"leave it out; it has to be {allowed[0]} there")


def _meant(text: str) -> str:
    """A duration in milliseconds: the resource's own settings are written as durations, and a topic's are not."""
    try:
        duration = parse_duration(text)
    except ValueError:
        return ""
    return f"; {text} is {duration // timedelta(milliseconds=1)}"
