"""Taking static members out of their group, by Kafka's Java client in Spark's JVM: librdkafka has no such call.

A static member that leaves keeps its partitions until its session ends, since it may come back under its name; one that
will not come back is to be taken out, as Kafka Streams does when it removes a thread.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from py4j.protocol import Py4JError

from streams_runtime.errors import StreamsException
from streams_runtime.pipeline.spark.spark_session import SparkSession

_SECONDS = 15  # for the group's coordinator to answer


def remove_members(
    session: SparkSession, java_properties: Mapping[str, str], group: str, instance_ids: Collection[str]
) -> None:
    """Take `instance_ids` out of `group`; their partitions go to others at the next rebalance, which this begins.

    Raises:
        StreamsException: some were not taken out; the group does so by itself when a member's session ends.
    """
    jvm: Any = session._jvm
    clients = jvm.org.apache.kafka.clients.admin
    try:
        properties = jvm.java.util.HashMap()
        for name, value in java_properties.items():
            properties.put(name, value)
        admin = clients.Admin.create(properties)
        try:
            members = jvm.java.util.ArrayList()
            for instance_id in instance_ids:
                members.add(clients.MemberToRemove(instance_id))
            options = clients.RemoveMembersFromConsumerGroupOptions(members)
            answer = admin.removeMembersFromConsumerGroup(group, options).all()
            answer.get(_SECONDS, jvm.java.util.concurrent.TimeUnit.SECONDS)
        finally:
            admin.close()
    except (Py4JError, OSError) as error:
        reason = str(error).strip().splitlines()[0]
        raise StreamsException(
            f"{', '.join(instance_ids)}: not taken out of the group {group}: {reason}. Partitions go to others when the"
            " member's session ends"
        ) from error
