"""From a declared topology to sub-topologies that are split at repartition topics."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from streams_runtime.api import StreamsApplication
from streams_runtime.api.flow.own_changelogs import tables_with_changelogs
from streams_runtime.api.flow.step_graph import (
    foreign_key_joins,
    keeping_null_keys,
    outputs_of_step,
    repartitioned,
    tables_of,
)
from streams_runtime.api.reading.field_paths import under
from streams_runtime.api.reading.legal_names import repartition_parts, repartition_topic
from streams_runtime.api.sql.aggregate_calls import parse_aggregate
from streams_runtime.api.sql.sql_tree import SqlSyntaxError
from streams_runtime.api.steps.topology_spec import FormatSpec, JoinSpec, SinkSpec, SourceSpec, StepSpec
from streams_runtime.api.steps.windows_spec import WindowSpec
from streams_runtime.errors import TopologyException
from streams_runtime.topology.declared.foreign_key_step import foreign_key_nodes
from streams_runtime.topology.declared.global_table_step import global_sources, global_tables
from streams_runtime.topology.declared.stream_steps import branches_of, stream_node
from streams_runtime.topology.declared.table_steps import history_of, table_nodes
from streams_runtime.topology.node_order import needed_first
from streams_runtime.topology.nodes.aggregate_node import Aggregate, AggregateNode
from streams_runtime.topology.nodes.all_nodes import Node
from streams_runtime.topology.nodes.join_node import JoinNode
from streams_runtime.topology.nodes.regroup_node import RegroupNode
from streams_runtime.topology.nodes.source_and_sink_nodes import (
    Format,
    RepartitionSinkNode,
    RepartitionSourceNode,
    SinkNode,
    SourceNode,
    TableSourceNode,
)
from streams_runtime.topology.nodes.step_nodes import KeyByNode, MergeNode, TransformNode
from streams_runtime.topology.nodes.stream_join_node import StreamJoinNode
from streams_runtime.topology.nodes.table_nodes import TableJoinNode
from streams_runtime.topology.nodes.window_kinds import SessionWindows, SlidingWindows, TimeWindows, Windows
from streams_runtime.topology.plan import Function, SubTopology, Topology, users_topics
from streams_runtime.topology.stage_order import stage_order

# Without a declared format a key is bytes that are only carried along.
_UNDECLARED_KEY = Format("bytes")


def build_topology(application: StreamsApplication) -> Topology:
    """The plan of an application that `load_application` or `parse_application` accepted.

    Raises TopologyException for what they would have refused: references to nothing, circles, aggregates that
    can't be read, joins of tables that are none, or that would wait for themselves.
    """
    nodes = {node.name: node for node in _nodes(application)}
    ordered = [nodes[name] for name in needed_first({node.name: node.needs for node in nodes.values()})]
    of_globals = global_sources(application, ordered)
    groups = _upstream_first(_connected([node for node in ordered if node not in of_globals]), list(nodes))
    application_id = application.application_id
    subs = tuple(_subtopology(i, group, application_id) for i, group in enumerate(groups))
    for sub in subs:
        stage_order(sub)
    return Topology(application_id, subs, tuple(_functions(application)), global_tables(of_globals, len(subs)))


def _functions(application: StreamsApplication) -> Iterator[Function]:
    for name, spec in sorted(application.spec.topology.functions.items()):
        path = under("spec.topology.functions", name)
        yield Function(name, spec.reference, spec.returns, spec.pandas is not None, path)


def _nodes(application: StreamsApplication) -> list[Node]:
    """All nodes in the order of the file; consumers of a repartitioned step read its repartition topic."""
    spec = application.spec.topology
    moved, with_null_keys = repartitioned(spec.steps), keeping_null_keys(spec.steps)
    tables = tables_of(spec.sources, spec.steps)
    foreign = foreign_key_joins(spec.sources, spec.steps)
    with_own_changelogs = tables_with_changelogs(application.spec.processing, spec.sources, spec.steps, spec.sinks)
    rename = {
        name: repartition_parts(name)[1]
        for step in spec.steps
        for name in outputs_of_step(step)
        if name in moved and step.repartition is None
    }
    nodes: list[Node] = []
    readers: dict[str, str] = {}
    for index, source in enumerate(spec.sources):
        first = source.name if source.topic is None else readers.setdefault(source.topic, source.name)
        own = source.name in with_own_changelogs
        nodes.append(_source(source, under("spec.topology.sources", index), first, own))
    for index, step in enumerate(spec.steps):
        if step.name in foreign and step.join is not None:
            nodes += foreign_key_nodes(step, step.join, application.application_id, under("spec.topology.steps", index))
            continue
        if step.group_by is not None and step.aggregate is not None:
            nodes += _grouped(step, step.group_by, application.application_id, under("spec.topology.steps", index))
            continue
        if step.repartition is not None:
            before = rename.get(step.from_ or "", step.from_ or "")
            path = under("spec.topology.steps", index)
            topic = repartition_topic(application.application_id, step.name)
            partitions, partition_by = step.repartition.partitions, step.repartition.partition_by
            name = repartition_parts(step.name)[0]
            nodes.append(RepartitionSinkNode(name, before, topic, False, partitions, partition_by, path))
            nodes.append(RepartitionSourceNode(step.name, topic, before))
            continue
        nodes += _step(step, under("spec.topology.steps", index), rename, tables)
        nodes += branches_of(step)
        for name in (each for each in outputs_of_step(step) if each in moved):
            keeps = name in with_null_keys
            nodes += _through_topic(name, application.application_id, name, rename[name], keeps_null_keys=keeps)
    taken = {node.name for node in nodes}
    for index, sink in enumerate(spec.sinks):
        nodes.append(_sink(sink, under("spec.topology.sinks", index), rename, taken))
    return nodes


def _through_topic(
    name: str,
    application_id: str,
    origin: str,
    source: str,
    keeps_null_keys: bool,
) -> tuple[Node, Node]:
    """Writes what `origin` gives to the repartition topic of this name, and reads it as `source`."""
    topic = repartition_topic(application_id, name)
    sink = RepartitionSinkNode(repartition_parts(name)[0], origin, topic, keeps_null_keys)
    return sink, RepartitionSourceNode(source, topic, origin)


def _grouped(step: StepSpec, key: str, application_id: str, path: str) -> tuple[Node, Node, Node]:
    """An aggregate of a table by another key: tells the groups, reads what they are told, and aggregates it."""
    topic = repartition_topic(application_id, step.name)
    columns = tuple(replace(each, subtracts=True) for each in _aggregates(step, path))
    regroup, source = repartition_parts(step.name)
    return (
        RegroupNode(regroup, step.from_ or "", key, columns, topic, path),
        RepartitionSourceNode(source, topic, regroup),
        AggregateNode(step.name, source, columns, step.store or "", path),
    )


def _source(source: SourceSpec, path: str, first: str, own_changelog: bool) -> Node:
    """What reads the topic; of a further source of one topic, whose settings are equal, a node behind the `first`."""
    if source.name != first:
        return TransformNode(source.name, first, None, None, path)
    key = _format(source.key) if source.key is not None else _UNDECLARED_KEY
    value = _format(source.value)
    if source.table is not None:
        store, history = source.table.store, history_of(source.table)
        read = (source.name, source.named_topic, key, value, source.timestamp)
        return TableSourceNode(*read, store, path, history, own_changelog)
    if source.topic_pattern is not None:
        return SourceNode(source.name, source.topic_pattern, key, value, source.timestamp, path, by_pattern=True)
    return SourceNode(source.name, source.named_topic, key, value, source.timestamp, path)


def _step(step: StepSpec, path: str, rename: Mapping[str, str], tables: Collection[str]) -> Sequence[Node]:
    """The step's nodes, the one that is called as it last."""
    before = rename.get(step.from_ or "", step.from_ or "")
    return table_nodes(step, before, path) or (_one_node(step, before, path, rename, tables),)


