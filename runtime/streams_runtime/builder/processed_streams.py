"""Processors of one's own as a step of a builder's streams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from streams_runtime.builder.flow import Flow
from streams_runtime.builder.function_names import reference_of


class ProcessedFlow(Flow):
    """A stream whose records a class in Python may process."""

    def process(
        self,
        processor: type[Any] | str,
        value: str,
        *,
        name: str,
        key: str | None = None,
        stores: Mapping[str, tuple[str, str]] | None = None,
    ) -> Self:
        """Give each record to an object of a class, one for each task (KStream#process, KIP-820).

        `processor` is the class, or its `package.module:Class`. `value` are the columns of what it forwards, as Spark
        DDL, and `key` the type of its keys; without `key` each record keeps its own (KStream#processValues). `stores`
        are its key-value stores by name: the type of their keys, and the columns of their values. Raises as every
        method of Flow does.
        """
        reference = processor if isinstance(processor, str) else reference_of(processor)
        declared = {store: {"key": kind, "value": columns} for store, (kind, columns) in (stores or {}).items()}
        step = {"python": reference, "value": value, "key": key, "stores": declared or None}
        return self._also("process", name, {"process": step})
