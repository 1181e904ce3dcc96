"""The fields of a structural schema as sections of a reference: which object has a section, which row tells what."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

Schema = dict[str, Any]

_MOST_INLINE: Final = 3
"""Fields of an object that still stand as rows of the section around it; a larger one has a section of its own."""


@dataclass(frozen=True, slots=True)
class Row:
    """One field. `path` is absolute (`spec.topology.steps[].join`), `name` goes from the section on.

    `fields_at` is the path of the section or row where an object's own fields are listed, None where they follow or
    where there are none. `also` holds the paths of fields that the reference lists only there.
    """

    path: str
    name: str
    node: Schema
    required: bool
    fields_at: str | None = None
    also: tuple[str, ...] = ()


@dataclass(slots=True)
class Section:
    """One object with its fields, and the rules between them as (field, rule); the field is empty for the object."""

    path: str
    description: str
    rows: list[Row] = field(default_factory=list)
    rules: list[tuple[str, Schema]] = field(default_factory=list)


def anchor(path: str) -> str:
    """Where links to a field point: its path as `kubectl explain` takes it."""
    return path.replace("[]", "").replace(".*", "")


def sections(path: str, schema: Schema) -> list[Section]:
    """The sections of an object and of all that is in it, each before those of its fields."""
    return _Walk().sections(path, schema)


def fields(path: str, schema: Schema) -> Iterator[tuple[str, Schema]]:
    """Every field of an object with its path, however deep."""
    for name, node in schema.get("properties", {}).items():
        yield f"{path}.{name}", node
        inner, holder = _holder(f"{path}.{name}", node)
        yield from fields(inner, holder)


def _holder(path: str, node: Schema) -> tuple[str, Schema]:
    """The object whose fields are listed for a node: itself, or what its list or map holds; and its path."""
    while inner := node.get("items") or node.get("additionalProperties"):
        path, node = f"{path}{'[]' if 'items' in node else '.*'}", inner
    return path, node


class _Walk:
    """Remembers the objects that were listed, so that one with the same fields refers to them."""

    def __init__(self) -> None:
        self._listed: dict[str, str] = {}

    def sections(self, path: str, node: Schema) -> list[Section]:
        section = Section(path, node.get("description", ""))
        inner: list[tuple[str, Schema]] = []
        _add_rules(section, path, node)
        self._add_rows(section, inner, path, node)
        return [section, *(each for where, holder in inner for each in self.sections(where, holder))]

    def _add_rows(self, section: Section, inner: list[tuple[str, Schema]], path: str, node: Schema) -> None:
        required = _required(node)
        for name, each in node.get("properties", {}).items():
            where = f"{path}.{name}"
            shown, must = where.removeprefix(f"{section.path}."), name in required
            within, holder = _holder(where, each)
            if known := self._known(within, holder):
                also = tuple(path for path, _ in fields(within, holder))
                section.rows.append(Row(where, shown, each, must, known, also))
                continue
            if holder is not each:
                _add_rules(section, where, each)
            if _has_section(within, holder):
                section.rows.append(Row(where, shown, each, must, within))
                inner.append((within, {"description": each.get("description", "")} | holder))
            else:
                section.rows.append(Row(where, shown, each, must))
                _add_rules(section, within, holder)
                self._add_rows(section, inner, within, holder)

    def _known(self, path: str, holder: Schema) -> str | None:
        """Where an object with the same fields and rules is listed; None for the first of them, and for small ones."""
        if len(holder.get("properties", ())) < 2:
            return None
        content = json.dumps([holder["properties"], holder.get("x-kubernetes-validations")], sort_keys=True)
        first = self._listed.setdefault(content, path)
        return None if first == path else first


def _has_section(path: str, holder: Schema) -> bool:
    """Whether an object's fields stand in a section of its own: all objects of the first level do, and large ones."""
    held = len(holder.get("properties", ()))
    return held > (0 if path.count(".") == 1 else _MOST_INLINE)


def _add_rules(section: Section, path: str, node: Schema) -> None:
    section.rules += [
        (f"{path}{rule.get('fieldPath', '')}".removeprefix(section.path).removeprefix("."), rule)
        for rule in node.get("x-kubernetes-validations", ())
    ]


def _required(node: Schema) -> set[str]:
    """Fields that must be given where the object is, whichever of its forms it has."""
    return {name for each in (node, *node.get("anyOf", ())) for name in each.get("required", ())}
