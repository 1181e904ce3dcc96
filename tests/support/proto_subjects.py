"""What the registry of tests does with Protobuf: parses it, compares it, and gives it as descriptors."""

from __future__ import annotations

import base64
import binascii

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message import DecodeError

from streams_runtime.api.schemas.proto_resolution import mismatches
from streams_runtime.api.schemas.proto_schema import compiled, messages_by_name


def descriptor_of(text: str) -> FileDescriptorProto:
    """The file, from text or, as clients in Python send it, from a descriptor in base64; without a name.

    Raises ValueError.
    """
    try:
        found = FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError, DecodeError):
        files, problems = compiled(text)
        if problems:
            raise ValueError(problems[0].found) from None
        found = files.file[-1]
    copy = FileDescriptorProto()
    copy.CopyFrom(found)
    copy.ClearField("name")
    return copy


def serialized_form(text: str) -> str:
    """The answer to `format=serialized`."""
    return base64.b64encode(descriptor_of(text).SerializeToString()).decode()


def follows(new: str, last: str) -> bool:
    """Whether data of the last schema's first message can be read with that of the new one."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    files = [descriptor_of(each) for each in (new, last)]
    ours, theirs = (messages_by_name(FileDescriptorSet(file=[each])) for each in files)
    names = [f".{each.package}.{each.message_type[0].name}".replace("..", ".") for each in files]
    return not mismatches(names[1], theirs, names[0], ours)
