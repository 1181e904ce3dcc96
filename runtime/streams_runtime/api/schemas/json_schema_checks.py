"""Checks of the format jsonschema: its schemas, and what is written with them."""

from __future__ import annotations

from collections.abc import Iterator

from streams_runtime.api.flow.known_columns import Columns
from streams_runtime.api.reading.field_paths import under
from streams_runtime.api.reading.mistakes import suggestion
from streams_runtime.api.schemas.json_schema import object_problems, parse_json_schema
from streams_runtime.api.steps.topology_spec import FormatSpec
from streams_runtime.errors import Mistake


def json_read_mistakes(spec: FormatSpec, part: str, path: str, table: bool) -> Iterator[Mistake]:
    """Of a source's key or value (`part`) in the field `path`."""
    if part == "key" and table:
        found = "the keys of a table as jsonschema, whose bytes hold the id of the schema that they were written with"
        yield Mistake(under(path, "format"), found, "use a topic whose keys are string, long, int, bytes or json")
    if spec.schema_ is None:
        found = "is missing; jsonschema that is read needs the reader's schema"
        yield Mistake(under(path, "schema"), found, "give it as JSON")
    else:
        yield from _schema_mistakes(spec.schema_, part, under(path, "schema"))


def json_written_mistakes(spec: FormatSpec, part: str, path: str) -> Iterator[Mistake]:
    """Of a sink's key or value (`part`) in the field `path`."""
    if spec.schema_ is not None:
        yield from _schema_mistakes(spec.schema_, part, under(path, "schema"))


def json_columns_mistakes(text: str, columns: Columns, path: str) -> Iterator[Mistake]:
    """Columns and the properties of the schema in the field `path` that do not meet, when they are written with it."""
    root = parse_json_schema(text).root
    if root is None or root.name != "object":
        return
    names = tuple(root.fields)
    for name in sorted(root.required):
        if name not in columns.names:
            found = f"the property {name!r} is required, and there is no column of this name"
            yield Mistake(path, found, f"take it out of required; {suggestion(name, columns.names)}")
    for name in columns.names:
        if name not in names:
            yield Mistake(path, f"there is no property for the column {name!r}", suggestion(name, names))


def _schema_mistakes(text: str, part: str, path: str) -> Iterator[Mistake]:
    schema = parse_json_schema(text)
    for problem in (*schema.problems, *(object_problems(schema) if part == "value" else ())):
        yield Mistake(path, problem.found, problem.remedy)
