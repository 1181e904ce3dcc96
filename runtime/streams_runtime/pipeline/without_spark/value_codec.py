"""Values of the scan's plans as JSON: what is read back is made of the classes named here, and of nothing else."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streams_runtime.pipeline.formats.json_read import JsonReader
from streams_runtime.pipeline.pushdown.after_join import AfterJoin
from streams_runtime.pipeline.pushdown.arrow_plans import Aggregate, Plan, RowPlan
from streams_runtime.pipeline.pushdown.partial_columns import Stage
from streams_runtime.pipeline.pushdown.scanned_records import Formats
from streams_runtime.pipeline.pushdown.single_rows import RowStage, TableStage
from streams_runtime.pipeline.pushdown.taken_over import ToAggregate, ToMatch, ToTable
from streams_runtime.topology.nodes.plan_node import PlanNode
from streams_runtime.topology.nodes.window_kinds import TimeWindows
from streams_runtime.topology.plan import Topology

_CLASSES: Mapping[str, Any] = {
    each.__name__: each
    for each in (
        *(ToAggregate, ToTable, ToMatch, AfterJoin),
        *(Stage, RowStage, TableStage, Formats, JsonReader),
        *(Plan, RowPlan, Aggregate, TimeWindows),
    )
}
_CLASS = "class"


def encoded(value: Any) -> Any:
    """The value as JSON has it. Nodes go by their names. Raises TypeError: it is of a class that is not named here."""
    match value:
        case None | bool() | int() | str():
            return value
        case tuple() | list():
            return [encoded(each) for each in value]
    kind = type(value).__name__
    content: dict[str, Any] = {}
    match value:
        case PlanNode():
            kind, content = "node", {"name": value.name}
        case pa.Schema():
            kind, content = "schema", {"bytes": text_of_schema(value)}
        case pa.DataType():
            kind, content = "type", {"bytes": text_of_schema(pa.schema([("", value)]))}
        case pc.Expression():
            (data,) = value.__reduce__()[1]
            kind, content = "expression", {"bytes": b64encode(data).decode()}
        case frozenset():
            kind, content = "set", {"items": sorted(value)}
        case Mapping():
            kind, content = "mapping", {"items": [[name, encoded(each)] for name, each in value.items()]}
        case _ if _CLASSES.get(kind) is type(value):
            content = {each.name: encoded(getattr(value, each.name)) for each in fields(value)}
        case _:
            raise TypeError(f"{kind} is not kept")
    return {_CLASS: kind, **content}


def decoded(data: Any, topology: Topology) -> Any:
    """The reverse of `encoded`; lists become tuples.

    Raises what a document that `encoded` did not write leads to: KeyError, TypeError, ValueError (pyarrow's
    exceptions are such), TopologyException: a node that the topology does not have.
    """
    match data:
        case list():
            return tuple(decoded(each, topology) for each in data)
        case dict():
            return _made(data[_CLASS], {name: each for name, each in data.items() if name != _CLASS}, topology)
        case _:
            return data


def _made(kind: str, content: Mapping[str, Any], topology: Topology) -> Any:
    found: Any
    match kind:
        case "node":
            found = topology.node(content["name"])
        case "schema":
            found = schema_of(content["bytes"])
        case "type":
            found = schema_of(content["bytes"]).field(0).type
        case "expression":
            found = pc.Expression._deserialize(pa.py_buffer(b64decode(content["bytes"], validate=True)))
        case "set":
            found = frozenset(content["items"])
        case "mapping":
            found = {name: decoded(each, topology) for name, each in content["items"]}
        case _:
            found = _CLASSES[kind](**{field: decoded(each, topology) for field, each in content.items()})
    return found


def text_of_schema(schema: pa.Schema) -> str:
    """A schema as text."""
    return b64encode(schema.serialize()).decode()


def schema_of(text: str) -> pa.Schema:
    """The reverse of `text_of_schema`. Raises ValueError."""
    return pa.ipc.read_schema(pa.py_buffer(b64decode(text, validate=True)))