def _one_node(step: StepSpec, before: str, path: str, rename: Mapping[str, str], tables: Collection[str]) -> Node:
    if step.merge is not None:
        return MergeNode(step.name, tuple(rename.get(name, name) for name in step.merge), path)
    if (node := stream_node(step, before, path)) is not None:
        return node
    if step.key_by is not None:
        return KeyByNode(step.name, before, step.key_by, path)
    if step.join is not None:
        return _join(step.name, step.join, before, rename, path, before in tables)
    if step.aggregate is not None:
        columns = _aggregates(step, path)
        windows = None if step.window is None else _windows(step.window, path, step.suppress is not None)
        late = step.window.late.topic if step.window is not None and step.window.late is not None else None
        return AggregateNode(step.name, before, columns, step.store or "", path, windows, late)
    select = tuple(step.selected.items()) if step.select is not None else None
    return TransformNode(step.name, before, step.where, select, path, step.selects_every)


def _join(
    name: str, join: JoinSpec, before: str, rename: Mapping[str, str], path: str, of_tables: bool
) -> JoinNode | StreamJoinNode | TableJoinNode:
    select = tuple(join.select.items())
    if join.stream is None and of_tables:
        return TableJoinNode(name, before, join.other, join.type, select, path)
    if join.stream is None:
        return JoinNode(name, before, join.other, join.type == "left", select, path, join.key)
    if join.within is None:
        raise TopologyException(f"{under(path, 'join', 'within')}: is missing")
    lengths = (_ms(join.within.before), _ms(join.within.after), _ms(join.grace or timedelta(0)))
    other = rename.get(join.stream, join.stream)
    return StreamJoinNode(name, before, other, join.stream, join.type, *lengths, select, path)


def _aggregates(step: StepSpec, path: str) -> tuple[Aggregate, ...]:
    return tuple(_aggregate(name, text, path) for name, text in (step.aggregate or {}).items())


