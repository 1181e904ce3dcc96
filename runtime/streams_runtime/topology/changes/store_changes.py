"""One store under the same name in two topologies: what of it is other, and what that does to its contents."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from sqlglot import exp

from streams_runtime.api.flow.known_columns import Type, shown_type
from streams_runtime.api.reading.field_paths import under
from streams_runtime.api.sql.aggregate_calls import COUNT_DISTINCT, OF_SEVERAL, second_of
from streams_runtime.api.sql.aggregate_parameters import TOP, how_many
from streams_runtime.api.sql.python_aggregates import PYTHON
from streams_runtime.api.sql.reduce_aggregates import REDUCE, reduction_of
from streams_runtime.api.sql.sql_tree import parse_expression
from streams_runtime.topology.changes.change import Change
from streams_runtime.topology.changes.dedupe_changes import dedupe_store_changes
from streams_runtime.topology.changes.foreign_key_changes import result_changes, subscription_changes
from streams_runtime.topology.changes.global_changes import global_change
from streams_runtime.topology.changes.group_changes import group_changes
from streams_runtime.topology.changes.history_changes import history_change
from streams_runtime.topology.changes.process_changes import process_store_changes
from streams_runtime.topology.changes.source_table_changes import source_table_changes
from streams_runtime.topology.changes.stream_join_changes import join_store_changes
from streams_runtime.topology.changes.suppress_store_changes import suppress_store_changes
from streams_runtime.topology.changes.to_table_changes import to_table_changes
from streams_runtime.topology.column_types import columns_of, state_type
from streams_runtime.topology.nodes.aggregate_node import Aggregate, AggregateNode
from streams_runtime.topology.nodes.dedupe_node import DedupeNode
from streams_runtime.topology.nodes.foreign_key_nodes import ForeignKeyJoinNode, ResponseNode
from streams_runtime.topology.nodes.process_node import ProcessNode
from streams_runtime.topology.nodes.source_and_sink_nodes import TableSourceNode
from streams_runtime.topology.nodes.stream_join_node import StreamJoinNode
from streams_runtime.topology.nodes.suppress_node import SuppressNode
from streams_runtime.topology.nodes.table_nodes import ToTableNode
from streams_runtime.topology.nodes.window_kinds import SessionWindows, SlidingWindows, TimeWindows, Windows
from streams_runtime.topology.plan import SubTopology, Topology
from streams_runtime.topology.store_origins import keys_of
from streams_runtime.topology.store_specs import StoreSpec

_RENAME = "give the store a new name, which makes it begin empty, or put back what it was"
_WIDER = (exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT)


_OWNERS = (
    AggregateNode
    | TableSourceNode
    | ToTableNode
    | StreamJoinNode
    | DedupeNode
    | SuppressNode
    | ResponseNode
    | ForeignKeyJoinNode
    | ProcessNode
)
_OF_ROWS = ToTableNode | AggregateNode | TableSourceNode


def store_changes(old: Topology, new: Topology, name: str) -> Iterator[Change]:
    """What is other in the store `name`, which both topologies have. Raises UnknownStateStoreException: one has not."""
    (old_sub, before), (new_sub, after) = old.store(name), new.store(name)
    was, now = old.node(before.node), new.node(after.node)
    path = now.path if isinstance(now, _OWNERS) else name
    if before.kind != after.kind:
        yield _changed(
            under(path, "process", "stores", name) if isinstance(now, ProcessNode) else under(path, "store"),
            f"the store {name} was a {before.kind} store and is a {after.kind} store",
            f"what is in {before.changelog_topic} is of the other kind and can't be read",
        )
    elif before.global_ != after.global_:
        yield global_change(under(path, "table", "global"), after)
        return
    elif (
        isinstance(was, TableSourceNode)
        and isinstance(now, TableSourceNode)
        and (was.topic == now.topic or (was.own_changelog and now.own_changelog))
    ):
        yield from source_table_changes(was, now, after)
    elif before.changelog_topic != after.changelog_topic:
        yield _changed(
            under(path, "store"),
            f"the changelog of the store {name} was {before.changelog_topic} and is {after.changelog_topic}",
            "the store is restored from another topic, and what is in the old one stays behind",
        )
    elif type(was) is type(now) and type(now) in _CONTENTS:
        yield from _CONTENTS[type(now)](old, was, new, now)
    elif isinstance(was, StreamJoinNode) and isinstance(now, StreamJoinNode):
        yield from join_store_changes(old, was, new, now, after)
    elif isinstance(was, ProcessNode) or isinstance(now, ProcessNode):
        yield from process_store_changes(was, now, name, path)
    elif type(was) is not type(now) and isinstance(now, ForeignKeyJoinNode):
        yield _changed(
            under(path, "store"),
            f"the store {name} was that of {was.name} and is that of a join",
            "what is in it has other columns",
        )
    elif isinstance(was, _OF_ROWS) and isinstance(now, _OF_ROWS):
        yield _changed(
            path,
            f"the store {name} was that of {_kind(was)} and is that of {_kind(now)}",
            "what it holds is of the other kind, and can't be read as this",
        )
    if before.history != after.history and isinstance(now, TableSourceNode | ToTableNode):
        yield history_change(now, before, after)
    if not after.global_:
        yield from _moved(old_sub, new_sub, after, path)


def _kind(node: AggregateNode | ToTableNode | TableSourceNode) -> str:
    if isinstance(node, TableSourceNode):
        return f"the table of {node.topic}"
    return "an aggregate" if isinstance(node, AggregateNode) else "a toTable"


def _contents(old: Topology, was: AggregateNode, new: Topology, now: AggregateNode) -> Iterator[Change]:
    before, after = keys_of(old, was.input), keys_of(new, now.input)
    if before != after:
        yield _changed(
            under(now.path, "from"),
            f"the keys of the store {now.store} were {_words(before)} and are {_words(after)}",
            "old and new keys would stand beside each other, and what is under the old ones is never added to again",
        )
    yield from group_changes(old, was, new, now)
    yield from _windows(was.windows, now)
    yield from _columns(old, was, new, now)


def _windows(was: Windows | None, now: AggregateNode) -> Iterator[Change]:
    field, windows = under(now.path, "window"), now.windows
    if was is None or windows is None:
        return
    if isinstance(was, SessionWindows) and isinstance(windows, SessionWindows) and was.gap != windows.gap:
        yield _changed(
            field,
            f"the gap of the sessions in the store {now.store} was {was.gap} ms and is {windows.gap} ms",
            "sessions that are there were divided by the old gap, and stay so",
        )
    if not isinstance(was, SessionWindows) and not isinstance(windows, SessionWindows):
        before, after = _time(was), _time(windows)
        if before != after:
            yield _changed(
                field,
                f"the windows of the store {now.store} were {before} and are {after}",
                "windows that are there would be read with the new size, and be added to by half",
            )
    if was.retention != windows.retention:
        yield _changed(
            field,
            f"the retention of the store {now.store} was {was.retention} ms and is {windows.retention} ms",
            "the changelog was made for the old one, and its stores lie in segments of the old length:"
            " they are restored anew, and a longer retention is refused until the topic's retention.ms has grown",
            "keep it by giving window.retention, or raise the topic's retention.ms first",
        )


def _columns(old: Topology, was: AggregateNode, new: Topology, now: AggregateNode) -> Iterator[Change]:
    before, after = _by_name(was), _by_name(now)
    read, reads = columns_of(old)[was.input], columns_of(new)[now.input]
    for name in sorted(before.keys() - after.keys()):
        yield _changed(
            under(now.path, "aggregate"),
            f"the store {now.store} had the column {name}",
            "its values are dropped, each with the next record of its key",
        )
    for name, aggregate in after.items():
        field = under(now.path, "aggregate", name)
        if name not in before:
            yield _changed(
                field,
                f"the column {name} is new in the store {now.store}",
                "values that are there have no such column, and the first one that is read ends the application",
            )
        elif not _same(before[name], aggregate):
            yield _changed(
                field,
                f"{name} was {before[name].call} and is {aggregate.call}",
                f"new records would be added to what the store {now.store} has by the old rule",
            )
        elif _keeps_fewer(before[name], aggregate):
            yield _changed(
                field,
                f"{name} was {before[name].call} and is {aggregate.call}",
                "the values that are too many are dropped, those of each key with its next record",
            )
        elif _lacks_some(before[name], aggregate):
            yield _changed(
                field,
                f"{name} was {before[name].call} and is {aggregate.call}",
                f"of the records before, the store {now.store} has no more than the old number",
            )
        else:
            one, other = state_type(before[name], read), state_type(aggregate, reads)
            counts = aggregate.function in ("approx_count_distinct", COUNT_DISTINCT)
            readable = _same_type if counts else _readable
            if one is not None and other is not None and not readable(one, other):
                yield _changed(
                    field,
                    f"{name} was {shown_type(one)} and is {shown_type(other)}",
                    f"what the store {now.store} has may not fit the new type, which ends the application",
                )


def _moved(old: SubTopology, new: SubTopology, store: StoreSpec, path: str) -> Iterator[Change]:
    if old.id != new.id:
        restored = "its topic" if store.source_changelog else "its changelog"
        yield _changed(
            path,
            f"the store {store.name} was in sub-topology {old.id} and is in sub-topology {new.id}",
            f"its tasks are called {new.id}_N instead of {old.id}_N: folders and standbys of the old tasks are not"
            f" used any more, and the whole store is restored from {restored}",
            "put new sources and keyBy steps behind those that were there, or allow for the restoration",
        )


def _changed(where: str, what: str, consequence: str, remedy: str = _RENAME) -> Change:
    return Change("changed", where, what, consequence, remedy)


def _by_name(node: AggregateNode) -> dict[str, Aggregate]:
    return {each.column: each for each in node.aggregates}


def _same(one: Aggregate, other: Aggregate) -> bool:
    if not _same_text(one.condition, other.condition):
        return False
    if one.function != other.function or one.argument is None or other.argument is None:
        return (one.function, one.argument) == (other.function, other.argument)
    if one.function == REDUCE:
        return reduction_of(one.parameter or "").meaning == reduction_of(other.parameter or "").meaning
    if one.function == PYTHON and one.parameter != other.parameter:
        return False
    if one.function in OF_SEVERAL and not _same_text(
        *(second_of(each.function, each.parameter) for each in (one, other))
    ):
        return False
    return parse_expression(one.argument) == parse_expression(other.argument)


def _same_text(one: str | None, other: str | None) -> bool:
    """Whether two expressions are the same but for blanks and comments, or neither is there."""
    if one is None or other is None:
        return one is other
    return parse_expression(one) == parse_expression(other)


def _keeps_fewer(one: Aggregate, other: Aggregate) -> bool:
    """Whether the lists of the other are shorter. Another percentile is of the same sketch, and says nothing here."""
    before, after = (how_many(each.function, each.parameter) for each in (one, other))
    return before is not None and after is not None and after < before


def _lacks_some(one: Aggregate, other: Aggregate) -> bool:
    """Whether the lists of the other are to have more values, of which some may have gone; the last ones come anew."""
    return one.function == TOP and _keeps_fewer(other, one)


def _same_type(one: Type, other: Type) -> bool:
    return shown_type(one) == shown_type(other)


def _readable(old: Type, new: Type) -> bool:
    """Whether every value of the old type is one of the new."""
    if old.this == new.this == exp.DType.ARRAY:
        return _readable(old.expressions[0], new.expressions[0])
    if old.this in _WIDER and new.this in _WIDER:
        return _WIDER.index(old.this) <= _WIDER.index(new.this)
    return _same_type(old, new) or (old.this, new.this) == (exp.DType.FLOAT, exp.DType.DOUBLE)


def _time(windows: TimeWindows | SlidingWindows) -> str:
    if isinstance(windows, SlidingWindows):
        return f"sliding ones of {windows.size} ms"
    return f"of {windows.lengths}"


def _words(keys: frozenset[str]) -> str:
    return " and ".join(sorted(keys))


_CONTENTS: dict[type, Callable[[Topology, Any, Topology, Any], Iterator[Change]]] = {
    AggregateNode: _contents,
    ToTableNode: to_table_changes,
    DedupeNode: dedupe_store_changes,
    SuppressNode: suppress_store_changes,
    ResponseNode: subscription_changes,
    ForeignKeyJoinNode: result_changes,
}
"""What is other in a store that nodes of one kind have in both topologies."""
