"""Whether two texts are one schema: registries compare texts, and two that mean the same may differ in blanks."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable
from typing import Any

from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto
from google.protobuf.message import DecodeError

from streams_runtime.api.schemas.proto_schema import compiled

_ANNOTATIONS = ("title", "description", "$comment", "examples")
# What stands behind these keywords of a JSON Schema are values, and schemas by names that a user gave.
_VALUES = ("const", "enum", "default", "required")
_BY_NAME = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies")


def same_schema(kind: str, one: str, other: str) -> bool:
    """Whether data and columns of both are the same; comments and the order of keys are not.

    `kind` is AVRO, PROTOBUF or JSON.
    """
    read = {"AVRO": _avro, "PROTOBUF": _proto, "JSON": _json_schema}[kind]
    ours = read(one)
    return ours is not None and ours == read(other)


def descriptor_in(text: str) -> FileDescriptorProto | None:
    """The file that a client in Python registers, a descriptor in base64; None for the text of a .proto."""
    try:
        return FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError, DecodeError):
        return None


def _avro(text: str) -> Any:
    try:
        return _undocumented(json.loads(text))
    except (ValueError, RecursionError):
        return None


def _undocumented(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_undocumented(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.keys() - {"doc"} == {"type"}:
        return _undocumented(schema["type"])
    kept = {name: value for name, value in schema.items() if name != "doc"}
    # A default is a value and no schema, whatever its keys are.
    return {name: value if name == "default" else _undocumented(value) for name, value in kept.items()}


def _json_schema(text: str) -> str | None:
    try:
        # As text, in which 1 and true are apart.
        return json.dumps(_unannotated(json.loads(text)), sort_keys=True)
    except (ValueError, RecursionError):
        return None


def _unannotated(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_unannotated(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: value for name, value in schema.items() if name not in _ANNOTATIONS}
    return {name: _inside(name, value) for name, value in kept.items()}


def _inside(keyword: str, value: Any) -> Any:
    if keyword in _VALUES:
        return value
    if keyword in _BY_NAME and isinstance(value, dict):
        return {name: _unannotated(each) for name, each in value.items()}
    return _unannotated(value)


def _proto(text: str) -> bytes | None:
    given = descriptor_in(text)
    if given is None:
        files, problems = compiled(text)
        if problems:
            return None
        given = files.file[-1]
    file = FileDescriptorProto()
    file.CopyFrom(given)
    file.ClearField("name")
    file.ClearField("source_code_info")
    _without_json_names(file.message_type)
    data: bytes = file.SerializeToString(deterministic=True)
    return data


def _without_json_names(messages: Iterable[DescriptorProto]) -> None:
    """Compilers leave them out or fill them in; what they fill in follows from the names."""
    for message in messages:
        for field in message.field:
            field.ClearField("json_name")
        _without_json_names(message.nested_type)
