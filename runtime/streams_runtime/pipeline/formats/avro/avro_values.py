"""One Avro key or value in Python: for queries, for tests, and to say why one can't be read."""

from __future__ import annotations

import io
import json
from functools import lru_cache
from typing import Any

from fastavro import parse_schema, schemaless_reader
from fastavro.schema import SchemaParseException

from streams_runtime.api.schemas.avro_resolution import mismatches, named_as
from streams_runtime.pipeline.formats.avro.avro_writer_schemas import AvroWriterSchemas
from streams_runtime.pipeline.formats.plain_values import plain
from streams_runtime.pipeline.formats.schema_ids import MAGIC, PREFIX, id_in
from streams_runtime.state.serdes import SerdeException

_BAD_BODY = (EOFError, ValueError, IndexError, TypeError, KeyError, OverflowError, SchemaParseException)


def decoded(data: bytes, reader: str | None, writers: AvroWriterSchemas) -> object:
    """What the bytes stand for, as JSON has it: times as text, bytes in base64, decimals as text.

    `reader` None: as it was written.

    Raises:
        SerdeException: it can't be read; the message says why.
        SchemaRegistryNotAvailableException, SchemaRegistryException: its schema is not known yet.
    """
    wrong = unreadable(data, reader, writers)
    if wrong is not None:
        raise SerdeException(f"avro: {wrong}")
    writer = writers.known[id_in(data) or 0]
    return plain(_resolved(data, writer, reader))


def unreadable(data: bytes, reader: str | None, writers: AvroWriterSchemas) -> str | None:
    """Why the bytes can't be read, in words that follow "it is"; None where they can. Raises as `decoded`."""
    number = id_in(data)
    if number is None:
        begins = f"begins with {data[:PREFIX].hex()}" if data else "has no bytes"
        return f"not Avro with the id of its schema: it {begins}, where a {MAGIC.hex()} byte and four of the id stand"
    problem = writers.problem(number)
    if problem is not None:
        return f"not to be read: {problem}"
    writer = writers.known[number]
    try:
        _resolved(data, writer, None)
    except _BAD_BODY as error:
        found = str(error) or type(error).__name__
        return f"damaged: its bytes are none of the schema {number}, which it names ({found})"
    if reader is not None:
        try:
            _resolved(data, writer, reader)
        except Exception as error:  # fastavro's own kinds are no common class
            found = "; ".join(mismatches(writer, reader)) or str(error)
            return f"of the schema {number}, which can't be resolved into the source's: {found}"
    return None


def _resolved(data: bytes, writer: str, reader: str | None) -> object:
    """The value by the reader's schema. Its outermost name is nothing to Java's resolution, which the pipeline uses."""
    ours = None if reader is None else _fast(named_as(reader, writer))
    value: object = schemaless_reader(io.BytesIO(data[PREFIX:]), _fast(writer), ours)
    return value


@lru_cache(maxsize=256)
def _fast(text: str) -> Any:
    return parse_schema(json.loads(text))
