"""Checks of topics and stores by name: legal, unambiguous, and with properties that keep the state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from streams_runtime.api.flow.own_changelogs import tables_with_changelogs
from streams_runtime.api.flow.step_graph import (
    foreign_key_joins,
    is_suppressed,
    outputs_of,
    outputs_of_step,
    through_a_topic,
)
from streams_runtime.api.reading.field_paths import under
from streams_runtime.api.reading.legal_names import (
    application_name_problem,
    changelog_topic,
    colliding,
    dedupe_store,
    foreign_key_parts,
    join_stores,
    part_name_problem,
    process_store,
    registration_topic,
    repartition_parts,
    repartition_topic,
    response_topic,
    subscription_store,
    suppress_store,
    suppressed_part,
    topic_problem,
)
from streams_runtime.api.reading.mistakes import suggestion
from streams_runtime.api.reading.readable_parts import Part, Parts
from streams_runtime.api.reading.topic_patterns import fits, pattern_problem
from streams_runtime.api.spec.spec_values import format_offset_reset
from streams_runtime.api.steps.topology_spec import SourceSpec, StepSpec
from streams_runtime.errors import Mistake

BROKERS_OWN = ("__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata")


def topic_mistakes(parts: Parts) -> Iterator[Mistake]:
    """Everything about the names of applications, sources, steps, stores and topics."""
    yield from _part_names(parts)
    yield from _stores(parts)
    yield from _read_and_written(parts)
    yield from _patterns(parts)
    yield from _beginnings(parts)
    yield from _internal_names(parts)


def internal_topic_fields(parts: Parts) -> dict[str, tuple[str, str]]:
    """Internal topics by their names without the application's: (full name, field that asks for it)."""
    topics: dict[str, tuple[str, str]] = {}
    application = parts.application_id or "application"
    moved = through_a_topic(step.model for step in parts.steps if step.model)
    foreign = _foreign_key_joins(parts)
    for field, store in _table_changelogs(parts):
        full = changelog_topic(application, store)
        topics[full.removeprefix(f"{application}-")] = (full, field)
    for step in parts.steps:
        if step.model and step.name in foreign:
            for full in (registration_topic(application, step.name), response_topic(application, step.name)):
                topics[full.removeprefix(f"{application}-")] = (full, under(step.path, "name"))
        for name in (each for each in outputs_of_step(step.model) if each in moved) if step.model else ():
            full = repartition_topic(application, name)
            topics[full.removeprefix(f"{application}-")] = (full, under(step.path, "name"))
        keeps = step.model is not None and (step.model.aggregate is not None or step.name in foreign)
        if step.model and step.model.store is not None and keeps:
            full = changelog_topic(application, step.model.store)
            topics[full.removeprefix(f"{application}-")] = (full, under(step.path, "store"))
        if step.model and step.model.to_table is not None:
            full = changelog_topic(application, step.model.to_table.store)
            topics[full.removeprefix(f"{application}-")] = (full, under(step.path, "toTable", "store"))
        for store, field in _processor_stores(step):
            full = changelog_topic(application, store)
            topics[full.removeprefix(f"{application}-")] = (full, field)
        for store in _unnamed_stores(step.model, foreign):
            full = changelog_topic(application, store)
            topics[full.removeprefix(f"{application}-")] = (full, under(step.path, "name"))
    return topics


def _table_changelogs(parts: Parts) -> Iterator[tuple[str, str]]:
    """The stores of tables of topics that have changelogs of their own, each with its field."""
    sources = [source.model for source in parts.sources if source.model]
    sinks = [sink.model for sink in parts.sinks if sink.model]
    own: frozenset[str] = frozenset()
    if parts.processing is not None:
        own = tables_with_changelogs(parts.processing, sources, list(_models(parts)), sinks)
    for source in parts.sources:
        if source.model and source.model.table is not None and source.name in own:
            yield under(source.path, "table", "store"), source.model.table.store


def _foreign_key_joins(parts: Parts) -> frozenset[str]:
    sources = [source.model for source in parts.sources if source.model]
    return foreign_key_joins(sources, [step.model for step in parts.steps if step.model])


def _unnamed_stores(step: StepSpec | None, foreign: frozenset[str]) -> tuple[str, ...]:
    """The stores that a step has without naming them: those of a join of streams, that of a dedupe, a process step's
    own, that of a toStream with suppress.

    And that of a join by a foreign key, one of `foreign`, which has another one that it names.
    """
    if step is not None and step.name in foreign:
        return (subscription_store(step.name),)
    if step is not None and step.dedupe is not None:
        return (dedupe_store(step.name),)
    if step is not None and step.process is not None:
        return (process_store(step.name),)
    if step is not None and is_suppressed(step):
        return (suppress_store(step.name),)
    if step is None or step.join is None or step.join.stream is None:
        return ()
    return join_stores(step.name, step.join.type == "inner")


