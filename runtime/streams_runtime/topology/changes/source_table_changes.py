"""What becomes of a table of a topic when its store gets a changelog of its own, or is named otherwise with one."""

from __future__ import annotations

from collections.abc import Iterator

from streams_runtime.api.reading.field_paths import under
from streams_runtime.topology.changes.change import Change
from streams_runtime.topology.nodes.source_and_sink_nodes import TableSourceNode
from streams_runtime.topology.plan import Topology
from streams_runtime.topology.store_specs import StoreSpec

_ANEW = "reset the application when it is changed (streamsapp reset, spec.reset)"


def source_table_changes(was: TableSourceNode, now: TableSourceNode, store: StoreSpec) -> Iterator[Change]:
    """What is other in the store of a table whose topic is the same, or that has its own changelog in both topologies;
    `store` is the new one.
    """
    if was.own_changelog != now.own_changelog:
        yield _changelog_change(now, store)
    elif was.topic != now.topic:
        yield Change(
            "changed",
            under(now.path, "topic"),
            f"the table {now.name} was of {was.topic} and is of {now.topic}",
            f"the rows of {was.topic} stay in the store {store.name} until their keys come again",
            "give the store a new name, which makes it begin empty, or put back what it was",
        )


def _changelog_change(node: TableSourceNode, store: StoreSpec) -> Change:
    where = under(node.path, "table")
    if node.own_changelog:
        return Change(
            "changed",
            where,
            f"records may be left out of the table {node.name}, and its store gets a changelog of its own",
            f"{store.changelog_topic} would begin empty, without the rows that are there, so that the application does"
            " not start",
            f"put spec.processing back, or {_ANEW}",
        )
    return Change(
        "changed",
        where,
        f"no records may be left out of the table {node.name}, and its store is restored from {node.topic}",
        "records that were left out come back with it, and the changelog that it had stays behind, which lacks what"
        " comes from now on",
        f"put spec.processing back, or {_ANEW}",
    )


def renamed_store(old: Topology, new: Topology, store: StoreSpec) -> Change | None:
    """The change of a new store of a table that the old topology kept in another one; None: it is not of that kind."""
    node = new.node(store.node)
    if not isinstance(node, TableSourceNode) or not node.own_changelog:
        return None
    if all(not isinstance(was, TableSourceNode) or was.topic != node.topic for was in old.nodes):
        return None
    return Change(
        "changed",
        under(node.path, "table", "store"),
        f"the store of the table of {node.topic} is called {store.name}, which is new",
        f"its changelog {store.changelog_topic} would begin empty, without the rows that are there, so that the"
        " application does not start",
        f"keep the store's name, or {_ANEW}",
    )
