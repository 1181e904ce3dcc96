"""In what two declared topologies differ, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from streams_runtime.api.spec.spec_model import Model
from streams_runtime.api.steps.topology_spec import SinkSpec, SourceSpec, StepSpec, TopologySpec

_SHOWN = 5  # differences that are told one by one; the first ones say what has happened


def differences(declared: TopologySpec, built: TopologySpec) -> list[str]:
    """What `declared` has and `built` has not, and the other way round; empty where both say the same.

    The order of columns is none: a cluster keeps lists in their order, and fields by their names.
    """
    sections: tuple[tuple[str, Sequence[Model], Sequence[Model]], ...] = (
        ("source", declared.sources, built.sources),
        ("step", declared.steps, built.steps),
        ("sink", declared.sinks, built.sinks),
    )
    found = [each for what, ours, theirs in sections for each in _of_section(what, ours, theirs)]
    found += _of_names("function", declared.functions, built.functions)
    return found if len(found) <= _SHOWN else [*found[:_SHOWN], f"and {len(found) - _SHOWN} more"]


def _of_section(what: str, declared: Sequence[Model], built: Sequence[Model]) -> Iterator[str]:
    before, after = _by_name(declared), _by_name(built)
    yield from _of_names(what, before, after)
    if list(declared) != list(built) and before == after:
        yield f"its {what}s stand in another order"


def _of_names(what: str, before: Mapping[str, Model], after: Mapping[str, Model]) -> Iterator[str]:
    for name in sorted(before.keys() - after.keys()):
        yield f"it has no {what} {name!r}"
    for name in sorted(after.keys() - before.keys()):
        yield f"its {what} {name!r} does not stand here"
    for name in sorted(before.keys() & after.keys()):
        fields = [key for key, value in before[name] if dict(after[name]).get(key) != value]
        shown = ", ".join(type(before[name]).model_fields[key].alias or key for key in fields)
        if shown:
            yield f"its {what} {name!r} differs in {shown}"


def _by_name(parts: Sequence[Model]) -> Mapping[str, Model]:
    return {_name(part): part for part in parts}


def _name(part: Model) -> str:
    match part:
        case SourceSpec() | StepSpec():
            return part.name
        case SinkSpec():
            return f"{part.from_} → {part.topic or part.topic_by}"
    raise TypeError(f"no part of a topology: {part!r}")