def _processor_stores(step: Part[StepSpec]) -> Iterator[tuple[str, str]]:
    """The stores that a process step declares, each with its field."""
    if step.model is not None and step.model.process is not None:
        for store in step.model.process.stores:
            yield store, under(step.path, "process", "stores", store)


def _part_names(parts: Parts) -> Iterator[Mistake]:
    if parts.name is not None and (problem := application_name_problem(parts.name)):
        yield Mistake("metadata.name", *problem)
    own_id = parts.application_id if parts.application_id != parts.name else None
    if own_id is not None and (problem := part_name_problem(own_id)):
        yield Mistake("spec.applicationId", *problem)
    for node in parts.nodes:
        if node.name is not None and (problem := part_name_problem(node.name)):
            yield Mistake(under(node.path, "name"), *problem)


def _store_fields(parts: Parts) -> Iterator[tuple[str, str]]:
    for source in parts.sources:
        if source.model and source.model.table is not None:
            yield under(source.path, "table", "store"), source.model.table.store
    foreign = _foreign_key_joins(parts)
    for step in parts.steps:
        if step.model and step.model.store is not None:
            yield under(step.path, "store"), step.model.store
        if step.model and step.model.to_table is not None:
            yield under(step.path, "toTable", "store"), step.model.to_table.store
        for store, field in _processor_stores(step):
            yield field, store
        for store in _unnamed_stores(step.model, foreign):
            yield under(step.path, "name"), store


def _stores(parts: Parts) -> Iterator[Mistake]:
    first: dict[str, str] = {}
    for field, store in _store_fields(parts):
        if problem := part_name_problem(store):
            yield Mistake(field, *problem)
        if store in first:
            yield Mistake(
                field,
                f"the store {store!r} is used twice, first in {first[store]}",
                "give each store its own name",
            )
        first.setdefault(store, field)


def _read_and_written(parts: Parts) -> Iterator[Mistake]:
    read: dict[str, str] = {}
    first: dict[str, SourceSpec] = {}
    for source in parts.sources:
        if source.model is None or source.model.topic is None:
            continue
        topic, field = source.model.topic, under(source.path, "topic")
        if problem := topic_problem(topic):
            yield Mistake(field, *problem)
        elif topic in read:
            yield from _read_again(source.model, source.path, first[topic], read[topic])
        read.setdefault(topic, source.path)
        first.setdefault(topic, source.model)
    for field, topic in _written(parts):
        if problem := topic_problem(topic):
            yield Mistake(field, *problem)
        elif topic in read:
            found = f"the topic {topic!r} is read by {read[topic]}"
            yield Mistake(field, found, "write to another topic; the application would read its own records")
        elif topic in BROKERS_OWN:
            yield Mistake(field, f"{topic!r} belongs to the brokers", "write to another topic")


def _read_again(source: SourceSpec, path: str, first: SourceSpec, by: str) -> Iterator[Mistake]:
    """A further source of a topic is the first one again: a stream, and with the same settings."""
    if source.table is not None or first.table is not None:
        found = f"the topic {source.topic!r} is read by {by}; a topic that is a table is read by one source"
        remedy = "let steps take their records from one source; a toStream makes a stream of a table's changes"
        yield Mistake(under(path, "topic"), found, remedy)
        return
    for field, one, other in (
        ("key", source.key, first.key),
        ("value", source.value, first.value),
        ("timestamp", source.timestamp, first.timestamp),
        ("offsetReset", source.offset_reset, first.offset_reset),
    ):
        if one != other:
            found = f"it differs from {under(by, field)}, and both sources read the topic {source.topic!r}"
            remedy = "give both the same; sources of one topic with equal settings are one source"
            yield Mistake(under(path, field), found, remedy)


def _patterns(parts: Parts) -> Iterator[Mistake]:
    """Sources of patterns: an application never reads what it writes, and nothing twice."""
    sources = [(source.path, source.model) for source in parts.sources if source.model]
    for path, source in sources:
        field = under(path, "topicPattern")
        if source.topic_pattern is None:
            if source.topic is None:
                yield Mistake(path, "a source without a topic", "give topic, or topicPattern for every topic that fits")
            continue
        if source.topic is not None:
            yield Mistake(field, "topicPattern beside topic", "give one of the two")
        if source.table is not None:
            found = "a pattern for a table, which is kept from one topic"
            yield Mistake(field, found, "give topic, or read the topics as a stream and make a table by toTable")
        if problem := pattern_problem(source.topic_pattern):
            yield Mistake(field, *problem)
            continue
        before = next(other for other, each in sources if each.topic_pattern == source.topic_pattern)
        if before != path:
            found = f"the pattern {source.topic_pattern!r} is read by {before}"
            yield Mistake(field, found, "let steps take their records from one source")
        yield from _read_by_pattern(parts, source.topic_pattern, field)


