"""Families of stores, of RocksDB, and of the instance's processes."""

from __future__ import annotations

from streams_runtime.metrics.definitions import process_definitions
from streams_runtime.metrics.definitions import store_definitions as defined
from streams_runtime.metrics.measurements import Measurements
from streams_runtime.query.metrics.families import Families, milliseconds
from streams_runtime.query.metrics.processing_families import readings, totals


def add_stores(families: Families, measured: Measurements) -> None:
    """Families with the label `store`, and the block cache's."""
    written = totals(measured.recorders, lambda each: each.written)
    families.add(defined.WRITTEN, [((store,), number) for store, number in written.items()])
    puts = readings(measured.recorders, lambda each: each.put_all)
    families.add(defined.PUT_RATE, [((store,), each.rate) for store, each in puts.items()])
    families.add(defined.PUT_TOTAL, [((store,), each.count) for store, each in puts.items()])
    families.add(defined.PUT_AVG, [((store,), milliseconds(each.average)) for store, each in puts.items()])
    families.add(defined.PUT_MAX, [((store,), milliseconds(each.highest)) for store, each in puts.items()])
    read = {store: each.reading() for store, each in measured.stores.items()}
    families.add(defined.GET_RATE, [((store,), each.rate) for store, (each, *_) in read.items()])
    families.add(defined.GET_TOTAL, [((store,), each.count) for store, (each, *_) in read.items()])
    families.add(defined.GET_AVG, [((store,), milliseconds(each.average)) for store, (each, *_) in read.items()])
    families.add(defined.GET_MAX, [((store,), milliseconds(each.highest)) for store, (each, *_) in read.items()])
    families.add(defined.READ_KEYS, [((store,), keys) for store, (_, keys, _) in read.items()])
    for name, metric in defined.BUFFERS.items():
        families.add(metric, [((store,), each.get(name)) for store, each in measured.properties.items()])
    for name, metric in defined.PROPERTIES.items():
        families.add(metric, [((store,), each[name]) for store, each in measured.properties.items()])
    for name, metric in defined.CACHE.items():
        families.add_one(metric, measured.cache.get(name))
    statistics = measured.statistics
    for name, metric in defined.COUNTS.items():
        families.add(metric, [((store,), each.get(name)) for store, each in statistics.items()])
    for name, metric in defined.TIMED.items():
        rows = [
            ((store,), each.get(f"{name}.count", 0), each.get(f"{name}.sum", 0)) for store, each in statistics.items()
        ]
        families.add_summaries(metric, rows)


def add_processes(families: Families, measured: Measurements) -> None:
    """The processes and their memory."""
    families.add(process_definitions.MEMORY, [((kind,), size) for kind, (_, size) in measured.processes.items()])
    families.add(process_definitions.PROCESSES, [((kind,), count) for kind, (count, _) in measured.processes.items()])
