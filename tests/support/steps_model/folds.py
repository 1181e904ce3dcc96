"""Aggregate functions: what a key's records, in their order, come to."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from steps_model.expressions import evaluate, holds
from steps_model.items import Row

REDUCED = "(state, row) -> (state * 2 + coalesce(row.v, 1)) % 1000"
REDUCE = f"reduce(cast(0 as bigint), {REDUCED})"
REDUCE_SESSIONS = f"reduce(cast(0 as bigint), {REDUCED}, (one, other) -> (one * 3 + other) % 1000)"
LARGEST = "max(struct(v as a, v as b))"
FOLDED = "python('custom_classes:Folded', v)"
TRAIL = "python('custom_classes:Trail', v as a)"


@dataclass(frozen=True, slots=True)
class Fold:
    """One aggregate: a state, how a record is added, how two sessions' states become one, and what is shown."""

    zero: Any
    add: Callable[[Any, Row], Any]
    merge: Callable[[Any, Any], Any]
    result: Callable[[Any], Any] = lambda state: state


def fold_of(text: str) -> Fold:
    """The aggregate that a column's text calls. Raises KeyError for one that the model does not know."""
    if text in _SPECIAL:
        return _SPECIAL[text]
    if (filtered := re.fullmatch(r"(.*) FILTER \(WHERE (.*)\)", text)) is not None:
        return _only_where(fold_of(filtered[1]), filtered[2])
    if (by := re.fullmatch(r"(max_by|min_by|top)\((\w+), (\w+)(?:, (\d+))?\)", text)) is not None:
        name, value, other, most = by.groups()
        return _top(value, other, int(most)) if name == "top" else _by(name, value, other)
    if (distinct := re.fullmatch(r"count\(distinct (.*)\)", text)) is not None:
        return _distinct(distinct[1].split(", "))
    found = re.fullmatch(r"(\w+)\((.*?)(?:, ([0-9.]+))?\)", text)
    assert found is not None, text
    name, argument, parameter = found.groups()
    if argument == "*":
        return Fold(0, lambda state, _: state + 1, lambda one, other: one + other)
    shown = _SHOWN[name]
    # Every value with its record's turn: sessions that become one put them in the order of their records.
    return Fold(
        (),
        lambda state, row: (*state, (row.turn, evaluate(argument, row.env))),
        lambda one, other: tuple(sorted((*one, *other), key=lambda each: each[0])),
        lambda state: shown([value for _, value in state], parameter),
    )


def _only_where(fold: Fold, condition: str) -> Fold:
    """The fold of the records for which a condition is true."""
    return replace(fold, add=lambda state, row: fold.add(state, row) if holds(condition, row.env) else state)


def _top(value: str, by: str, most: int) -> Fold:
    """The values with the greatest `by`, and of several with one `by` the greatest values, null being the least."""

    def shown(pairs: tuple[tuple[Any, Any], ...]) -> list[Any]:
        known = sorted((each for each in pairs if each[0] is not None), key=_with_null_the_least, reverse=True)
        return [value for _, value in known[:most]]

    return replace(_by("max_by", value, by), result=shown)


def _by(which: str, value: str, by: str) -> Fold:
    """max_by or min_by: of several values with the largest or smallest `by` the largest or smallest, null the least."""
    choose = max if which == "max_by" else min

    def shown(pairs: tuple[tuple[Any, Any], ...]) -> Any:
        known = [each for each in pairs if each[0] is not None]
        return choose(known, key=_with_null_the_least)[1] if known else None

    return Fold(
        (),
        lambda state, row: (*state, (evaluate(by, row.env), evaluate(value, row.env))),
        lambda one, other: (*one, *other),
        shown,
    )


def _distinct(expressions: list[str]) -> Fold:
    """count(distinct …) of one expression or of several, none of which is null."""

    def values(row: Row) -> frozenset[Any]:
        found = tuple(evaluate(each, row.env) for each in expressions)
        return frozenset() if None in found else frozenset({found})

    return Fold(frozenset(), lambda state, row: state | values(row), lambda one, other: one | other, len)


def _with_null_the_least(pair: tuple[Any, Any]) -> tuple[Any, ...]:
    by, value = pair
    return (by, False) if value is None else (by, True, value)


def _known(values: list[Any]) -> list[Any]:
    return [value for value in values if value is not None]


def _or_null(function: Callable[[Any], Any]) -> Callable[[list[Any], str | None], Any]:
    """Of no values the function gives null."""
    return lambda values, _: function(known) if (known := _known(values)) else None


def _last_of_each(values: list[Any]) -> list[Any]:
    return list(reversed(dict.fromkeys(reversed(values))))


_SHOWN: Mapping[str, Callable[[list[Any], str | None], Any]] = {
    "sum": _or_null(sum),
    "count": lambda values, _: len(_known(values)),
    "min": _or_null(min),
    "max": _or_null(max),
    "avg": _or_null(lambda known: sum(known) / len(known)),
    "count_if": lambda values, _: sum(_known(values)),
    "bool_and": _or_null(all),
    "bool_or": _or_null(any),
    "any_value": _or_null(min),
    "first": lambda values, _: values[0] if values else None,
    "last": lambda values, _: values[-1] if values else None,
    "var_pop": _or_null(statistics.pvariance),
    "stddev_samp": _or_null(lambda known: statistics.stdev(known) if len(known) > 1 else None),
    "collect_list": lambda values, most: _known(values)[-int(most or 0) :],
    "collect_set": lambda values, most: _last_of_each(_known(values))[-int(most or 0) :],
    "approx_count_distinct": lambda values, _: len(set(_known(values))),
    "approx_percentile": lambda values, part: (
        sorted(known)[max(0, math.ceil(float(part or 0) * len(known)) - 1)] if (known := _known(values)) else None
    ),
}


def _v(row: Row) -> Any:
    return (row.value or {}).get("v")


def _larger(one: dict[str, Any] | None, other: dict[str, Any] | None) -> dict[str, Any] | None:
    known = [each for each in (one, other) if each is not None]
    return max(known, key=lambda each: tuple(each.values()), default=None)


def _reduced(state: int, row: Row) -> int:
    value = state * 2 + (1 if _v(row) is None else _v(row))
    return int(math.fmod(value, 1000))


_SPECIAL: Mapping[str, Fold] = {
    REDUCE: Fold(0, _reduced, lambda one, other: one),
    REDUCE_SESSIONS: Fold(0, _reduced, lambda one, other: int(math.fmod(one * 3 + other, 1000))),
    # Of rows that have a v.
    LARGEST: Fold(None, lambda state, row: _larger(state, {"a": _v(row), "b": _v(row)}), _larger),
    FOLDED: Fold(6, lambda state, row: (state * 31 + (_v(row) or 0)) & 0xFFFFF, lambda one, other: one),
    TRAIL: Fold(
        {"trail": "", "n": 0},
        lambda state, row: {
            "trail": state["trail"] + f",{'null' if _v(row) is None else _v(row)}",
            "n": state["n"] + 1,
        },
        lambda one, other: {"trail": f"[{one['trail']}|{other['trail']}]", "n": one["n"] + other["n"]},
    ),
}
