"""What a schema of the registry refers to under other subjects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import Schema, SchemaReference

_MOST = 200  # schemas; a registry allows any number, and each is a question


@dataclass(frozen=True, slots=True)
class ReferencedSchema:
    """Such a schema: its name where it is referred to (a .proto's file, an Avro type, a URI of JSON), and its text."""

    name: str
    text: str


class UnresolvedReference(Exception):
    """It can't be had. The message says why, in words about the schema that refers to it."""


def referenced(
    references: Sequence[SchemaReference], version: Callable[[str, int], Schema | None]
) -> tuple[ReferencedSchema, ...]:
    """All that there is to know for it, each before what refers to it. `version` asks for a version of a subject.

    Raises:
        UnresolvedReference: one that the registry does not have, two of one name, or more than can be asked for.
    """
    met: dict[str, tuple[str, int]] = {}
    found: list[ReferencedSchema] = []

    def take(several: Sequence[SchemaReference]) -> None:
        for each in several:
            name, place = each.name or "", (each.subject or "", each.version or 0)
            if met.setdefault(name, place) != place:
                raise UnresolvedReference(
                    f"it refers to two schemas as {name}: {_shown(met[name])} and {_shown(place)}"
                )
            if len(met) > _MOST:
                raise UnresolvedReference(f"it refers to more than {_MOST} schemas")
            if name in begun:
                continue
            begun.add(name)
            schema = version(*place)
            if schema is None:
                raise UnresolvedReference(f"it refers to {_shown(place)} as {name}, which the registry does not have")
            take(schema.references or ())
            found.append(ReferencedSchema(name, schema.schema_str or ""))

    begun: set[str] = set()
    take(references)
    return tuple(found)


def _shown(place: tuple[str, int]) -> str:
    return f"the version {place[1]} of the subject {place[0]}"
