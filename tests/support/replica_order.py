"""Changes which replica of a partition leads it: a request that confluent_kafka does not have, and an election."""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence

from confluent_kafka import ElectionType, TopicPartition
from confluent_kafka.admin import AdminClient  # type: ignore[attr-defined]
from waiting import eventually

from streams_runtime.kafka.admin.connection import addresses
from streams_runtime.kafka.client.librdkafka_errors import QuietLog

_ALTER_PARTITION_REASSIGNMENTS = 45
_TIMEOUT = 30.0
_NO_TAGS = b"\0"


def put_first(bootstrap: str, topic: str, partition: int, replicas: Sequence[int]) -> None:
    """Put a partition's replicas into this order, and let the first one lead it; returns when it does."""
    _ask(bootstrap, _reassignment(topic, partition, replicas))
    admin = AdminClient({"bootstrap.servers": bootstrap}, logger=QuietLog())

    def leads() -> bool:
        found = admin.list_topics(topic, timeout=_TIMEOUT).topics[topic].partitions[partition]
        if found.replicas == list(replicas) and found.leader != replicas[0]:
            admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition(topic, partition)]).result(_TIMEOUT)
        return found.leader == replicas[0]

    eventually(leads, f"broker {replicas[0]} leads {topic}-{partition}", _TIMEOUT)


def _reassignment(topic: str, partition: int, replicas: Sequence[int]) -> bytes:
    """A request of version 0, in which lengths are one more than they are and one byte long."""
    name = topic.encode()
    assert len(name) < 127
    ids = bytes([len(replicas) + 1]) + b"".join(struct.pack(">i", each) for each in replicas)
    partitions = b"\x02" + struct.pack(">i", partition) + ids + _NO_TAGS
    topics = b"\x02" + bytes([len(name) + 1]) + name + partitions + _NO_TAGS
    return struct.pack(">i", int(_TIMEOUT * 1000)) + topics + _NO_TAGS


def _ask(bootstrap: str, body: bytes) -> None:
    header = struct.pack(">hhih", _ALTER_PARTITION_REASSIGNMENTS, 0, 1, -1) + _NO_TAGS
    with socket.create_connection(addresses(bootstrap)[0], _TIMEOUT) as connection:
        connection.sendall(struct.pack(">i", len(header + body)) + header + body)
        answer = connection.makefile("rb")
        (length,) = struct.unpack(">i", answer.read(4))
        # Behind the correlation id and its tags: the throttle time, and the error of all.
        found = answer.read(length)
    error = struct.unpack_from(">h", found, 9)[0]
    assert error == 0, f"the brokers refuse another order of replicas with error {error}: {found!r}"
