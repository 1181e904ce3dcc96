"""From a step that joins two tables by a foreign key to its nodes, and back to the tables that it joins."""

from __future__ import annotations

from dataclasses import dataclass

from streams_runtime.api.reading.legal_names import (
    foreign_key_parts,
    registration_topic,
    response_topic,
    subscription_store,
)
from streams_runtime.api.steps.topology_spec import JoinSpec, StepSpec
from streams_runtime.errors import TopologyException
from streams_runtime.topology.nodes.all_nodes import Node
from streams_runtime.topology.nodes.foreign_key_nodes import ForeignKeyJoinNode, ResponseNode, SubscribeNode
from streams_runtime.topology.nodes.source_and_sink_nodes import RepartitionSourceNode
from streams_runtime.topology.plan import SubTopology
from streams_runtime.topology.table_parts import TablePart, part_of


def foreign_key_nodes(step: StepSpec, join: JoinSpec, application_id: str, path: str) -> list[Node]:
    """The nodes of the step, which is one of `api.flow.step_graph.foreign_key_joins`; first those that come before it.

    Raises TopologyException where it has no store.
    """
    if step.store is None:
        raise TopologyException(f"{path}.store: is missing; a join by a foreign key keeps its result")
    left, right = step.from_ or "", join.other
    subscribe, subscriptions, answer, answers = foreign_key_parts(step.name)
    registration, response = registration_topic(application_id, step.name), response_topic(application_id, step.name)
    select = tuple(join.select.items())
    kept = (step.store, registration)
    return [
        SubscribeNode(subscribe, left, registration),
        RepartitionSourceNode(subscriptions, registration, subscribe, raw=True),
        ResponseNode(answer, right, subscriptions, response, subscription_store(step.name), step.name, path),
        RepartitionSourceNode(answers, response, answer, raw=True),
        ForeignKeyJoinNode(step.name, left, right, answers, join.type, join.key or "", select, *kept, path),
    ]


@dataclass(frozen=True, slots=True)
class ForeignKeySide:
    """One side of a join by a foreign key, and its own table, which is the last one of the part."""

    node: ResponseNode | ForeignKeyJoinNode
    table: TablePart

    @property
    def name(self) -> str:
        """The name of its node."""
        return self.node.name


def foreign_key_sides(sub: SubTopology) -> tuple[ForeignKeySide, ...]:
    """All of a sub-topology, which may have both sides of one join.

    Raises TopologyException for a join by a foreign key of a table that no store keeps by key.
    """
    return tuple(
        ForeignKeySide(node, part_of(sub, node.input, node.path))
        for node in sub.nodes
        if isinstance(node, ResponseNode | ForeignKeyJoinNode)
    )
