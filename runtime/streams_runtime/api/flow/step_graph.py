"""How sources, steps and sinks hang together: references, cycles, order, repartitioning."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from graphlib import CycleError, TopologicalSorter

from streams_runtime.api.reading.field_paths import under
from streams_runtime.api.reading.legal_names import branch_name
from streams_runtime.api.reading.mistakes import suggestion
from streams_runtime.api.reading.readable_parts import Part, Parts
from streams_runtime.api.steps.topology_spec import SinkSpec, SourceSpec, StepSpec
from streams_runtime.errors import Mistake


def inputs_of_step(step: StepSpec) -> tuple[str, ...]:
    """Names that the step takes its records from; of a join the stream first, then what it is joined with."""
    if step.merge is not None:
        return tuple(step.merge)
    own = (step.from_,) if step.from_ is not None else ()
    return own if step.join is None or not step.join.other else (*own, step.join.other)


def outputs_of_step(step: StepSpec) -> tuple[str, ...]:
    """Names that others take the step's records from: its branches, or its outputs, else its own."""
    if step.split is not None:
        branches = [branch.name for branch in step.split] + ([] if step.default is None else [step.default])
    elif step.process is not None and step.process.outputs is not None:
        branches = step.process.outputs
    else:
        return (step.name,)
    return tuple(branch_name(step.name, branch) for branch in branches)


def outputs_of(node: Part[SourceSpec] | Part[StepSpec]) -> tuple[str, ...]:
    """The same of any source or step, right or wrong."""
    if isinstance(node.model, StepSpec):
        return outputs_of_step(node.model)
    return () if node.name is None else (node.name,)


def graph_mistakes(parts: Parts) -> Iterator[Mistake]:
    """Names given twice, references to nothing, and cycles."""
    yield from _duplicates(parts.nodes)
    known = frozenset(name for node in parts.nodes for name in outputs_of(node))
    for step in parts.steps:
        if step.model:
            yield from _unknown_references(parts, known, step.path, _references(step.model))
    for sink in parts.sinks:
        if sink.model:
            yield from _unknown_references(parts, known, sink.path, _references(sink.model))
    yield from _cycles(parts)


def ordered_steps(parts: Parts) -> list[Part[StepSpec]]:
    """The steps that can be read, inputs before consumers; those on a cycle, or after one, are left out."""
    steps = _steps_by_name(parts)
    remaining = _steps_before(steps)
    place = {name: index for index, name in enumerate(remaining)}
    sorter = TopologicalSorter({name: inputs & remaining.keys() for name, inputs in remaining.items()})
    with suppress(CycleError):  # it gives what comes before a cycle all the same
        sorter.prepare()
    ordered: list[Part[StepSpec]] = []
    while ready := sorter.get_ready():
        ordered += [steps[name] for name in sorted(ready, key=place.__getitem__)]
        sorter.done(*ready)
    return ordered


def repartitioned(steps: Iterable[StepSpec]) -> frozenset[str]:
    """Names of what goes through a repartition topic: every repartition, some steps, or outputs, that give keys.

    From these an aggregate, a toTable, a join, a dedupe or a process step is reached without another such topic in
    between: state needs all records of a key in one partition, and records that are only passed on do not.
    """
    models = list(steps)
    return frozenset(step.name for step in models if step.repartition is not None) | _that_reach(
        models,
        lambda step: (
            step.aggregate is not None
            or step.to_table is not None
            or (ends_a_stage(step) and not asks_a_global_table(step))
        ),
    )


def through_a_topic(steps: Iterable[StepSpec]) -> frozenset[str]:
    """Names that a repartition topic is called after: those, and those of aggregates with groupBy."""
    models = list(steps)
    return repartitioned(models) | {step.name for step in models if is_regrouped(step)}


def is_regrouped(step: StepSpec) -> bool:
    """Whether the step is an aggregate of a table's rows by groups that they may leave."""
    return step.group_by is not None and step.aggregate is not None


def keeping_null_keys(steps: Iterable[StepSpec]) -> frozenset[str]:
    """Names of the steps, or outputs, that give keys from which one is reached that passes on records without a key.

    A left or outer join, a join with a global table, a dedupe or a process step; without others that give keys
    between.
    """
    return _that_reach(
        steps,
        lambda step: (
            step.dedupe is not None
            or step.process is not None
            or asks_a_global_table(step)
            or (step.join is not None and step.join.type != "inner")
        ),
    )


