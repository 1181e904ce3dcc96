"""Every metric that an instance shows: `python -m streams_runtime.metrics.catalogue` prints the pages' tables."""

from __future__ import annotations

from typing import Final

from streams_runtime.metrics.definitions.client_definitions import CLIENT
from streams_runtime.metrics.definitions.process_definitions import PROCESS
from streams_runtime.metrics.definitions.processing_definitions import PROCESSING
from streams_runtime.metrics.definitions.restoration_definitions import RESTORATION
from streams_runtime.metrics.definitions.store_definitions import ROCKSDB, STORES
from streams_runtime.metrics.definitions.thread_definitions import THREAD
from streams_runtime.metrics.metric_definition import Metric, Section
from streams_runtime.metrics.metric_tables import printed

COMMON_LABELS: Final = ("application_id", "client_id")
"""The labels that every series has: the application, and the instance (Prometheus keeps `instance` for itself)."""
SECTIONS: Final = (
    Section("The client", CLIENT),
    Section("Threads", THREAD),
    Section("Sub-topologies, steps and topics", PROCESSING),
    Section("Restoration and standbys", RESTORATION),
    Section("Stores", STORES),
    Section("RocksDB", ROCKSDB),
    Section("Processes", PROCESS),
)
CATALOGUE: Final[tuple[Metric, ...]] = tuple(each for section in SECTIONS for each in section.metrics)

if __name__ == "__main__":
    print(printed(SECTIONS))