def _read_by_pattern(parts: Parts, pattern: str, field: str) -> Iterator[Mistake]:
    """Topics that the application knows by name, and that the pattern must not fit."""
    for source in parts.sources:
        if source.model and source.model.topic is not None and fits(pattern, source.model.topic):
            found = f"the pattern fits the topic {source.model.topic!r}, which {source.path} reads"
            yield Mistake(field, found, "make it narrower, or leave that source out: a topic is read by one source")
    own = [*_written(parts), *((place, full) for full, place in internal_topic_fields(parts).values())]
    for place, topic in own:
        if fits(pattern, topic):
            found = f"the pattern fits the topic {topic!r}, which the application writes ({place})"
            remedy = "make it narrower, or give that topic another name; the application would read its own records"
            yield Mistake(field, found, remedy)


def _beginnings(parts: Parts) -> Iterator[Mistake]:
    """Tables begin at the beginning of their topics."""
    for source in parts.sources:
        if source.model is None or source.model.table is None or source.model.offset_reset in (None, "earliest"):
            continue
        kind = "a global table" if source.model.table.global_ else "a table"
        found = f"found {format_offset_reset(source.model.offset_reset)!r} for {kind}, which always begins at the"
        remedy = "leave it out, or read the topic as a stream"
        yield Mistake(under(source.path, "offsetReset"), f"{found} beginning of its topic", remedy)


def _written(parts: Parts) -> Iterator[tuple[str, str]]:
    for step in parts.steps:
        if step.model and step.model.window and step.model.window.late:
            yield under(step.path, "window", "late", "topic"), step.model.window.late.topic
    for sink in parts.sinks:
        for tokens, topic in sink.model.named_topics.items() if sink.model else ():
            yield under(sink.path, *tokens), topic
    if parts.processing:
        yield from parts.processing.letter_topics.items()


def _internal_names(parts: Parts) -> Iterator[Mistake]:
    internal = internal_topic_fields(parts)
    taken: dict[str, str] = {}
    for full, field in internal.values():
        if problem := topic_problem(full):
            yield Mistake(field, f"its internal topic would be no topic: {problem[0]}", problem[1])
        twin = taken.setdefault(colliding(full), full)
        if twin != full:
            found = f"the internal topic {full!r} would collide with {twin!r}: to Kafka . and _ are the same"
            yield Mistake(field, found, "choose another name")
    users = [
        (under(source.path, "topic"), source.model.topic)
        for source in parts.sources
        if source.model and source.model.topic is not None
    ]
    for field, topic in (*users, *_written(parts)):
        if colliding(topic) in taken:
            found = f"{topic!r} is the name of an internal topic of this application"
            yield Mistake(field, found, "choose another topic, or another applicationId")
    yield from _generated_node_names(parts)
    yield from _overrides(parts, internal)


def _generated_node_names(parts: Parts) -> Iterator[Mistake]:
    moved = through_a_topic(step.model for step in parts.steps if step.model)
    generated = {name: step for step in moved for name in repartition_parts(step)}
    by_foreign_key = {part: step for step in _foreign_key_joins(parts) for part in foreign_key_parts(step)}
    waiting = {suppressed_part(each.name): each.name for each in _models(parts) if is_suppressed(each)}
    for node in parts.nodes:
        for name in (each for each in outputs_of(node) if each in waiting):
            found = f"{name!r} is what a part of the toStream {waiting[name]!r} with suppress is called"
            yield Mistake(under(node.path, "name"), found, "choose another name")
        for name in (each for each in outputs_of(node) if each in by_foreign_key):
            found = f"{name!r} is what a part of the join {by_foreign_key[name]!r} by a foreign key is called"
            yield Mistake(under(node.path, "name"), found, "choose another name")
        for name in (each for each in outputs_of(node) if each in generated):
            found = f"{name!r} is what the repartitioning of {generated[name]!r} is called"
            yield Mistake(under(node.path, "name"), found, "choose another name")


def _models(parts: Parts) -> Iterator[StepSpec]:
    return (step.model for step in parts.steps if step.model)


def _overrides(parts: Parts, internal: Mapping[str, tuple[str, str]]) -> Iterator[Mistake]:
    for name in parts.internal_topics.overrides if parts.internal_topics else ():
        if name not in internal:
            field = under("spec.internalTopics.overrides", name)
            yield Mistake(field, f"the application has no internal topic {name!r}", suggestion(name, internal))
