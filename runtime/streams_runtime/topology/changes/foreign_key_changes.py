"""A join by a foreign key under the same names in two topologies: what its two stores hold, and would be read as."""

from __future__ import annotations

from collections.abc import Iterator

from streams_runtime.api.flow.known_columns import Column, Columns, Type, shown_type
from streams_runtime.api.reading.field_paths import under
from streams_runtime.api.sql.sql_tree import parse_expression
from streams_runtime.topology.changes.change import Change
from streams_runtime.topology.column_types import columns_of
from streams_runtime.topology.nodes.foreign_key_nodes import ForeignKeyJoinNode, ResponseNode
from streams_runtime.topology.plan import Topology
from streams_runtime.topology.store_origins import keys_of

_RENAME = "give the step a new name, which makes its subscriptions begin empty, or put back what it was"
_RENAME_STORE = "give the store a new name, which makes it begin empty, or put back what it was"
_OLD_ROWS = "rows that are there stay as the old join made them, each until one of its two rows changes"


def subscription_changes(old: Topology, was: ResponseNode, new: Topology, now: ResponseNode) -> Iterator[Change]:
    """What is other in the store of subscriptions: the foreign keys that they are found by, and who subscribes."""
    before, after = (_join_of(*each) for each in ((old, was), (new, now)))
    one, other = (parse_expression(join.on).sql(dialect="spark") for join in (before, after))
    if one != other:
        yield _changed(
            under(now.path, "join", "key"),
            f"the rows in the store {now.store} are found by {one}, and would be found by {other}",
            "a row that subscribed by its old key is answered for it ever after, and by the new one once it changes",
        )
    sides = (
        (under(now.path, "from"), before.input, after.input),
        (under(now.path, "join", "table"), was.input, now.input),
    )
    for field, mine, theirs in sides:
        keys, new_keys = (" and ".join(sorted(keys_of(*each))) for each in ((old, mine), (new, theirs)))
        if keys != new_keys:
            yield _changed(
                field,
                f"the keys of {theirs} were {keys} and are {new_keys}",
                f"subscriptions in the store {now.store} are of rows, or to rows, that nothing finds any more",
            )


def result_changes(old: Topology, was: ForeignKeyJoinNode, new: Topology, now: ForeignKeyJoinNode) -> Iterator[Change]:
    """What is other in the store of the result: which rows there are, and their columns."""
    if was.type != now.type:
        what = f"the join of the store {now.store} was {was.type} and is {now.type}"
        yield _changed(under(now.path, "join", "type"), what, _OLD_ROWS, _RENAME_STORE)
    before, after = (
        {column: parse_expression(text).sql(dialect="spark") for column, text in node.select} for node in (was, now)
    )
    for column in sorted(before.keys() | after.keys()):
        if before.get(column) != after.get(column):
            what = f"{column} was {before.get(column, 'not there')} and is {after.get(column, 'not there')}"
            yield _changed(under(now.path, "join", "select", column), what, _OLD_ROWS, _RENAME_STORE)
    selected = {name.lower() for name in before | after}
    yield from _columns(now, columns_of(old)[was.name], columns_of(new)[now.name], selected)


def _columns(
    now: ForeignKeyJoinNode, before: Columns | None, after: Columns | None, selected: set[str]
) -> Iterator[Change]:
    """Columns of the left table, which the result has too; of types that are not known nothing is told."""
    if before is None or after is None:
        return
    for name in dict.fromkeys(column.name for column in (*before, *after) if column.name.lower() not in selected):
        was, found = (each.get(name) for each in (before, after))
        if was is not None and found is not None and not _differ(was.type, found.type):
            continue
        what = f"{name} in the store {now.store} was {_shown(was)} and is {_shown(found)}"
        yield _changed(under(now.path, "from"), what, _OLD_ROWS, _RENAME_STORE)


def _differ(one: Type | None, other: Type | None) -> bool:
    return one is not None and other is not None and shown_type(one) != shown_type(other)


def _shown(column: Column | None) -> str:
    if column is None:
        return "not there"
    return "there" if column.type is None else shown_type(column.type)


def _join_of(topology: Topology, answer: ResponseNode) -> ForeignKeyJoinNode:
    joins = (node for node in topology.nodes if isinstance(node, ForeignKeyJoinNode))
    return next(join for join in joins if join.name == answer.join)


def _changed(where: str, what: str, consequence: str, remedy: str = _RENAME) -> Change:
    return Change("changed", where, what, consequence, remedy)
