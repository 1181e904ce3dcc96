"""Which made topologies are refused before they run, and with which words; nothing here needs Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streams_runtime.api.reading.load import accepted
from streams_runtime.builder.resolve_python import read_with_python
from streams_runtime.errors import Mistake
from streams_runtime.topology.aggregate_order import order_mistakes
from streams_runtime.topology.declared.build_topology import build_topology


def refusals(document: Mapping[str, Any]) -> list[Mistake]:
    """Every mistake of a document that `streamsapp validate` finds without Spark; none: it has to run."""
    reading = read_with_python(document)
    return list(reading.mistakes) or list(order_mistakes(build_topology(accepted(reading))))
