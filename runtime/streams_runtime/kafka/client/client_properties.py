"""Client properties: from what a user writes in spec.kafka.config to what each of the two Kafka clients
takes.
"""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import KafkaException, Producer

from streams_runtime.errors import InvalidApplicationException, Mistake
from streams_runtime.kafka.client.librdkafka_errors import QuietLog, error_of
from streams_runtime.kafka.client.security import Security, config_path, is_security, read_security

Value = str | int | float | bool

_BY_GROUP = "leave it out; the group is the applicationId, its members are the instances"
_BY_COMMIT = "leave it out; offsets are committed with each batch (spec.processing.commitInterval)"
_BY_GUARANTEE = "leave it out; spec.processing.guarantee decides how records are written"
_BY_FORMAT = "leave it out; spec.topology declares the format of each topic"
_BY_BROKER = "leave it out; with the consumer protocol the brokers decide (group.consumer.* in their settings)"
_NOT_TEXT = "leave it out; it takes a function or a library, which a file can't hold"
# What the runtime decides itself, and what a user does instead.
_DECIDED: Mapping[str, str] = {
    "bootstrap.servers": "use spec.kafka.bootstrapServers",
    "metadata.broker.list": "use spec.kafka.bootstrapServers",
    "client.id": "leave it out; instances are found by it",
    "group.id": _BY_GROUP,
    "group.instance.id": _BY_GROUP,
    "group.protocol": _BY_GROUP,
    "group.protocol.type": _BY_GROUP,
    "group.remote.assignor": _BY_GROUP,
    "partition.assignment.strategy": _BY_GROUP,
    "session.timeout.ms": _BY_BROKER,
    "heartbeat.interval.ms": _BY_BROKER,
    "enable.auto.commit": _BY_COMMIT,
    "auto.commit.enable": _BY_COMMIT,
    "auto.commit.interval.ms": _BY_COMMIT,
    "enable.auto.offset.store": _BY_COMMIT,
    "auto.offset.reset": "use spec.kafka.offsetReset, or offsetReset of a source",
    "enable.partition.eof": "leave it out; the application knows the ends by their offsets",
    "isolation.level": _BY_GUARANTEE,
    "allow.auto.create.topics": "leave it out; the application makes its internal topics, and no others",
    "acks": _BY_GUARANTEE,
    "request.required.acks": _BY_GUARANTEE,
    "enable.idempotence": _BY_GUARANTEE,
    "enable.gapless.guarantee": _BY_GUARANTEE,
    "transactional.id": _BY_GUARANTEE,
    "message.timeout.ms": _BY_GUARANTEE,
    "delivery.timeout.ms": _BY_GUARANTEE,
    "delivery.report.only.error": _BY_GUARANTEE,
    "partitioner": "leave it out; keys are placed as the Java client does",
    "partitioner.class": "leave it out; keys are placed as the Java client does",
    "key.serializer": _BY_FORMAT,
    "value.serializer": _BY_FORMAT,
    "key.deserializer": _BY_FORMAT,
    "value.deserializer": _BY_FORMAT,
    "plugin.library.paths": _NOT_TEXT,
    "opaque": _NOT_TEXT,
    "interceptors": _NOT_TEXT,
    "default_topic_conf": _NOT_TEXT,
    "default.topic.config": _NOT_TEXT,
    "on_delivery": _NOT_TEXT,
    "logger": _NOT_TEXT,
}
# Milliseconds. librdkafka's default of ten seconds would be added to every outage of the broker.
_DEFAULTS: Mapping[str, str] = {"reconnect.backoff.max.ms": "2000"}
# Under exactly once; otherwise each consumer says itself what it reads.
_COMMITTED: Mapping[str, str] = {"isolation.level": "read_committed"}
# Java's consumers ask for topics in a way that brokers may make them; librdkafka's do not.
_JAVA_DECIDED: Mapping[str, str] = {"allow.auto.create.topics": "false"}
# Properties that both clients have under one name and with one meaning.
_IN_BOTH = frozenset(
    {
        "check.crcs",
        "client.dns.lookup",
        "client.rack",
        "connections.max.idle.ms",
        "fetch.max.bytes",
        "fetch.min.bytes",
        "max.partition.fetch.bytes",
        "metadata.max.age.ms",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "retry.backoff.max.ms",
        "retry.backoff.ms",
        "socket.connection.setup.timeout.ms",
    }
)


def client_properties(
    bootstrap_servers: str, config: Mapping[str, Value], exactly_once: bool = False
) -> dict[str, str]:
    """What librdkafka is given: producers, consumers and `Admin` start from it.

    With `exactly_once` consumers read committed records only, of the application's sources, repartition topics and
    changelogs.

    `config` holds librdkafka's properties; for login and encryption Java's names will do as well. Raises
    InvalidApplicationException with every property that is unknown, has a value that can't be, or is
    decided by the runtime; each mistake names its field, `spec.kafka.config["<name>"]`.
    """
    plain, security = _checked(config)
    isolation = _COMMITTED if exactly_once else {}
    return {**_DEFAULTS, **plain, **security.for_librdkafka(), **isolation, "bootstrap.servers": bootstrap_servers}


def java_properties(bootstrap_servers: str, config: Mapping[str, Value], exactly_once: bool = False) -> dict[str, str]:
    """What Java's clients are given, under their own names (Spark wants each with `kafka.` before it).

    Login, encryption and the properties that both clients have; librdkafka's own are left out. Raises
    InvalidApplicationException as `client_properties` does, and ConfigException for a PEM file that can't
    be read.
    """
    plain, security = _checked(config)
    shared = {name: value for name, value in plain.items() if name in _IN_BOTH}
    isolation = _COMMITTED if exactly_once else {}
    return {**_JAVA_DECIDED, **shared, **security.for_java(), **isolation, "bootstrap.servers": bootstrap_servers}


def _checked(config: Mapping[str, Value]) -> tuple[dict[str, str], Security]:
    mistakes: list[Mistake] = []

    def report(name: str, found: str, remedy: str) -> None:
        mistakes.append(Mistake(config_path(name), found, remedy))

    texts = {name: _text(value) for name, value in config.items()}
    plain = {name: value for name, value in texts.items() if not is_security(name)}
    for name, value in plain.items():
        remedy = _NOT_TEXT if name.endswith("_cb") else _DECIDED.get(name)
        if remedy is not None:
            report(name, "is decided by the runtime", remedy)
        elif (reason := _refusal({name: value})) is not None:
            report(
                name,
                reason,
                "correct it, or leave it out; librdkafka's CONFIGURATION.md lists all properties",
            )
    security = read_security(texts, report)
    if not mistakes and (reason := _refusal({**plain, **security.for_librdkafka()})) is not None:
        mistakes.append(Mistake("spec.kafka.config", reason, "correct the properties that it names"))
    if mistakes:
        raise InvalidApplicationException(mistakes)
    return plain, security


def _refusal(properties: Mapping[str, str]) -> str | None:
    """Why librdkafka does not take the properties; it is asked by making a client, which does not connect."""
    try:
        Producer({**properties, "bootstrap.servers": "127.0.0.1:9"}, logger=QuietLog())
    except KafkaException as failure:
        error = error_of(failure)
        text = (error.str() if error else None) or str(failure)
        return f"is refused: {text.removeprefix('Failed to create producer: ').strip()}"
    return None


def _text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
