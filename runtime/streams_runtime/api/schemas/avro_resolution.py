"""Whether data of one Avro schema can be read with another, and if not, for which fields: Avro's own rules."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator

from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType
from avro.schema import Field, RecordSchema, Schema, UnionSchema, parse


def mismatches(writer: str, reader: str) -> list[str]:
    """What keeps data written with one schema from being read with another, each with its field; none where it can.

    The names of the outermost records do not matter.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a logical type that is not taken notice of
        ours, theirs = parse(named_as(reader, writer)), parse(writer)
    return list(_differences(ours, theirs, ""))


def named_as(reader: str, writer: str) -> str:
    """The reader's schema with the outermost name of the writer's, where both have one."""
    ours, theirs = json.loads(reader), json.loads(writer)
    if not isinstance(ours, dict) or not isinstance(theirs, dict) or "name" not in ours or "name" not in theirs:
        return reader
    renamed = {name: value for name, value in ours.items() if name not in ("name", "namespace")}
    return json.dumps(renamed | {name: theirs[name] for name in ("name", "namespace") if name in theirs})


def _differences(reader: Schema, writer: Schema, at: str) -> Iterator[str]:
    if _compatible(reader, writer):
        return
    ours, theirs = _without_null(reader), _without_null(writer)
    if isinstance(ours, RecordSchema) and isinstance(theirs, RecordSchema) and _inside(ours, theirs):
        for field in ours.fields:
            where = f"{at}.{field.name}" if at else field.name
            written = _written(field, theirs)
            if written is not None:
                yield from _differences(field.type, written.type, where)
            elif not field.has_default:
                yield f"the field {where} is not in the data, and has no default"
        return
    place = f"the field {at}" if at else "it"
    yield f"{place} was written as {_shown(writer)} and is read as {_shown(reader)}"


def _inside(reader: RecordSchema, writer: RecordSchema) -> bool:
    """Whether the difference of two records is in their fields, and not in their names or in null."""
    pairs = ((field, _written(field, writer)) for field in reader.fields)
    return any(
        not field.has_default if written is None else not _compatible(field.type, written.type)
        for field, written in pairs
    )


def _written(field: Field, writer: RecordSchema) -> Field | None:
    aliases = field.get_prop("aliases")
    names = (field.name, *(aliases if isinstance(aliases, list) else ()))
    return next((writer.fields_dict[name] for name in names if name in writer.fields_dict), None)


def _compatible(reader: Schema, writer: Schema) -> bool:
    checker = ReaderWriterCompatibilityChecker()  # type: ignore[no-untyped-call]
    found = checker.get_compatibility(reader, writer)
    return found.compatibility is SchemaCompatibilityType.compatible


def _without_null(schema: Schema) -> Schema:
    if isinstance(schema, UnionSchema):
        others = [each for each in schema.schemas if each.type != "null"]
        return others[0] if len(others) == 1 else schema
    return schema


def _shown(schema: Schema) -> str:
    if isinstance(schema, UnionSchema):
        return " or ".join(_shown(each) for each in schema.schemas)
    return str(getattr(schema, "fullname", None) or schema.type)
