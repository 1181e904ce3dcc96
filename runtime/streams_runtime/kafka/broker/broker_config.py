"""What the embedded broker is told: its server.properties and its logging, as text made from values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

HOST = "127.0.0.1"
"""The embedded broker listens on this machine's loopback address only: it asks nobody for a password."""

NODE_ID = 1

_DEFAULTS = {
    # One node: it is its own controller, and there is nobody to replicate to.
    "process.roles": "broker,controller",
    "node.id": str(NODE_ID),
    "controller.listener.names": "CONTROLLER",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    # The usual 50 partitions of each internal topic cost seconds at the start and files afterwards.
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "4",
    # A topic that nobody made is a mistake to be seen.
    "auto.create.topics.enable": "false",
    # Data sets have record times of years ago, which the usual 7 days would delete at once.
    "log.retention.ms": "-1",
    # Milliseconds. Rebalances in under a second, and a killed member is missed after six, not after 45. The
    # lower limits have to come down with the values.
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.session.timeout.ms": "2000",
    "group.consumer.session.timeout.ms": "6000",
    "group.min.session.timeout.ms": "2000",
    # A broker that was killed may come back once its earlier self is missed: after four seconds, not nine.
    "broker.session.timeout.ms": "4000",
    "broker.heartbeat.interval.ms": "500",
    # Each of these threads, and as many of the controller, wakes up three times a second to see that there is nothing
    # to do. The usual eight are for a machine of the broker's own.
    "num.io.threads": "4",
    # No record that says nothing, which the controller writes twice a second for measurements of its lag: a third of
    # what a broker without clients takes of a processor.
    "metadata.max.idle.interval.ms": "0",
    # Bytes that each index file of a log is made with. Where the disk has ext4 and the kernel large folios, the first
    # entry of an index takes memory for all of it: of the usual 10 MiB in 2 to 20 ms, for 800 logs half a minute. An
    # index of this size is full behind some 85 MiB, and another segment begins.
    "log.index.size.max.bytes": str(256 * 1024),
    # Bytes of heap for compaction; the usual 128 MiB are a quarter of this broker's heap.
    "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
}

# Of three or more brokers one may be missing: two have each record that was acknowledged.
_REPLICATED = {
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
}

_LOGGING = """\
status = error
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {folder}/server.log
appender.file.filePattern = {folder}/server.log.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = [%d] %p %m (%c{{1}})%n
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 10MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 3
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
"""


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports of one node of a cluster: of its clients, of the other brokers, and of the controllers."""

    clients: int
    brokers: int
    controllers: int


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """One node of a cluster; each is a broker and one of the controllers.

    It listens at `ports`. All nodes and clients find each node at its ports in `advertised`, by the node's id; these
    may belong to something that stands between, such as a relay.
    """

    id: int
    cluster_id: str
    ports: Ports
    advertised: Mapping[int, Ports]


def cluster_properties(data: Path, node: ClusterNode, config: Mapping[str, str] | None = None) -> dict[str, str]:
    """The properties of one of several brokers: each topic lies on three of them, of which two have to have a record.

    As with `server_properties`, `config` can't contradict where the node listens, writes, and finds the others.
    """
    found = node.advertised[node.id]
    return {
        **_DEFAULTS,
        **_REPLICATED,
        **(config or {}),
        "node.id": str(node.id),
        "inter.broker.listener.name": "BROKERS",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BROKERS:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "listeners": _listeners(node.ports),
        "advertised.listeners": _listeners(found),
        "controller.quorum.voters": ",".join(
            f"{number}@{HOST}:{ports.controllers}" for number, ports in sorted(node.advertised.items())
        ),
        "log.dirs": str(data),
    }


def _listeners(ports: Ports) -> str:
    return (
        f"PLAINTEXT://{HOST}:{ports.clients},BROKERS://{HOST}:{ports.brokers},CONTROLLER://{HOST}:{ports.controllers}"
    )


def server_properties(
    data: Path,
    port: int,
    controller_port: int,
    config: Mapping[str, str] | None = None,
    advertised_port: int | None = None,
) -> dict[str, str]:
    """The broker's properties: the project's own, then `config`, then where it listens and where it writes.

    Clients are told `advertised_port` (None: `port`). Those last ones follow from the other arguments, so `config`
    can't contradict them.
    """
    return {
        **_DEFAULTS,
        **(config or {}),
        "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{advertised_port or port}",
        "controller.quorum.voters": f"{NODE_ID}@{HOST}:{controller_port}",
        "log.dirs": str(data),
    }


def as_properties_file(properties: Mapping[str, str]) -> str:
    """Text of a Java properties file."""
    return "".join(f"{_escaped(key)}={_escaped(value)}\n" for key, value in sorted(properties.items()))


def logging_properties(folder: Path) -> str:
    """Log4j's configuration: one file in `folder`, at most four of 10 MB, nothing on the console."""
    return _LOGGING.format(folder=_escaped(str(folder)))


def _escaped(text: str) -> str:
    backslashed = "".join("\\" + each if each in "\\:=#! " else each for each in text)
    return "".join(each if each.isascii() else _unicode_escapes(each) for each in backslashed)


def _unicode_escapes(character: str) -> str:
    units = character.encode("utf-16-be")
    return "".join(f"\\u{int.from_bytes(units[at : at + 2]):04x}" for at in range(0, len(units), 2))
