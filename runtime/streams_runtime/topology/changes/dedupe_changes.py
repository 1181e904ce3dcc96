"""A dedupe under the same name in two topologies: what its store holds, and would be read as."""

from __future__ import annotations

from collections.abc import Iterator

from streams_runtime.api.flow.known_columns import Type, shown_type
from streams_runtime.api.reading.field_paths import under
from streams_runtime.api.sql.sql_tree import parse_expression
from streams_runtime.topology.changes.change import Change
from streams_runtime.topology.column_types import columns_of
from streams_runtime.topology.nodes.dedupe_node import DedupeNode
from streams_runtime.topology.plan import Topology
from streams_runtime.topology.store_origins import keys_of

_RENAME = "give the step a new name, which makes its store begin empty, or put back what it was"


def dedupe_store_changes(old: Topology, was: DedupeNode, new: Topology, now: DedupeNode) -> Iterator[Change]:
    """What is other in the store that both have: what its ids are, and how long it remembers them."""
    before, after = _ids(old, was), _ids(new, now)
    if before == after:
        one, other = _type(old, was), _type(new, now)
        if one is not None and other is not None and shown_type(one) != shown_type(other):
            before, after = f"{before}: {shown_type(one)}", f"{after}: {shown_type(other)}"
    if before != after:
        yield Change(
            "changed",
            under(now.path, "dedupe", "by") if _keys(old, was) == _keys(new, now) else under(now.path, "from"),
            f"the ids in the store {now.store} were {before} and are {after}",
            "records that are remembered by their old ids have no duplicates among the new ones, which are passed on",
            _RENAME,
        )
    if was.within != now.within:
        yield Change(
            "changed",
            under(now.path, "dedupe", "within"),
            f"the store {now.store} kept ids for {was.retention} ms and keeps them for {now.retention} ms",
            "the changelog was made for the old time, and its stores lie in segments of the old length: they are"
            " restored anew, and a longer time is refused until the topic's retention.ms has grown",
            "keep the time, or raise the topic's retention.ms first",
        )


def _ids(topology: Topology, node: DedupeNode) -> str:
    keys = _keys(topology, node)
    if node.by is None:
        return keys
    # The keys decide in which partition an id is remembered.
    return f"by {parse_expression(node.by).sql(dialect='spark')}, with the keys {keys}"


def _keys(topology: Topology, node: DedupeNode) -> str:
    return " and ".join(sorted(keys_of(topology, node.input)))


def _type(topology: Topology, node: DedupeNode) -> Type | None:
    columns = columns_of(topology)[node.input]
    return None if node.by is None or columns is None else columns.type_of(node.by)
