"""How sources, steps and sinks hang together: references, cycles, order, repartitioning."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from streams_runtime.api.mistakes import suggestion
from streams_runtime.api.parts import Part, Parts
from streams_runtime.api.paths import under
from streams_runtime.api.topology_spec import SinkSpec, SourceSpec, StepSpec
from streams_runtime.errors import Mistake


def inputs_of_step(step: StepSpec) -> tuple[str, ...]:
    """Names that the step takes its records from."""
    return tuple(step.merge) if step.merge is not None else (step.from_,) if step.from_ is not None else ()


def graph_mistakes(parts: Parts) -> Iterator[Mistake]:
    """Names given twice, references to nothing, and cycles."""
    yield from _duplicates(parts.nodes)
    for step in parts.steps:
        if step.model:
            yield from _unknown_references(parts, step.path, _references(step.model))
    for sink in parts.sinks:
        if sink.model:
            yield from _unknown_references(parts, sink.path, _references(sink.model))
    yield from _cycles(parts)


def ordered_steps(parts: Parts) -> list[Part[StepSpec]]:
    """The steps that can be read, inputs before consumers; those on a cycle, or after one, are left out."""
    steps = _steps_by_name(parts)
    remaining = {name: set(inputs_of_step(step.model)) & steps.keys() for name, step in steps.items() if step.model}
    ordered: list[Part[StepSpec]] = []
    while ready := [name for name, inputs in remaining.items() if not inputs & remaining.keys()]:
        ordered += [steps[name] for name in ready]
        remaining = {name: inputs for name, inputs in remaining.items() if name not in ready}
    return ordered


def repartitioned(steps: Iterable[StepSpec]) -> frozenset[str]:
    """Names of the keyBy steps whose records go through a repartition topic.

    From these an aggregate is reached without another keyBy in between: state needs all records of a key in
    one partition, and records that are only passed on do not.
    """
    by_name = {step.name: step for step in steps}
    consumers: dict[str, list[StepSpec]] = {}
    for step in by_name.values():
        for name in inputs_of_step(step):
            consumers.setdefault(name, []).append(step)
    return frozenset(
        name for name, step in by_name.items() if step.key_by is not None and _reaches_state(name, consumers)
    )


def _reaches_state(name: str, consumers: Mapping[str, Sequence[StepSpec]]) -> bool:
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        for step in consumers.get(waiting.pop(), ()):
            if step.aggregate is not None:
                return True
            if step.key_by is None and step.name not in seen:
                seen.add(step.name)
                waiting.append(step.name)
    return False


def _references(model: StepSpec | SinkSpec) -> Iterator[tuple[tuple[object, ...], str]]:
    if model.from_ is not None:
        yield ("from",), model.from_
    if isinstance(model, StepSpec):
        for index, name in enumerate(model.merge or ()):
            yield ("merge", index), name


def _unknown_references(
    parts: Parts, path: str, references: Iterable[tuple[tuple[object, ...], str]]
) -> Iterator[Mistake]:
    known = [node.name for node in parts.nodes if node.name is not None]
    for tokens, name in references:
        if name not in known:
            own = next((node.name for node in parts.nodes if node.path == path), None)
            remedy = suggestion(name, [each for each in known if each != own])
            yield Mistake(under(path, *tokens), f"no source or step is called {name!r}", remedy)


def _duplicates(nodes: Sequence[Part[SourceSpec] | Part[StepSpec]]) -> Iterator[Mistake]:
    first: dict[str, str] = {}
    for node in nodes:
        if node.name is None:
            continue
        if node.name in first:
            found = f"the name {node.name!r} is taken by {first[node.name]}"
            yield Mistake(under(node.path, "name"), found, "give every source and step its own name")
        first.setdefault(node.name, node.path)


def _steps_by_name(parts: Parts) -> dict[str, Part[StepSpec]]:
    """The steps that can be read; where a name is given twice, its first owner keeps it."""
    steps: dict[str, Part[StepSpec]] = {}
    taken = {source.name for source in parts.sources}
    for step in parts.steps:
        if step.model and step.name is not None and step.name not in taken:
            steps.setdefault(step.name, step)
    return steps


def _cycles(parts: Parts) -> Iterator[Mistake]:
    steps = _steps_by_name(parts)
    inputs = {name: set(inputs_of_step(step.model)) & steps.keys() for name, step in steps.items() if step.model}
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
