"""What a JSON Schema makes of its values: one type for each, and the Spark type that stands for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

_SIMPLE: Mapping[str, str] = {
    "boolean": "BOOLEAN",
    "integer": "BIGINT",
    "number": "DOUBLE",
    "string": "STRING",
    "date": "DATE",
    "date-time": "TIMESTAMP",
}


@dataclass(frozen=True, slots=True)
class JsonType:
    """The type of a value; references are resolved, and null is apart.

    `name` is `boolean`, `integer`, `number`, `string`, `date`, `date-time`, `array`, `map` or `object`. `element` is
    what an array or a map holds. `fields` are the properties of an object, of which `required` have to be there.
    """

    name: str
    nullable: bool = False
    element: JsonType | None = None
    fields: Mapping[str, JsonType] = field(default_factory=dict)
    required: frozenset[str] = frozenset()

    @property
    def ddl(self) -> str:
        """The Spark type."""
        if self.name == "object":
            return f"STRUCT<{', '.join(f'`{name}`: {each.ddl}' for name, each in self.fields.items())}>"
        if self.element is None:
            return _SIMPLE[self.name]
        return f"ARRAY<{self.element.ddl}>" if self.name == "array" else f"MAP<STRING, {self.element.ddl}>"
