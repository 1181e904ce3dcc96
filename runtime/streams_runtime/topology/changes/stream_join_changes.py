"""A join of two streams under the same name in two topologies: what its stores hold, and would be read as."""

from __future__ import annotations

from collections.abc import Iterator

from streams_runtime.api.flow.known_columns import Columns, shown_type
from streams_runtime.api.reading.field_paths import under
from streams_runtime.topology.changes.change import Change
from streams_runtime.topology.column_types import columns_of
from streams_runtime.topology.nodes.stream_join_node import Side, StreamJoinNode
from streams_runtime.topology.plan import Topology
from streams_runtime.topology.store_origins import keys_of
from streams_runtime.topology.store_specs import StoreSpec

_RENAME = "give the step a new name, which makes its stores begin empty, or put back what it was"


def join_store_changes(
    old: Topology, was: StreamJoinNode, new: Topology, now: StreamJoinNode, store: StoreSpec
) -> Iterator[Change]:
    """What is other in a store that both joins have. Which records are joined now is no change of what is kept."""
    for side in Side:
        if store.name not in (now.alone_store, now.store_of(side)):
            continue
        before, after = ((node.input if side is Side.LEFT else node.other) for node in (was, now))
        field = under(now.path, "from") if side is Side.LEFT else under(now.path, "join", "stream")
        one, other = keys_of(old, before), keys_of(new, after)
        if one != other:
            yield _changed(
                field,
                f"the keys in the store {store.name} were {_words(one)} and are {_words(other)}",
                "records that are kept under the old keys meet none with the new ones",
            )
        yield from _columns(store, field, columns_of(old)[before], columns_of(new)[after])
    if store.name != now.alone_store and was.retention != now.retention:
        yield _changed(
            under(now.path, "join", "within"),
            f"the store {store.name} kept records for {was.retention} ms and keeps them for {now.retention} ms",
            "the changelog was made for the old time, and its stores lie in segments of the old length: they are"
            " restored anew, and a longer time is refused until the topic's retention.ms has grown",
            "keep the sum of before, after and grace, or raise the topic's retention.ms first",
        )


def _columns(store: StoreSpec, field: str, before: Columns | None, after: Columns | None) -> Iterator[Change]:
    for column in after or () if before is not None else ():
        was = before.get(column.name) if before is not None else None
        if was is None:
            yield _changed(
                field,
                f"the column {column.name} is new in the store {store.name}",
                "records that are kept have no such column, and are joined as if it were null",
            )
        elif was.type is not None and column.type is not None and shown_type(was.type) != shown_type(column.type):
            yield _changed(
                field,
                f"{column.name} was {shown_type(was.type)} and is {shown_type(column.type)}",
                f"what the store {store.name} has may not fit the new type, and would be joined as nulls",
            )


def _changed(where: str, what: str, consequence: str, remedy: str = _RENAME) -> Change:
    return Change("changed", where, what, consequence, remedy)


def _words(keys: frozenset[str]) -> str:
    return " and ".join(sorted(keys))
