"""Whether a Python value fits a schema, and the form in which JSON holds it.

Spark reads what does not fit as a broken record, and leaves out what it does not know: a test is to hear of its own
slips before.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from streams_runtime.api.reading.mistakes import shown, suggestion
from streams_runtime.pipeline.formats.plain_ddl import Kind
from streams_runtime.state.serdes import SerdeException

_BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64}
_NUMBER = (int, float)
_PLAIN: Mapping[str, tuple[tuple[type, ...], str]] = {
    "string": ((str,), "a str"),
    "boolean": ((bool,), "True or False"),
    "double": (_NUMBER, "a float or an int"),
    "float": (_NUMBER, "a float or an int"),
    "decimal": ((*_NUMBER, Decimal), "a Decimal, an int or a float"),
    "binary": ((bytes,), "bytes"),
}


def fitted(value: object, kind: Kind, where: str) -> object:
    """`value` as JSON writes it for this type; None fits every type.

    Raises:
        SerdeException: it does not fit; the message begins with `where`, the place of the value.
    """
    if value is None:
        return None
    if isinstance(kind, Mapping):
        return _nested(value, kind, where)
    if kind in _BITS:
        return _whole(value, kind, where)
    if kind in ("date", "timestamp", "timestamp_ntz"):
        return _time(value, kind, where)
    return _plain(value, kind, where)


def _nested(value: object, kind: Mapping[str, Any], where: str) -> object:
    if kind["type"] == "array":
        if not isinstance(value, Sequence) or isinstance(value, str | bytes):
            raise _unfit(value, where, "array", "a list")
        return [fitted(each, kind["elementType"], f"{where}[{at}]") for at, each in enumerate(value)]
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise _unfit(value, where, kind["type"], "a dict whose keys are names")
    if kind["type"] == "map":
        return {name: fitted(each, kind["valueType"], f"{where}[{name!r}]") for name, each in value.items()}
    fields = {field["name"]: field["type"] for field in kind["fields"]}
    for name in value:
        if name not in fields:
            raise SerdeException(f"{where} has no column {name!r} in its schema; {suggestion(name, fields)}")
    return {name: fitted(each, fields[name], f"{where}.{name}") for name, each in value.items()}


def _whole(value: object, kind: str, where: str) -> object:
    limit = 2 ** (_BITS[kind] - 1)
    if isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit:
        return value
    raise _unfit(value, where, kind, f"an int from {-limit} to {limit - 1}")


def _time(value: object, kind: str, where: str) -> object:
    """Text passes, and so does the number of seconds that Spark takes for a TIMESTAMP."""
    if isinstance(value, str):
        return value
    if kind == "date":
        if isinstance(value, date) and not isinstance(value, datetime):
            return value.isoformat()
        raise _unfit(value, where, kind, "a date")
    zoned = kind == "timestamp"
    if isinstance(value, datetime) and (value.utcoffset() is not None) == zoned:
        return value.isoformat()
    if zoned and isinstance(value, int) and not isinstance(value, bool):
        return value
    raise _unfit(value, where, kind, f"a datetime with{'' if zoned else 'out'} a time zone")


def _plain(value: object, kind: str, where: str) -> object:
    """Spark judges its rarer types by itself."""
    classes, remedy = _PLAIN.get(kind.partition("(")[0], ((object,), ""))
    if not isinstance(value, classes) or (isinstance(value, bool) and int in classes):
        raise _unfit(value, where, kind, remedy)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value) if isinstance(value, Decimal) else value


def _unfit(value: object, where: str, kind: str, remedy: str) -> SerdeException:
    found = f"{shown(value)} ({type(value).__name__})"
    return SerdeException(f"{where} is {found}, which is no {kind.upper()}; give {remedy}")
