"""Processors of one's own as a step of a builder's streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self, overload

from streams_runtime.builder.branches import NamedStreams
from streams_runtime.builder.flow import Flow
from streams_runtime.builder.function_names import reference_of
from streams_runtime.builder.window_arguments import Time

Store = tuple[str, str] | tuple[str, str, Mapping[str, Time] | Mapping[Literal["session"], Mapping[str, Time]]]
"""Of a store the type of its keys, the columns of its values, and its windows or sessions, if it has some."""


class ProcessedFlow(Flow):
    """A stream whose records a class in Python may process."""

    @overload
    def process(
        self,
        processor: type[Any] | str,
        value: str,
        *,
        name: str,
        key: str | None = None,
        stores: Mapping[str, Store] | None = None,
    ) -> Self: ...

    @overload
    def process(
        self,
        processor: type[Any] | str,
        value: str,
        *,
        name: str,
        key: str | None = None,
        stores: Mapping[str, Store] | None = None,
        outputs: Sequence[str],
    ) -> NamedStreams[Self]: ...

    def process(
        self,
        processor: type[Any] | str,
        value: str,
        *,
        name: str,
        key: str | None = None,
        stores: Mapping[str, Store] | None = None,
        outputs: Sequence[str] | None = None,
    ) -> Self | NamedStreams[Self]:
        """Give each record to an object of a class, one for each task (KStream#process, KIP-820).

        `processor` is the class, or its `package.module:Class`; it has `process`, or `process_batch`. `value` are the
        columns of what it forwards, as Spark DDL, and `key` the type of its keys; without `key` each record keeps its
        own (KStream#processValues). `stores` are its stores by name: the type of their keys, the columns of their
        values, and of window stores their windows, such as {"size": "1m", "retention": "1h"}, of session stores
        {"session": {"retention": "1h"}}. With `outputs`, the names of its outputs, the result has a stream for each:
        `parts["large"]`. Raises as every method of Flow does.
        """
        reference = processor if isinstance(processor, str) else reference_of(processor)
        declared = {name: _declared(*each) for name, each in (stores or {}).items()}
        step = {"python": reference, "value": value, "key": key, "outputs": outputs, "stores": declared or None}
        made = self._also("process", name, {"process": step})
        if outputs is None:
            return made
        return NamedStreams(name, lambda output: type(self)(self._recording, output), outputs)


def _declared(key: str, value: str, kept: Mapping[Any, Any] | None = None) -> dict[str, Any]:
    window = dict(kept or {})
    session = window.pop("session", None)
    has_window = bool(window) or (kept is not None and session is None)
    return {"key": key, "value": value, "window": window if has_window else None, "session": session}
