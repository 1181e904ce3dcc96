"""The name under which a pod finds a function that a builder was given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streams_runtime.builder.recording import refused
from streams_runtime.errors import ConfigException
from streams_runtime.user_code import load


def reference_of(function: Callable[..., Any]) -> str:
    """`module:name` of a function.

    Raises:
        ConfigException: it has no such name, so that no other process can find it; or it is not a plain function.
    """
    if hasattr(function, "evalType"):
        raise refused(
            f"found {function!r}, which PySpark has wrapped; give the plain function, and its type as returns"
        )
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    if not callable(function) or module in (None, "__main__") or "<" in name or not name:
        raise refused(f"found {function!r}, which other processes can't import; give a function of a module")
    reference = f"{module}:{name}"
    try:
        found = load(reference)
    except ConfigException as error:
        raise refused(str(error)) from error
    if found is not function:
        raise refused(f"found {function!r}, and {reference} is {found!r}; give it a name of its own")
    return reference
