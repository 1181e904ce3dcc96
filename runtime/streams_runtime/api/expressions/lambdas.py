"""Functions that take lambdas: what their parameters are, and the type of the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from streams_runtime.api.expressions.coercion import is_ordered
from streams_runtime.api.expressions.spark_types import BOOLEAN, INT, UNSURE, SparkType, array, map_of

Kinds = Sequence[SparkType]
Body = Callable[[Sequence[SparkType | None]], SparkType | None]
"""The type of a lambda's body, given the types of its parameters."""
Rule = Callable[[Kinds, Sequence[Body]], SparkType | None]


def _element(kinds: Kinds, bodies: Sequence[Body], count: int = 1) -> SparkType | None:
    """The element of the array that is the first of so many arguments; None: these are not the arguments."""
    fits = len(kinds) == count and len(bodies) == 1 and kinds[0].name == "array"
    return kinds[0].parts[0] if fits else None


def _transform(kinds: Kinds, bodies: Sequence[Body]) -> SparkType | None:
    element = _element(kinds, bodies)
    if element is None:
        return None
    found = bodies[0]((element, INT))
    return None if found is None else array(found)


def _filter(kinds: Kinds, bodies: Sequence[Body]) -> SparkType | None:
    element = _element(kinds, bodies)
    return kinds[0] if element is not None and bodies[0]((element, INT)) == BOOLEAN else None


def _tests(kinds: Kinds, bodies: Sequence[Body]) -> SparkType | None:
    element = _element(kinds, bodies)
    return BOOLEAN if element is not None and bodies[0]((element,)) == BOOLEAN else None


def _aggregate(kinds: Kinds, bodies: Sequence[Body]) -> SparkType | None:
    if len(kinds) != 2 or kinds[0].name != "array" or len(bodies) not in (1, 2):
        return None
    state = kinds[1]
    merged = bodies[0]((state, kinds[0].parts[0]))
    if merged != state:
        return None
    return bodies[1]((state,)) if len(bodies) == 2 else state


def _of_entries(result: Callable[[SparkType, SparkType | None], SparkType]) -> Rule:
    """A function of a map, whose result is made of the map and the body."""

    def rule(kinds: Kinds, bodies: Sequence[Body]) -> SparkType | None:
        if len(kinds) != 1 or len(bodies) != 1 or kinds[0].name != "map":
            return None
        body = bodies[0](kinds[0].parts)
        return None if body is None else result(kinds[0], body)

    return rule


def _keys(holder: SparkType, body: SparkType | None) -> SparkType:
    atomic = body is not None and not body.parts and is_ordered(body) and body.name != "void"
    return map_of(body, holder.parts[1]) if atomic and body is not None else UNSURE


LAMBDAS: Mapping[str, Rule] = {
    "transform": _transform,
    "filter": _filter,
    "exists": _tests,
    "forall": _tests,
    "aggregate": _aggregate,
    "reduce": _aggregate,
    "map_filter": _of_entries(lambda holder, body: holder if body == BOOLEAN else UNSURE),
    "transform_values": _of_entries(lambda holder, body: map_of(holder.parts[0], body) if body else UNSURE),
    "transform_keys": _of_entries(_keys),
}
"""By name; the lambdas are the last arguments."""
