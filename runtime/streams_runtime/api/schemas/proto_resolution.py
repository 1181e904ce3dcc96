"""Whether data of one Protobuf message can be read as another, and if not, for which fields.

Fields are told apart by their numbers, as Protobuf does it: what one side lacks is left out or has its default. A type
may change where every value of the old one is one of the new one and has the same bytes; Protobuf itself cuts numbers
that are too long, and takes the last of several values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto

from streams_runtime.api.schemas.proto_schema import type_shown

Messages = Mapping[str, DescriptorProto]
"""By full names, which begin with a dot."""

_F = FieldDescriptorProto
_WIDER: Mapping[int, tuple[int, ...]] = {
    _F.TYPE_BOOL: (_F.TYPE_INT32, _F.TYPE_INT64, _F.TYPE_UINT32, _F.TYPE_UINT64),
    _F.TYPE_ENUM: (_F.TYPE_INT32, _F.TYPE_INT64),
    _F.TYPE_INT32: (_F.TYPE_INT64,),
    _F.TYPE_UINT32: (_F.TYPE_INT64, _F.TYPE_UINT64),
    _F.TYPE_SINT32: (_F.TYPE_SINT64,),
    _F.TYPE_STRING: (_F.TYPE_BYTES,),
    _F.TYPE_BYTES: (_F.TYPE_STRING,),  # text that is no UTF-8 is found when it is read
}


def mismatches(writer: str, theirs: Messages, reader: str, ours: Messages) -> list[str]:
    """What keeps data of the message `writer` from being read as `reader`, each with its field; none where it can."""
    return list(_differences(theirs[writer], theirs, ours[reader], ours, ""))


def _differences(
    writer: DescriptorProto, theirs: Messages, reader: DescriptorProto, ours: Messages, at: str
) -> Iterator[str]:
    written = {each.number: each for each in writer.field}
    for field in reader.field:
        where = f"{at}.{field.name}" if at else field.name
        given = written.get(field.number)
        if given is None:
            if field.label == _F.LABEL_REQUIRED:
                yield f"the field {where} is required, and not in the data"
        elif not _readable(given, field):
            yield f"the field {where} was written as {type_shown(given)} and is read as {type_shown(field)}"
        elif field.type == _F.TYPE_MESSAGE:
            yield from _differences(theirs[given.type_name], theirs, ours[field.type_name], ours, where)


def _readable(given: FieldDescriptorProto, field: FieldDescriptorProto) -> bool:
    if given.label == _F.LABEL_REPEATED and field.label != _F.LABEL_REPEATED:
        return False
    return field.type == given.type or field.type in _WIDER.get(given.type, ())
