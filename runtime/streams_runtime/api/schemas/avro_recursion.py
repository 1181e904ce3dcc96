"""Schemas of which a record can be made that nothing can read to its end: it would take the process with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_NO_BYTES = "null"
_NAMED = ("record", "error", "enum", "fixed")


def hostile(document: object) -> str | None:
    """Why records of this Avro schema, as JSON has it, are not to be read; None: each has an end.

    - A record inside of itself may be nested as often as a record has bytes, and those who read it (Avro's Java,
      fastavro) call themselves for each time: the stack has an end, and with it the process.
    - An array of items without bytes (null, a fixed of size 0) may say that it has 2^62 of them.

    `document` is a schema that parses; of any other the answer says nothing.
    """
    return _Walk().look(document, "")


class _Walk:
    def __init__(self) -> None:
        self._open: list[str] = []
        self._without_bytes: set[str] = {_NO_BYTES}

    def look(self, document: Any, namespace: str) -> str | None:
        """What is wrong with a schema inside of the open records."""
        if isinstance(document, str):
            name = _full(document, namespace)
            return f"the record {name} stands inside of itself" if name in self._open else None
        if isinstance(document, list):
            return _first(self.look(each, namespace) for each in document)
        if not isinstance(document, Mapping):
            return None
        kind = document.get("type")
        if kind in _NAMED:
            return self._look_at_named(document, namespace)
        inside = document.get({"array": "items", "map": "values"}.get(str(kind), "type"))
        wrong = self.look(inside, namespace)
        if wrong is None and kind == "array" and self._has_no_bytes(inside, namespace):
            wrong = "the items of an array have no bytes"
        return wrong

    def _look_at_named(self, document: Mapping[str, Any], namespace: str) -> str | None:
        name = _name_of(document, namespace)
        fields = document.get("fields") if document.get("type") in ("record", "error") else None
        types = [each.get("type") for each in fields or () if isinstance(each, Mapping)]
        inside = name.rpartition(".")[0]
        self._open.append(name)
        wrong = _first(self.look(each, inside) for each in types)
        self._open.pop()
        if document.get("size") == 0 or (
            fields is not None and all(self._has_no_bytes(each, inside) for each in types)
        ):
            self._without_bytes.add(name)
        return wrong

    def _has_no_bytes(self, document: Any, namespace: str) -> bool:
        """Whether a schema that was looked at has values of no bytes: unions, arrays and maps say which or how many."""
        if isinstance(document, Mapping):
            kind = document.get("type")
            if kind in _NAMED:
                return _name_of(document, namespace) in self._without_bytes
            return kind not in ("array", "map") and self._has_no_bytes(kind, namespace)
        return isinstance(document, str) and _full(document, namespace) in self._without_bytes


def _name_of(document: Mapping[str, Any], namespace: str) -> str:
    """The full name of a record, an enum or a fixed; its own namespace goes before the one that it stands in."""
    given = document.get("namespace")
    return _full(str(document.get("name")), namespace if given is None else str(given))


def _full(name: str, namespace: str) -> str:
    """The name with its namespace; those of Avro's own types have none."""
    return name if "." in name or not namespace or name in _OWN else f"{namespace}.{name}"


_OWN = frozenset({_NO_BYTES, "boolean", "int", "long", "float", "double", "bytes", "string"})


def _first(found: Iterable[str | None]) -> str | None:
    return next((each for each in found if each is not None), None)
