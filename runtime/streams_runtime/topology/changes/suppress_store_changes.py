"""A toStream with suppress under the same name in two topologies: what its store holds, and would be read as."""

from __future__ import annotations

from collections.abc import Iterator

from streams_runtime.api.reading.field_paths import under
from streams_runtime.topology.changes.change import Change
from streams_runtime.topology.changes.to_table_changes import other_columns
from streams_runtime.topology.column_types import columns_of
from streams_runtime.topology.nodes.suppress_node import SuppressNode
from streams_runtime.topology.nodes.window_kinds import SessionWindows, TimeWindows
from streams_runtime.topology.plan import Topology
from streams_runtime.topology.store_origins import keys_of
from streams_runtime.topology.table_parts import windows_of

_RENAME = (
    "give the step a new name, which makes its store begin empty and loses the changes that wait, or put back what it"
    " was"
)


def suppress_store_changes(old: Topology, was: SuppressNode, new: Topology, now: SuppressNode) -> Iterator[Change]:
    """What is other in the store that both have: its keys, and the columns of the changes that wait.

    How long changes wait, and how many, is no part of what is kept.
    """
    before, after = _keys(old, was), _keys(new, now)
    if before != after:
        yield Change(
            "changed",
            under(now.path, "from"),
            f"the keys of the changes in the store {now.store} were {before} and are {after}",
            "changes that wait are passed on under keys that nobody has any more, and nothing replaces them",
            _RENAME,
        )
    for column in other_columns(columns_of(old)[was.name], columns_of(new)[now.name]):
        yield Change(
            "changed",
            now.path,
            f"the column {column.name} of the changes in the store {now.store} is another one than before",
            "changes that wait are passed on with null where they have no such value; a value of a type that does not"
            " fit makes all columns of its change null",
            _RENAME,
        )


def _keys(topology: Topology, node: SuppressNode) -> str:
    words = " and ".join(sorted(keys_of(topology, node.input)))
    sub, _ = topology.store(node.store)
    windows = windows_of(sub, node.input)
    if windows is None:
        return words
    if isinstance(windows, SessionWindows):
        return f"{words} in sessions"
    zone = windows.timezone if isinstance(windows, TimeWindows) else None
    return f"{words} in windows of {windows.size} ms" + (f" by the clock of {zone}" if zone else "")