def _aggregate(column: str, text: str, path: str) -> Aggregate:
    field = under(path, "aggregate", column)
    try:
        call = parse_aggregate(text)
    except SqlSyntaxError as error:
        raise TopologyException(f"{field}: {error}") from error
    return Aggregate(column, call.function, call.argument, field, call.parameter, call.condition)


def _windows(window: WindowSpec, path: str, only_final: bool) -> Windows:
    if window.session is not None:
        gap, grace = _ms(window.session.gap), _ms(window.session.grace)
        return SessionWindows(gap, grace, _retention(window, gap + grace), only_final)
    if window.sliding is not None:
        size, grace = _ms(window.sliding.time_difference), _ms(window.sliding.grace)
        return SlidingWindows(size, grace, _retention(window, 2 * size + grace), only_final)
    timezone = None
    if window.tumbling is not None:
        tumbling = window.tumbling
        size = advance = _ms(tumbling.size)
        grace, offset, timezone = _ms(tumbling.grace), _ms(tumbling.offset), tumbling.timezone
    elif window.hopping is not None:
        hopping = window.hopping
        size, advance = _ms(hopping.size), _ms(hopping.advance)
        grace, offset = _ms(hopping.grace), _ms(hopping.offset)
    else:
        raise TopologyException(f"{under(path, 'window')}: no kind of window")
    windows = TimeWindows(size, advance, grace, size + grace, only_final, offset, timezone)
    return replace(windows, retention=_retention(window, windows.longest + grace))


def _retention(window: WindowSpec, least: int) -> int:
    return least if window.retention is None else _ms(window.retention)


def _ms(duration: timedelta) -> int:
    return duration // timedelta(milliseconds=1)


def _sink(sink: SinkSpec, path: str, rename: Mapping[str, str], taken: set[str]) -> Node:
    base = name = f"sink-{sink.topic}" if sink.topic is not None else f"sink-of-{sink.from_}"
    number = 2
    while name in taken:
        name, number = f"{base}-{number}", number + 1
    taken.add(name)
    key = _format(sink.key) if sink.key is not None else None
    value = _format(sink.value) if sink.value is not None else None
    topics = None if sink.topics is None else tuple(sink.topics)
    before = rename.get(sink.from_, sink.from_)
    return SinkNode(name, before, sink.topic, key, value, path, sink.topic_by, topics, sink.partition_by)


def _format(spec: FormatSpec) -> Format:
    return Format(spec.format, spec.schema_, spec.message)


def _connected(nodes: Iterable[Node]) -> list[list[Node]]:
    """The nodes in groups that records pass through without a repartition topic in between."""
    group_of: dict[str, list[str]] = {}
    for node in nodes:
        # The longest takes the others in, so that a name moves few times however many nodes there are.
        met = {id(group_of[name]): group_of[name] for name in node.inputs}
        joined = max(met.values(), key=len, default=[])
        for other in met.values():
            if other is not joined:
                joined += other
                group_of.update(dict.fromkeys(other, joined))
        joined.append(node.name)
        group_of[node.name] = joined
    # In the given order, which the joining has mixed up.
    groups: dict[int, list[Node]] = {}
    for node in nodes:
        groups.setdefault(id(group_of[node.name]), []).append(node)
    return list(groups.values())


def _upstream_first(groups: Sequence[Sequence[Node]], names: Sequence[str]) -> list[list[Node]]:
    """The groups in the order of their ids: those that feed others first, else in the order of the file.

    Groups that feed each other through repartition topics can't all come first; the file decides among them.
    """
    place = {name: index for index, name in enumerate(names)}
    in_file = sorted(groups, key=lambda group: min(place[node.name] for node in group))
    group_of = {node.name: index for index, group in enumerate(in_file) for node in group}
    feeds: dict[int, set[int]] = {index: set() for index in range(len(in_file))}
    for group in in_file:
        for node in group:
            if isinstance(node, RepartitionSourceNode):
                feeds[group_of[node.origin]].add(group_of[node.name])
    after = {index: _reachable(index, feeds) for index in feeds}
    before: dict[int, set[int]] = {index: set() for index in feeds}
    for first, reached in after.items():
        for index in reached:
            if first not in after[index]:
                before[index].add(first)
    return [list(in_file[index]) for index in needed_first(before)]


def _reachable(start: int, feeds: Mapping[int, set[int]]) -> set[int]:
    found: set[int] = set()
    waiting = [start]
    while waiting:
        for index in feeds[waiting.pop()] - found:
            found.add(index)
            waiting.append(index)
    return found


def _subtopology(index: int, nodes: Sequence[Node], application_id: str) -> SubTopology:
    return SubTopology(
        id=index,
        nodes=tuple(nodes),
        source_topics=tuple(
            node.read_topic
            for node in nodes
            if node.read_topic is not None and not (isinstance(node, SourceNode) and node.by_pattern)
        ),
        sink_topics=users_topics(nodes),
        repartition_sinks=tuple(node.internal_topic for node in nodes if node.internal_topic is not None),
        stores=tuple(store for node in nodes for store in node.store_specs(application_id)),
    )