def is_suppressed(step: StepSpec) -> bool:
    """Whether the step is a toStream whose changes wait for later ones."""
    return step.to_stream is not None and step.to_stream.suppress is not None


def asks_a_global_table(step: StepSpec) -> bool:
    """Whether the step is a join with a global table, to which a record's own key means nothing."""
    return step.join is not None and step.join.key is not None


def ends_a_stage(step: StepSpec) -> bool:
    """Whether the step's records meet stores one by one and go on in a further stage of the batch."""
    return any(each is not None for each in (step.join, step.dedupe, step.process))


def gives_keys(step: StepSpec) -> bool:
    """Whether the step gives its records other keys."""
    return step.key_by is not None or (step.process is not None and step.process.key is not None)


def stage_before(name: str, steps: Iterable[StepSpec], wanted: Callable[[StepSpec], bool]) -> StepSpec | None:
    """A wanted step that the records of a step come from, without a repartition topic in between; None without one."""
    models = list(steps)
    owners = {output: each for each in models for output in outputs_of_step(each)}
    moved = repartitioned(models)
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        here = waiting.pop()
        owner = owners.get(here)
        if owner is None or owner.name in seen or here in moved:
            continue
        seen.add(owner.name)
        if wanted(owner):
            return owner
        if owner.group_by is not None:
            continue
        waiting += inputs_of_step(owner)
    return None


def tells_changes(
    step: StepSpec, owners: Mapping[str, StepSpec], steps: Sequence[StepSpec], patterns: Collection[str]
) -> bool:
    """Whether the step is a toStream whose records come in a stage of their own, since old rows are asked for first.

    So it is unless nothing but select lies between it and a table that is told record by record. `patterns` are the
    sources that read several topics.
    """
    if step.to_stream is None:
        return False
    owner = owners.get(step.from_ or "")
    while owner is not None and owner.select is not None and owner.where is None:
        owner = owners.get(owner.from_ or "")
    if owner is not None and owner.to_table is not None:
        # The records of several topics have to be put in order first.
        return stage_before(owner.from_ or "", steps, partial(_brings_topics_together, patterns)) is not None or (
            owner.from_ in patterns
        )
    return owner is not None


def _brings_topics_together(patterns: Collection[str], step: StepSpec) -> bool:
    several = step.merge is not None or (step.join is not None and step.join.stream is not None)
    return several or any(name in patterns for name in inputs_of_step(step))


def tables_of(sources: Iterable[SourceSpec], steps: Sequence[StepSpec]) -> frozenset[str]:
    """Names of the sources and steps whose output is a table: aggregates, toTable; where, select, join of a table."""
    found = {source.name for source in sources if source.table is not None}
    found |= {step.name for step in steps if step.aggregate is not None or step.to_table is not None}
    others = [step for step in steps if any(each is not None for each in (step.where, step.select, step.join))]
    while more := {step.name for step in others if step.from_ in found} - found:
        found |= more
    return frozenset(found)


def is_kept(step: StepSpec) -> bool:
    """Whether a store keeps what a step that gives a table gives: an aggregate, a toTable, a join by a foreign key."""
    by_foreign_key = step.join is not None and step.join.key is not None
    return step.aggregate is not None or step.to_table is not None or by_foreign_key


def foreign_key_joins(sources: Iterable[SourceSpec], steps: Sequence[StepSpec]) -> frozenset[str]:
    """Names of the steps that join two tables by a key that the rows of the first one name."""
    tables = tables_of(sources, steps)
    return frozenset(
        step.name for step in steps if step.join is not None and step.join.key is not None and step.from_ in tables
    )


def _that_reach(steps: Iterable[StepSpec], wanted: Callable[[StepSpec], bool]) -> frozenset[str]:
    """Names of the outputs with new keys from which such a step is reached without another such topic between."""
    by_name = {step.name: step for step in steps}
    consumers: dict[str, list[StepSpec]] = {}
    for step in by_name.values():
        for name in inputs_of_step(step):
            consumers.setdefault(name, []).append(step)
    outputs = [name for step in by_name.values() if gives_keys(step) for name in outputs_of_step(step)]
    return frozenset(name for name in outputs if _reaches(name, consumers, wanted))


