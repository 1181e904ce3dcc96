"""A toTable under the same name in two topologies: what its store holds, and would be read as."""

from __future__ import annotations

from collections.abc import Iterator

from streams_runtime.api.flow.known_columns import Column, Columns, shown_type
from streams_runtime.api.reading.field_paths import under
from streams_runtime.topology.changes.change import Change
from streams_runtime.topology.column_types import columns_of
from streams_runtime.topology.nodes.table_nodes import ToTableNode
from streams_runtime.topology.plan import Topology
from streams_runtime.topology.store_origins import keys_of

_RENAME = "give the store a new name, which makes it begin empty, or put back what it was"


def to_table_changes(old: Topology, was: ToTableNode, new: Topology, now: ToTableNode) -> Iterator[Change]:
    """What is other in the store that both have: its keys, and the columns of its rows."""
    before, after = (" and ".join(sorted(keys_of(*each))) for each in ((old, was.input), (new, now.input)))
    if before != after:
        yield Change(
            "changed",
            under(now.path, "from"),
            f"the keys of the store {now.store} were {before} and are {after}",
            "rows under the old keys stay beside the new ones, and nothing replaces or deletes them",
            _RENAME,
        )
    for column in other_columns(columns_of(old)[was.name], columns_of(new)[now.name]):
        yield Change(
            "changed",
            now.path,
            f"the column {column.name} of the store {now.store} is another one than before",
            "rows that are there are read by the new columns: null where they have no such value, until their key comes"
            " again; a value of a type that does not fit makes its whole row null",
            _RENAME,
        )


def other_columns(had: Columns | None, has: Columns | None) -> Iterator[Column]:
    """The columns that are new, or of another type, where both are known. One that is gone is not asked for."""
    if had is None or has is None:
        return
    for column in has:
        before = had.get(column.name)
        if before is None or (before.type and column.type and shown_type(before.type) != shown_type(column.type)):
            yield column
