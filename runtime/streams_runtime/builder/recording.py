"""What a builder was told so far: the topology as it stands in a resource, and the call that each part comes from."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import Any

from streams_runtime.api.reading.field_paths import path
from streams_runtime.api.spec.spec_values import format_duration
from streams_runtime.errors import ConfigException

_HERE = str(Path(__file__).parent)
_SECTIONS = ("sources", "steps", "sinks")


class Recording:
    """Sources, steps and sinks in the order of the calls. Nothing is checked but that values can stand in a resource:
    the checks are those of every topology, so that all mistakes come at once.
    """

    def __init__(self) -> None:
        self._parts: dict[str, list[dict[str, Any]]] = {section: [] for section in _SECTIONS}
        self.origins: dict[str, str] = {}
        """The call that each part comes from, in words, by the path that the part has in a resource."""
        self.functions: dict[str, dict[str, Any]] = {}
        self._names: set[str] = set()

    @property
    def document(self) -> dict[str, Any]:
        """The topology as it stands in a resource."""
        functions = {"functions": plain(self.functions)} if self.functions else {}
        return functions | {section: [plain(each) for each in parts] for section, parts in self._parts.items() if parts}

    def add(self, section: str, method: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Add what the call of `method` makes; fields that are None were not given. Returns the part, which may grow.

        Raises:
            ConfigException: a value can't stand in a resource, such as a Column.
        """
        part = {name: value for name, value in fields.items() if value is not None}
        called = part.get("name", part.get("topic", part.get("topicBy")))
        place = call_place()
        plain(part)
        self.origins[path("spec", "topology", section, len(self._parts[section]))] = f"{place} {method}({called!r})"
        self._parts[section].append(part)
        if section != "sinks":
            self._names.add(str(called))
        return part

    def add_function(self, method: str, name: str, fields: Mapping[str, Any]) -> None:
        """Add a function by its name.

        Raises:
            ConfigException: there is one of this name, or a value can't stand in a resource.
        """
        if name in self.functions:
            raise refused(f"{method} of {name!r}: there is a function of this name already; give it another one")
        self.functions[name] = plain(fields)
        self.origins[path("spec", "topology", "functions", name)] = f"{call_place()} {method}({name!r})"

    def source_name(self, topic: str) -> str:
        """What a source without a name is called: as its topic, with a number behind it if that is read already."""
        read = any(each["topic"] == topic for each in self._parts["sources"])
        return self.derived(topic) if read else topic

    def derived(self, name: str) -> str:
        """`name`, with a number behind it if it is taken: what a step is called whose name nothing else is named for.

        It goes by the step's input, so that a step that is added elsewhere renames nothing.
        """
        taken = (each for each in (name, *(f"{name}-{n}" for n in range(2, len(self._names) + 3))))
        return next(each for each in taken if each not in self._names)


def plain(value: Any) -> Any:
    """The value as JSON has it, lengths of time as text, without what is None.

    Raises:
        ConfigException: it is something else.
    """
    match value:
        case timedelta():
            return format_duration(value)
        case Mapping():
            return {name: plain(each) for name, each in value.items() if each is not None}
        case str() | bool() | int() | float():
            return value
        case Sequence():
            return [plain(each) for each in value]
    raise refused(
        f"found {value!r}; write expressions as Spark SQL text, in which every function of Spark SQL can be"
        " called, and those of the builder's udf and pandas_udf"
    )


def refused(text: str) -> ConfigException:
    """The exception for a call that can't be recorded, with its place in the user's code."""
    return ConfigException(f"{call_place()}: {text}")


def call_place() -> str:
    """File and line of the call in the user's code that led here."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}" if frame is not None else "?"
