"""Taking a static member out of its group, by Kafka's Java client in Spark's JVM: librdkafka has no such call.

A static member that leaves keeps its partitions until its session ends, since it may come back under its name; one that
will not come back is to be taken out, as Kafka Streams does when it removes a thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JError

from streams_runtime.errors import StreamsException
from streams_runtime.pipeline.spark.spark_session import SparkSession

_SECONDS = 15  # for the group's coordinator to answer


def remove_member(session: SparkSession, java_properties: Mapping[str, str], group: str, instance_id: str) -> None:
    """Take `instance_id` out of `group`; its partitions go to others at the next rebalance, which this begins.

    Raises:
        StreamsException: it was not taken out; the group does so by itself when the member's session ends.
    """
    jvm: Any = session._jvm
    clients = jvm.org.apache.kafka.clients.admin
    try:
        properties = jvm.java.util.HashMap()
        for name, value in java_properties.items():
            properties.put(name, value)
        admin = clients.Admin.create(properties)
        try:
            member = jvm.java.util.Collections.singleton(clients.MemberToRemove(instance_id))
            options = clients.RemoveMembersFromConsumerGroupOptions(member)
            answer = admin.removeMembersFromConsumerGroup(group, options).all()
            answer.get(_SECONDS, jvm.java.util.concurrent.TimeUnit.SECONDS)
        finally:
            admin.close()
    except (Py4JError, OSError) as error:
        reason = str(error).strip().splitlines()[0]
        raise StreamsException(
            f"{instance_id} was not taken out of the group {group}: {reason}. Its partitions go to others when its"
            " session ends"
        ) from error
