"""Made topologies in the test driver's machine: compiled once, run with batches cut anywhere, and compared."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shared_cases import batches
from state_kit import memory_folder
from steps_model import Given, Model, Written
from steps_model.compare import alike, without_nulls
from steps_model.graph import Known
from steps_model.model import stores_of

from streams_runtime.api.reading.load import accepted
from streams_runtime.builder.resolve_python import read_with_python
from streams_runtime.pipeline.compiled_topology import compiled
from streams_runtime.query.stores.key_value_handle import StoreQueryParameters, Windowed, open_store
from streams_runtime.spark_runtime import error_policy, failed_policy
from streams_runtime.testing.driver_stores import DriverStores
from streams_runtime.testing.memory_registry import LocalSchemas
from streams_runtime.testing.mock_producer import Sent
from streams_runtime.testing.record_formats import decoders_of
from streams_runtime.testing.topology_runner import TopologyRunner
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.partition_counts import partition_counts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass
class Outcome:
    """What a run has written, and holds."""

    sinks: dict[str, list[Written]] = field(default_factory=dict)
    stores: dict[str, dict[Any, Any]] = field(default_factory=dict)
    letters: int = 0


class Application:
    """A compiled topology, to be run several times."""

    def __init__(self, spark: SparkSession, document: Mapping[str, Any], partitions: int = 1) -> None:
        """Raises InvalidApplicationException: the document is refused."""
        self.document, self.partitions = document, partitions
        application = accepted(read_with_python(document))
        self._topology = build_topology(application)
        self._policies = error_policy(application), failed_policy(application)
        self._schemas = LocalSchemas()
        self._compiled = compiled(spark, self._topology, {}, self._schemas)
        read = (*self._topology.source_topics, *self._topology.global_topics)
        own = dict.fromkeys(read, partitions)
        written = dict.fromkeys((*self._topology.sink_topics, *self._letters), 1)
        self._counts = {**written, **own, **partition_counts(self._topology, {**written, **own})}

    @property
    def _letters(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each.topic for each in self._policies if each.topic is not None))

    def run(self, records: Sequence[Given], cuts: Sequence[int]) -> Outcome:
        """Process the records in batches that are cut before these. Raises whatever ends a batch."""
        with ExitStack() as stack:
            folder: Path = stack.enter_context(memory_folder())
            machine = TopologyRunner(self._topology, self._compiled, self._policies, self._counts, folder)
            stack.callback(machine.close)
            for first, end in batches(len(records), cuts):
                for each in records[first:end]:
                    sent = Sent(each.topic, each.partition, each.key, each.value, each.time, list(each.headers) or None)
                    machine.logs.append(sent, each.key)
                machine.work()
            return self._outcome(machine)

    def _outcome(self, machine: TopologyRunner) -> Outcome:
        stores = DriverStores(machine, self._compiled.compiler)
        found = Outcome(letters=sum(len(machine.logs.unread(topic)) for topic in self._letters))
        for topic in self._topology.sink_topics:
            read = decoders_of(self._topology, self._compiled.compiler, stores.codec, topic, self._schemas)
            found.sinks[topic] = [
                _written(None if it.key is None else read.key(it.key), it.value and read.value(it.value), it)
                for it in machine.logs.unread(topic)
            ]
        for name in stores.store_names():
            handle: Any = open_store(stores, StoreQueryParameters(name, stores.store_type(name)))
            found.stores[name] = _contents(handle)
        return found


def differences(model: Model, outcome: Outcome) -> list[str]:
    """Where a run differs from what the model has come to; nothing where it has all that is foretold."""
    found: list[str] = []
    for sink in model.graph.sinks:
        known = model.graph.known(sink["from"])
        found += _of_sink(sink["topic"], known, model.sinks[sink["topic"]], outcome.sinks[sink["topic"]])
    for name, rows in outcome.stores.items():
        found += _of_store(model, name, rows)
    if outcome.letters != model.letters:
        found.append(f"{outcome.letters} dead letters in place of {model.letters}")
    return found


def _of_sink(topic: str, known: Known, expected: Sequence[Written], found: Sequence[Written]) -> list[str]:
    if known is Known.NOTHING:
        return []
    wanted, have = (_by_key(each) for each in (expected, found))
    differ = []
    for key in {**wanted, **have}:
        one, other = wanted.get(key, []), have.get(key, [])
        if known is not Known.ALL:
            one, other = one[-1:], other[-1:]
            if not [each for each in (*one, *other) if each.value is not None]:
                continue
        if not alike([_shown(each, known) for each in one], [_shown(each, known) for each in other]):
            differ.append(f"{topic} {key}:\n  expected {one}\n  found    {other}")
    return differ


def _of_store(model: Model, name: str, rows: Mapping[Any, Any]) -> list[str]:
    node = next(each for each in model.graph.nodes.values() if name in stores_of(each))
    known = model.graph.known(node["name"])
    if known is Known.NOTHING:
        return []
    wanted = {key: value for key, (value, _) in model.rows(name).items()}
    if "window" in node:
        expired = model.expired(node["name"])  # which may be gone
        wanted = {key: value for key, value in wanted.items() if key in rows or key not in expired}
    return [
        f"store {name} {key}: expected {wanted.get(key)}, found {rows.get(key)}"
        for key in {**wanted, **rows}
        if not alike(without_nulls(wanted.get(key)), without_nulls(rows.get(key)))
    ]


def _by_key(rows: Sequence[Written]) -> dict[Any, list[Written]]:
    found: dict[Any, list[Written]] = {}
    for each in rows:
        found.setdefault((each.key, each.window), []).append(each)
    return found


def _shown(row: Written, known: Known) -> Any:
    return (
        row.value,
        row.time if known >= Known.LAST else None,
        list(row.headers) if known is Known.ALL else None,
    )


def _written(key: Any, value: Any, it: Any) -> Written:
    headers = tuple((name, text.encode() if isinstance(text, str) else text) for name, text in it.headers or ())
    key, window = _plain(key)
    return Written(key, value, it.timestamp, headers, window)


def _plain(key: Any) -> tuple[Any, Any]:
    """A key as the model has it, and its window."""
    if isinstance(key, Windowed):
        bounds = [round(each.timestamp() * 1000) for each in (key.window.start, key.window.end)]
        return _plain(key.key)[0], (bounds[0], bounds[1])
    return json.dumps(key, separators=(",", ":")) if isinstance(key, dict) else key, None


def _contents(handle: Any) -> dict[Any, Any]:
    found = {}
    with handle.all() if hasattr(handle, "all") else handle.fetch(None, None) as rows:
        for key, value in rows:
            plain, window = _plain(key)
            found[plain if window is None else (plain, window)] = value
    return found
