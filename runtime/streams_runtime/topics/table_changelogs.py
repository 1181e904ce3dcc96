"""Changelogs of tables of topics, across a change of what becomes of records that can't be read.

Under `fail` such a table is restored from its topic; where records may be left out it has a changelog of its own, which
has nothing of what was processed before there was one.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping

from streams_runtime.api.reading.legal_names import changelog_topic
from streams_runtime.errors import ConfigException, TopologyException
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.topology.nodes.source_and_sink_nodes import TableSourceNode
from streams_runtime.topology.plan import Topology

_LOGGER = logging.getLogger("streams_runtime.topics")


def former_changelogs(admin: Admin, topology: Topology) -> Mapping[str, TableSourceNode]:
    """Changelogs that are on the brokers, of tables that have none of their own, with the table.

    They are of a time when records were left out, or Kafka Streams' own. A topic that this login may not see is none
    that the application has written.
    """
    former = {changelog_topic(topology.application_id, node.store): node for node in _tables(topology, own=False)}
    former = {name: node for name, node in former.items() if name not in topology.source_topics}
    try:
        found = admin.describe_topics(list(former), config=False) if former else {}
    except ConfigException:
        return {}
    return {name: node for name, node in former.items() if name in found}


def check_table_changelogs(
    admin: Admin, topology: Topology, missing: Collection[str], counts: Mapping[str, int]
) -> None:
    """Refuse to make a table's changelog that would lack rows. `missing` are internal topics, and `counts` the
    partitions of the users'.

    Raises:
        TopologyException: a changelog is to be made of a table whose topic was processed already. Put the setting
            back, or begin anew.
    """
    if late := _begun(admin, topology, missing, counts):
        raise TopologyException(
            f"{_listed(late)} would begin empty, but the table's topic was processed before: its rows would be lost. A"
            " table whose records may be left out (spec.processing) is restored from its own changelog, else from its"
            " topic. Put back the setting and the store's name, or begin anew: streamsapp reset, or spec.reset, reads"
            " the topics from their beginning"
        )


def warn_of_former_changelogs(admin: Admin, topology: Topology) -> None:
    """Say so where tables are restored from their topics, and changelogs of theirs are there that nobody writes."""
    if former := former_changelogs(admin, topology):
        _LOGGER.warning(
            "%s is there and is not used: the table is restored from its topic, which has also what was left out of"
            " the table before, and the changelog has nothing of what is processed from now on. Delete it, or reset"
            " the application, before records of the table may be left out again",
            _listed(former),
        )


def _tables(topology: Topology, own: bool) -> list[TableSourceNode]:
    nodes = [node for sub in topology.subtopologies for node in sub.nodes]
    return [node for node in nodes if isinstance(node, TableSourceNode) and node.own_changelog is own]


def _begun(
    admin: Admin, topology: Topology, missing: Collection[str], counts: Mapping[str, int]
) -> Mapping[str, TableSourceNode]:
    named = {changelog_topic(topology.application_id, node.store): node for node in _tables(topology, own=True)}
    absent = {name: node for name, node in named.items() if name in missing}
    partitions = [TopicPartition(node.topic, i) for node in absent.values() for i in range(counts[node.topic])]
    if not partitions:
        return {}
    committed = admin.committed_offsets(topology.application_id, partitions)
    starts = admin.start_offsets(list(committed)) if committed else {}
    begun = {each.topic for each, offset in committed.items() if offset > starts.get(each, 0)}
    late = {name: node for name, node in absent.items() if node.topic in begun}
    # Another instance may have made it since it was looked for, and processed records.
    made = admin.describe_topics(list(late), config=False) if late else {}
    return {name: node for name, node in late.items() if name not in made}


def _listed(changelogs: Mapping[str, TableSourceNode]) -> str:
    each = (f"{name} of the table {node.name} ({node.path}.table.store)" for name, node in changelogs.items())
    return f"the changelog {', '.join(each)}"
