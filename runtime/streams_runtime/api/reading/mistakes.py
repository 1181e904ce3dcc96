"""From pydantic's errors to mistakes that say what was found and what would do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from streams_runtime.api.reading.field_paths import path
from streams_runtime.api.reading.not_yet import NOT_YET_FIELDS
from streams_runtime.api.reading.store_fields import REASONS, STORE_FIELDS
from streams_runtime.api.reading.unsafe_fields import UNSAFE_FIELDS
from streams_runtime.api.spec.spec_model import Model
from streams_runtime.errors import Mistake

_EXPECTED = {
    "string_type": "give text; a value that YAML reads as something else belongs in quotes",
    "int_type": "give a whole number, without quotes",
    "int_from_float": "give a whole number",
    "bool_type": "give true or false, without quotes",
    "list_type": "give a list",
    "tuple_type": "give a list",
    "dict_type": "give fields with values",
    "model_type": "give fields with values",
    "model_attributes_type": "give fields with values",
    "string_too_short": "give at least one character",
    "too_short": "give at least {min_length}",
    "literal_error": "give {expected}",
    "greater_than_equal": "give at least {ge}",
    "less_than_equal": "give at most {le}",
}


_CUT = "is what stands behind a comma, at which YAML ends a value within { }"
_QUOTED = 'write the whole expression in quotes, as in {where: "coalesce(amount, 0) > 1"}, or give it a line of its own'


def suggestion(name: str, known: Iterable[str]) -> str:
    """`did you mean 'x'?` for the nearest of the known names, else a list of them."""
    names = [str(each) for each in dict.fromkeys(known)]
    by_lower = {each.lower(): each for each in reversed(names)}
    near = get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    if near:
        return f"did you mean {by_lower[near[0]]!r}?"
    return f"known here: {', '.join(names)}" if names else "there is none to choose from"


def shown(value: object) -> str:
    """`value` as it stands in the file, cut where it is long."""
    if value is None:
        return "nothing"
    text = str(value).lower() if isinstance(value, bool) else _written(value)
    if isinstance(value, Mapping):
        text = f"fields ({', '.join(map(str, value)) or 'none'})"
    elif isinstance(value, list | tuple):
        text = f"a list of {len(value)}"
    return text if len(text) <= 80 else text[:77] + "..."


def _written(value: object) -> str:
    try:
        return repr(value)
    except ValueError:  # Python writes no more than 4,300 digits
        return "a number of more than 4,300 digits"


def from_validation(error: ValidationError, model: type[Model]) -> list[Mistake]:
    """Every error of one validation of a whole `model`."""
    return [_mistake(details, model) for details in error.errors(include_url=False)]


def _mistake(details: ErrorDetails, model: type[Model]) -> Mistake:
    kind, loc, context = details["type"], details["loc"], details.get("ctx", {})
    where = path(*(token for token in loc if token != "[key]"))
    found = f"found {shown(details['input'])}"
    if kind == "invalid_key":
        name = "null" if details["input"] is None else shown(details["input"])
        return Mistake(
            path(*loc[:-1]) or "the resource", f"a field's name is {name}, which is no text", "write the name in quotes"
        )
    if kind in ("extra_forbidden", "string_type") and details["input"] is None and _is_rest(str(loc[-1])):
        return Mistake(where, _CUT, _QUOTED)
    if kind == "extra_forbidden":
        return _unknown_field(model, loc, where)
    if kind == "missing":
        return Mistake(where, "is missing", _describe(model, loc))
    if kind == "refused":
        return Mistake(where, context["found"], context["remedy"])
    remedy = _EXPECTED.get(kind, details["msg"][:1].lower() + details["msg"][1:])
    remedy = _key_for(details) or remedy.format(**context) + _example(details, model)
    return _of_store(details, where) or Mistake(where, found, remedy)


def _of_store(details: ErrorDetails, where: str) -> Mistake | None:
    """What a store that is given as a mapping in place of its name is to have and can't; None for anything else."""
    given = details["input"]
    if details["loc"][-1] != "store" or not isinstance(given, Mapping):
        return None
    field = next((each for each in REASONS if each in given), None)
    return None if field is None else Mistake(f"{where}.{field}", *REASONS[field])


def _is_rest(name: str) -> bool:
    """Whether a field's name is what stands behind a comma within brackets: it closes more than it opens."""
    return any(name.count(closes) > name.count(opens) for opens, closes in ("()", "[]"))


def _key_for(details: ErrorDetails) -> str:
    """The expression to write for a key that is given as a list of columns; empty for anything else."""
    given = details["input"]
    if details["loc"][-1] not in ("keyBy", "groupBy") or not isinstance(given, list):
        return ""
    if not given or not all(isinstance(each, str) for each in given):
        return ""
    key = given[0] if len(given) == 1 else f"struct({', '.join(given)}), whose fields are the key"
    return f"give one expression: {key}"


def _example(details: ErrorDetails, model: type[Model]) -> str:
    """Which fields something takes that was given as something else.

    Where one field has to be given, a text in place of the whole is often its value.
    """
    given, inner = details["input"], model_at(model, details["loc"])
    if details["type"] == "dict_type" and (meaning := _description(model, details["loc"])):
        return f" ({meaning.split('. ')[0]})"
    if details["type"] != "model_type" or not isinstance(given, str) or inner is None:
        return ""
    needed = [field.alias or name for name, field in inner.model_fields.items() if field.is_required()]
    return f": {{{needed[0]}: {given}}}" if len(needed) == 1 else ""


def _describe(model: type[Model], loc: Sequence[int | str]) -> str:
    meaning = _description(model, loc)
    return f"give it: {meaning}" if meaning else "give it"


def _description(model: type[Model], loc: Sequence[int | str]) -> str:
    """What a field means, as the reference says it, to stand within a sentence; empty where it does not."""
    parent = model_at(model, loc[:-1])
    for name, field in parent.model_fields.items() if parent else ():
        if (field.alias or name) == loc[-1] and field.description:
            return f"{field.description[:1].lower()}{field.description[1:].rstrip('.')}"
    return ""


def _unknown_field(model: type[Model], loc: Sequence[int | str], where: str) -> Mistake:
    parent, name = model_at(model, loc[:-1]), str(loc[-1])
    not_yet = NOT_YET_FIELDS.get((parent.__name__ if parent else "", name))
    if not_yet is not None:
        return Mistake(where, f"{name} is not there yet", not_yet)
    owned = (parent.__name__ if parent else "", name)
    said = UNSAFE_FIELDS.get(owned) or STORE_FIELDS.get(owned)
    if said is not None:
        return Mistake(where, *said)
    known = [field.alias or key for key, field in parent.model_fields.items()] if parent else []
    return Mistake(where, "no such field", suggestion(name, known))


def model_at(model: type[Model], loc: Sequence[int | str]) -> type[Model] | None:
    """The model that describes the place `loc` inside a `model`; None where no model does."""
    current: Any = model
    for token in loc:
        if isinstance(current, type) and issubclass(current, Model):
            annotations = {field.alias or name: field.annotation for name, field in current.model_fields.items()}
            current = annotations.get(str(token))
        else:
            current = _element(current)
        current = _without_none(current)
    return current if isinstance(current, type) and issubclass(current, Model) else None


def _without_none(annotation: Any) -> Any:
    inner = [arg for arg in get_args(annotation) if arg is not type(None)]
    return inner[0] if type(None) in get_args(annotation) and len(inner) == 1 else annotation


def _element(annotation: Any) -> Any:
    args = [arg for arg in get_args(annotation) if arg is not Ellipsis]
    return args[-1] if args else None
