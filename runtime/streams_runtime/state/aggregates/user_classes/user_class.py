"""A user's class that aggregates: found, made, and looked at before any record comes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streams_runtime.api.flow.known_columns import shown_type
from streams_runtime.api.reading.mistakes import suggestion
from streams_runtime.api.schemas.ddl_schema import parse_schema
from streams_runtime.api.sql.python_aggregates import PYTHON
from streams_runtime.api.sql.state_types import KEPT, not_kept
from streams_runtime.errors import ConfigException, Mistake
from streams_runtime.topology.nodes.aggregate_node import Aggregate
from streams_runtime.user_code import load, where_in

_TYPES = 'give it a Spark type, such as "DOUBLE" or "STRUCT<n: BIGINT, total: DOUBLE>"'


@dataclass(frozen=True, slots=True)
class UserClass:
    """One object of the class, for all records and threads, and what it says of itself in Spark's types.

    `result_type` is None where the state itself is what is seen.
    """

    reference: str
    made: Any
    state_type: str
    result_type: str | None


def user_class(reference: str, merges: bool, base: Path | None = None) -> UserClass:
    """The class that `reference` names; `merges`: it has to have `merge`, as windows by session need it.

    `base` is the folder of the resource's file. Raises ConfigException: the class is not there, can't be made, or lacks
    something; the message ends with what to do.
    """
    found = load(reference, base)
    if not isinstance(found, type):
        raise ConfigException(f"{reference} is no class but {type(found).__name__}; name a class")
    for method in ("zero", "add", *(["merge"] if merges else [])):
        if not callable(getattr(found, method, None)):
            near = suggestion(method, [name for name in vars(found) if not name.startswith("_")])
            why = ", which puts two sessions together that become one" if method == "merge" else ""
            hint = f"{near} " if near.startswith("did you mean") else ""
            raise ConfigException(f"{reference} has no method {method}{why}; {hint}define it")
    state_type = _type(found, reference, "state_type")
    has_result = callable(getattr(found, "result", None))
    if not has_result and hasattr(found, "result_type"):
        raise ConfigException(f"{reference} has a result_type and no method result; define it, or leave the type out")
    result_type = _type(found, reference, "result_type") if has_result else None
    try:
        made = found()
    except Exception as error:
        raise ConfigException(f"{reference}() failed: {where_in(error)}; make it without arguments") from error
    return UserClass(reference, made, state_type, result_type)


def user_class_mistakes(aggregates: Sequence[Aggregate], merges: bool, base: Path | None = None) -> list[Mistake]:
    """What is wrong with the classes of an aggregate step, each at its field; arguments as for `user_class`."""
    mistakes = []
    for each in aggregates:
        if each.function != PYTHON:
            continue
        try:
            user_class(each.parameter or "", merges, base)
        except ConfigException as error:
            found, _, remedy = str(error).partition("; ")
            mistakes.append(Mistake(each.path, found, remedy))
    return mistakes


def _type(found: type, reference: str, name: str) -> str:
    """The Spark type that the class declares under this name."""
    declared = getattr(found, name, None)
    if not isinstance(declared, str):
        what = "has no" if declared is None else f"has {declared!r} as its"
        raise ConfigException(f"{reference} {what} {name}; {_TYPES}")
    columns, problems = parse_schema(f"x {declared}")
    if problems or columns is None or len(columns.names) != 1:
        raise ConfigException(f"{reference} has {declared!r} as its {name}, which is no type; {_TYPES}")
    (column,) = columns
    kind = not_kept(column.type) if column.type is not None else None
    if kind is not None:
        raise ConfigException(
            f"{reference} has {shown_type(kind)} in its {name}, which is not kept yet; declare {KEPT}"
        )
    return declared
