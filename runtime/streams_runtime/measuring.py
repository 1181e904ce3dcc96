"""What a client has measured, collected when it is asked for: nothing of this costs while nobody asks."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Protocol

from streams_runtime.client_context import ClientContext
from streams_runtime.errors import StreamsException
from streams_runtime.metrics.measurements import Measurements
from streams_runtime.metrics.process_memory import processes_of
from streams_runtime.metrics.store_recorder import StoreRecorder
from streams_runtime.processing.batch_work import Counters
from streams_runtime.state.database.open_database import StoreClosed
from streams_runtime.state.store import LocalStore


class MeasuredThread(Protocol):
    """A stream thread, as far as it is read here."""

    @property
    def name(self) -> str: ...

    @property
    def counters(self) -> Counters: ...


def measurements(
    context: ClientContext,
    threads: Iterable[MeasuredThread],
    counters: Iterable[Counters],
    stores: Collection[LocalStore],
) -> Measurements:
    """Of the threads that there are, of all that have counted, and of the stores that are open here."""
    recorders = context.directory.measured.all
    return Measurements(
        context.level,
        _version(),
        {thread.name: thread.counters.recorder for thread in threads},
        [each.recorder for each in counters],
        _properties(stores),
        _statistics(stores, recorders),
        recorders,
        context.directory.options.memory_figures(),
        processes_of(os.getpid()),
    )


def dropped_rows(counters: Iterable[Counters]) -> list[dict[str, str | int]]:
    """How many records each declared step or source has left out since the start, by reason, for `/state`."""
    found: Counter[tuple[str, str]] = Counter()
    for each in counters:
        found.update(each.recorder.dropped_records(each.recorder.clock()))
    return [
        {"step": step, "reason": str(reason), "records": records} for (step, reason), records in sorted(found.items())
    ]


def _properties(stores: Iterable[LocalStore]) -> Mapping[str, Mapping[str, int]]:
    """RocksDB's properties by store. One that is closed meanwhile, or can't be read, is left out."""
    found: dict[str, Counter[str]] = {}
    for store in stores:
        with suppress(StoreClosed, StreamsException):
            found.setdefault(store.name, Counter()).update(store.properties())
    return {name: each for name, each in found.items() if each}


def _statistics(
    stores: Iterable[LocalStore], recorders: Mapping[str, StoreRecorder]
) -> Mapping[str, Mapping[str, int]]:
    """RocksDB's statistics by store, those of partitions that are closed included; empty at INFO."""
    if not recorders:
        return {}
    found: dict[str, Counter[str]] = {name: Counter(each.reading()[2]) for name, each in recorders.items()}
    for store in stores:
        with suppress(StoreClosed, StreamsException):
            found.setdefault(store.name, Counter()).update(store.statistics())
    return found


@cache
def _version() -> str:
    try:
        return version("streams-operator")
    except PackageNotFoundError:  # run from its sources
        return "unknown"