def _reaches(name: str, consumers: Mapping[str, Sequence[StepSpec]], wanted: Callable[[StepSpec], bool]) -> bool:
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        for step in consumers.get(waiting.pop(), ()):
            if wanted(step):
                return True
            ends = (step.repartition, step.aggregate, step.to_table)
            if all(each is None for each in ends) and not gives_keys(step) and step.name not in seen:
                seen.add(step.name)
                waiting += outputs_of_step(step)
    return False


def _references(model: StepSpec | SinkSpec) -> Iterator[tuple[tuple[object, ...], str]]:
    if model.from_ is not None:
        yield ("from",), model.from_
    if isinstance(model, StepSpec):
        for index, name in enumerate(model.merge or ()):
            yield ("merge", index), name
        if model.join is not None:
            named = (("table", model.join.table), ("stream", model.join.stream))
            yield from ((("join", field), name) for field, name in named if name is not None)


def _unknown_references(
    parts: Parts, known: Collection[str], path: str, references: Iterable[tuple[tuple[object, ...], str]]
) -> Iterator[Mistake]:
    for tokens, name in references:
        if name in known or _may_be_a_branch(name, parts.steps):
            continue
        others = [each for node in parts.nodes if node.path != path for each in outputs_of(node)]
        owner = next((step for step in parts.steps if step.name == name), None)
        if owner is not None:
            is_split = owner.model is not None and owner.model.split is not None
            found, one = ("is split", "a branch") if is_split else ("has outputs", "an output")
            yield Mistake(under(path, *tokens), f"{name!r} {found}", f"name {one}: {', '.join(outputs_of(owner))}")
        else:
            yield Mistake(under(path, *tokens), f"no source or step is called {name!r}", suggestion(name, others))


def _may_be_a_branch(name: str, steps: Iterable[Part[StepSpec]]) -> bool:
    """Whether a step that could not be read as it stands may have a branch of this name."""
    return any(not step.clean and step.name is not None and name.startswith(f"{step.name}.") for step in steps)


def _duplicates(nodes: Sequence[Part[SourceSpec] | Part[StepSpec]]) -> Iterator[Mistake]:
    first: dict[str, str] = {}
    for node in nodes:
        if node.name is None:
            continue
        if node.name in first:
            found = f"the name {node.name!r} is taken by {first[node.name]}"
            yield Mistake(under(node.path, "name"), found, "give every source and step its own name")
        first.setdefault(node.name, node.path)
    for node in nodes:
        for name in outputs_of(node):
            if name != node.name and first.setdefault(name, node.path) != node.path:
                part = "branch" if isinstance(node.model, StepSpec) and node.model.split else "output"
                found = f"its {part} would be called {name!r}, which is the name of {first[name]}"
                yield Mistake(under(node.path, "name"), found, "give one of the two another name")


def _steps_by_name(parts: Parts) -> dict[str, Part[StepSpec]]:
    """The steps that can be read; where a name is given twice, its first owner keeps it."""
    steps: dict[str, Part[StepSpec]] = {}
    taken = {source.name for source in parts.sources}
    for step in parts.steps:
        if step.model and step.name is not None and step.name not in taken:
            steps.setdefault(step.name, step)
    return steps


def _steps_before(steps: Mapping[str, Part[StepSpec]]) -> dict[str, set[str]]:
    """For each step the names of the steps that it takes records from."""
    models = {name: step.model for name, step in steps.items() if step.model}
    owner = {output: name for name, model in models.items() for output in outputs_of_step(model)}
    return {
        name: {owner.get(each, each) for each in inputs_of_step(model)} & steps.keys() for name, model in models.items()
    }


def _cycles(parts: Parts) -> Iterator[Mistake]:
    steps = _steps_by_name(parts)
    inputs = _steps_before(steps)
    while True:
        try:
            TopologicalSorter(inputs).prepare()
            return
        except CycleError as error:
            cycle = list(dict.fromkeys(error.args[1]))
        first = min(cycle, key=list(steps).index)
        start = cycle.index(first)
        round_trip = " → ".join([*cycle[start:], *cycle[:start], first])
        yield Mistake(
            steps[first].path,
            f"steps in a circle: {round_trip}",
            "take the records of one of them from elsewhere",
        )
        # Without one of its edges this circle is gone, and the next one can be found.
        inputs[cycle[0]] -= {cycle[-1]}
