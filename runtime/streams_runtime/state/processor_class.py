"""A user's class that processes records: found, and looked at before any record comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streams_runtime.api.reading.field_paths import under
from streams_runtime.api.reading.mistakes import suggestion
from streams_runtime.errors import ConfigException, Mistake
from streams_runtime.topology.nodes.process_node import ProcessNode
from streams_runtime.user_code import load

_TAKING = ("process", "process_batch")


@dataclass(frozen=True, slots=True)
class ProcessorClass:
    """What makes an object of the class for a task, and which methods it has.

    One that takes batches has `process_batch`, and another one `process`.
    """

    make: Callable[[], Any]
    has_init: bool
    has_close: bool
    takes_batches: bool = False


def processor_class(reference: str, base: Path | None = None) -> ProcessorClass:
    """The class that `reference` names; `base` is the folder of the resource's file. None of its code is called.

    Raises ConfigException: it is not there, or has not either the method process or process_batch; the message ends
    with what to do.
    """
    found = load(reference, base)
    if not isinstance(found, type):
        raise ConfigException(f"{reference} is no class but {type(found).__name__}; name a class")
    takes = [name for name in _TAKING if callable(getattr(found, name, None))]
    if not takes:
        names = [name for name in vars(found) if not name.startswith("_")]
        near = next((each for each in (suggestion(name, names) for name in _TAKING) if each.startswith("did you")), "")
        hint = f"{near} " if near else ""
        raise ConfigException(f"{reference} has no method process; {hint}define it, or process_batch")
    if len(takes) > 1:
        raise ConfigException(f"{reference} has both process and process_batch; define one of the two")
    for name in ("init", "close"):
        if hasattr(found, name) and not callable(getattr(found, name)):
            raise ConfigException(f"{reference} has {name}, which is no method; define it, or give it another name")
    return ProcessorClass(found, hasattr(found, "init"), hasattr(found, "close"), takes == ["process_batch"])


def processor_class_mistakes(node: ProcessNode, base: Path | None = None) -> Iterator[Mistake]:
    """What is wrong with the class of a process step, at its field."""
    try:
        processor_class(node.reference, base)
    except ConfigException as error:
        found, _, remedy = str(error).partition("; ")
        yield Mistake(under(node.path, "process", "python"), found, remedy or "correct it")
