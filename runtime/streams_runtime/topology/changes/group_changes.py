"""An aggregate of a table by groups in two topologies: rows are taken out by the rule by which they came in."""

from __future__ import annotations

from collections.abc import Iterator

from streams_runtime.api.reading.field_paths import under
from streams_runtime.api.sql.sql_tree import parse_expression
from streams_runtime.topology.changes.change import Change
from streams_runtime.topology.nodes.aggregate_node import AggregateNode
from streams_runtime.topology.nodes.all_nodes import Node
from streams_runtime.topology.nodes.regroup_node import RegroupNode
from streams_runtime.topology.nodes.source_and_sink_nodes import RepartitionSourceNode
from streams_runtime.topology.nodes.step_nodes import TransformNode
from streams_runtime.topology.nodes.table_nodes import TableJoinNode
from streams_runtime.topology.plan import Topology
from streams_runtime.topology.store_specs import StoreSpec

_RENAME = "give the application another applicationId, which counts all rows anew, or put back what it was"
Words = tuple[object, ...]


def group_changes(old: Topology, was: AggregateNode, new: Topology, now: AggregateNode) -> Iterator[Change]:
    """What is other in the rows that are counted: the steps that they come by. Groups are told as keys are."""
    before, after = _regrouping(old, was), _regrouping(new, now)
    if before is None or after is None:
        if before is not after:
            kinds = ["records of a stream" if each is None else "rows of a table" for each in (before, after)]
            yield _changed(
                under(now.path, "groupBy"),
                f"the store {now.store} had an aggregate of {kinds[0]} and has one of {kinds[1]}",
                "what it holds of sums and averages is of the other kind and can't be read as this",
            )
    elif _way(old, before.input) != _way(new, after.input):
        yield _changed(
            under(now.path, "from"),
            f"the rows that the store {now.store} counts come by other steps than before",
            "a row that came in by the old steps is taken out as the new ones give it, and one that they left out is"
            " taken out without having come in: groups that are there are wrong from then on",
        )


def uncounted_rows(old: Topology, new: Topology, store: StoreSpec) -> Change | None:
    """What a new aggregate does not know of the rows that its table has already; None where it has none."""
    node = new.node(store.node)
    regrouping = _regrouping(new, node) if isinstance(node, AggregateNode) else None
    known = {each.name for each in old.stores}
    if regrouping is None or known.isdisjoint(_roots(new, regrouping.input)):
        return None
    assert isinstance(node, AggregateNode)
    return _changed(
        under(node.path, "store"),
        f"the store {store.name} is new, and the table {regrouping.input} has rows already",
        "they are not counted, and are taken out of their groups all the same once they change: counts fall below 0",
        "give the application another applicationId, which counts all rows anew",
    )


def _regrouping(topology: Topology, node: AggregateNode) -> RegroupNode | None:
    source = topology.node(node.input)
    origin = topology.node(source.origin) if isinstance(source, RepartitionSourceNode) else None
    return origin if isinstance(origin, RegroupNode) else None


def _way(topology: Topology, name: str) -> Words:
    """The steps that a table's rows come by, from what stores keep, in words that do not depend on blanks."""
    node = topology.node(name)
    match node:
        case TransformNode():
            select = None if node.select is None else sorted((column, _text(text)) for column, text in node.select)
            where = None if node.where is None else _text(node.where)
            return (_way(topology, node.input), where, select, node.keeps_columns)
        case TableJoinNode():
            select = sorted((column, _text(text)) for column, text in node.select)
            return (_way(topology, node.input), _way(topology, node.table), node.type, select)
        case _:
            return _kept_in(node, topology)


def _roots(topology: Topology, name: str) -> frozenset[str]:
    """The stores that a table's rows come from."""
    node = topology.node(name)
    if isinstance(node, TransformNode | TableJoinNode):
        return frozenset[str]().union(*(_roots(topology, each) for each in node.inputs))
    return frozenset(map(str, _kept_in(node, topology)))


def _kept_in(node: Node, topology: Topology) -> Words:
    return tuple(sorted(store.name for store in node.store_specs(topology.application_id)))


def _text(expression: str) -> str:
    return parse_expression(expression).sql(dialect="spark")


def _changed(where: str, what: str, consequence: str, remedy: str = _RENAME) -> Change:
    return Change("changed", where, what, consequence, remedy)
