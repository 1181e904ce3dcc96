"""Topologies that a seed makes, and what a model in plain Python says of them: steps of all kinds behind each other.

What comes of an application must not depend on chance, or nothing could be compared. Three things would:

- the order of records of several topics that one task reads. So only one topic has records at a time: a history takes
  its sources in some order, and goes on to the next one once all is processed. Tables stand still while a stream is
  joined with them, and the other way round.
- the order in which several tasks write to a repartition topic. So it is read: what it holds has to be what the tasks
  before it had to write, each in its order, and the model goes on with what it holds (`steps_model.replay`).
- where batches begin. An aggregate that nobody asks for every change writes a key once a batch: what is compared is
  the last record of each key, and that the others are among its changes, in their order. Windows that still change are
  compared by their last records too, and what joins by a foreign key give by the last value of each key.

At least once may do a batch again, and stores may have been ahead of it. Compared is what that leaves certain: every
record behind steps that keep nothing, and none that nobody sent; the last row of each key of tables, where that is no
deletion; and no aggregate by key of such records that has counted fewer. Windows, joins of streams and dedupes are left
out: a stream time that had come further than what is done again makes records late.
"""

from __future__ import annotations

import base64
import json
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import yaml
from generated_checks import Shown, at_least_once, interleaved, last_rows
from instances import Instance
from reader import LONGEST, Reader
from steps_model.compare import alike, without_nulls
from steps_model.formats import read_key, write_key
from steps_model.graph import Known
from steps_model.items import Given, Row, Window
from steps_model.replay import Replay
from steps_model.windows import Sessions, Windows
from topologies_generated import LETTERS, generated, portion
from waiting import eventually
from workload import NAME, History

from streams_runtime.api.reading.load import accepted
from streams_runtime.builder.resolve_python import read_with_python
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.producer.batch_producer import BatchProducer
from streams_runtime.kafka.types import TopicSpec
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.partition_counts import partition_counts

_APART = 40_000  # ms of the records' time between two histories
_KEY_FORMATS = {"concat": "string", "v": "long", "named_struct": "json"}
_KEPT = {"key-value": "all", "window": "windows/all", "session": "sessions/range"}


class GeneratedTopology:
    """The workload."""

    def __init__(self, seed: int, once: bool, partitions: int) -> None:
        self.once, self.partitions = once, partitions
        made = generated(seed)
        self._made = made
        self.title = f"{made.begins}: {', '.join(made.chain)}"
        spec = dict(made.document["spec"])
        spec["applicationId"] = NAME
        spec["processing"] = {**spec["processing"], "guarantee": "exactly_once_v2" if once else "at_least_once"}
        self._document = {**made.document, "spec": spec}
        self._topology = build_topology(accepted(read_with_python(self._document)))
        self._model = Replay(self._document, partitions)
        # Brokers drop old records, and windows are cut alike wherever this lies by the whole minute.
        self._base = (int(time.time()) - 1800) // 60 * 60_000
        self._letters = "deadLetter" in str(spec["processing"])

    def __str__(self) -> str:
        return f"# {self.title}\n" + yaml.safe_dump(self._document, sort_keys=False, allow_unicode=True)

    def write(self, file: Path) -> None:
        file.write_text(json.dumps(self._document))

    @contextmanager
    def open(self, address: str) -> Iterator[None]:
        topology = self._topology
        named = [*topology.source_topics, *topology.global_topics, *topology.sink_topics]
        own = dict.fromkeys([*named, *([LETTERS] if self._letters else [])], self.partitions)
        with closing(Admin({"bootstrap.servers": address})) as admin:
            admin.create_topics([TopicSpec(name, count) for name, count in own.items()])
        self._counts = {**own, **partition_counts(topology, own)}
        self._address, self._readers = address, dict[str, Reader]()
        with ExitStack() as stack:
            self._closing = stack
            yield

    @property
    def inputs(self) -> Mapping[str, int]:
        topics = (*self._topology.source_topics, *self._topology.repartition_topics)
        return {topic: self._counts[topic] for topic in topics}

    def is_ready(self, instances: Sequence[Instance]) -> bool:
        """Whether every instance has all of the global tables."""
        for sub in self._topology.global_tables:
            store = sub.stores[0].name
            wanted = {_base64(write_key(key)): without_nulls(row) for key, (row, _) in self._model.rows(store).items()}
            for each in instances:
                lines = each.lines(store, "all?keyBytes=true")
                if lines is None or not alike(
                    wanted, {line["keyBytes"]: without_nulls(line["value"]) for line in lines}
                ):
                    return False
        return True

    def live(self, history: History) -> None:
        dice = history.dice
        sources = dice.sample(self._made.sources, len(self._made.sources))
        left = list(history.steps)
        for number, source in enumerate(sources):
            main = source["name"] in ("in", *(["rows_in"] if self._made.begins == "table" else []))
            count = history.records // 2 if main else history.records // 4
            first = self._base + history.number * _APART
            records = portion(source, dice, count, first, self.partitions, self._made.has_bad_records)
            steps = left if number == len(sources) - 1 else [left.pop()] if left and dice.random() < 0.5 else []
            cuts = sorted(dice.randrange(len(records) + 1) for _ in steps)
            for step, begin, end in zip((None, *steps), (0, *cuts), (*cuts, len(records)), strict=True):
                if step is not None:
                    step.do()
                self._send(source["topic"], records[begin:end])
                # Faults of requests need requests: a batch or two.
                time.sleep(dice.uniform(0.0, 0.4))
            self._model_takes_globals(source, records)
            history.wait_for_peace()
            self._follow(source, records)
        self._check(history.instances)

    def _model_takes_globals(self, source: Mapping[str, Any], records: Sequence[Given]) -> None:
        """Peace is only there once global tables have come to what the model has."""
        if source.get("table", {}).get("global"):
            self._model.feed(records)

    def _send(self, topic: str, records: Sequence[Given]) -> None:
        producer = BatchProducer({"bootstrap.servers": self._address}, "test")
        for partition in range(self.partitions):
            some = [each for each in records if each.partition == partition]
            producer.send(
                topic,
                [each.key for each in some],
                [each.value for each in some],
                [each.time for each in some],
                partition,
                [list(each.headers) or None for each in some],
            )
        producer.flush()
        producer.close()

    def _follow(self, source: Mapping[str, Any], records: Sequence[Given]) -> None:
        """Let the model process what was sent, and then what each repartition topic holds of it, upstream first."""
        model = self._model
        if not source.get("table", {}).get("global"):
            model.feed(records)
        for step in model.graph.ordered:
            name = step["name"]
            if name not in model.graph.repartitioned:
                continue
            found = [(each.partition(), self._row(step, each)) for each in self._look(f"{NAME}-{name}-repartition")]
            self._check_moved(name, [row for _, row in found])
            for partition, row in found:
                model.arrive(name, partition, row)
            model.work()

    def _look(self, topic: str) -> Sequence[Any]:
        """The records that have come since the last look."""
        if topic not in self._readers:
            self._readers[topic] = Reader(self._address, topic, self._counts.get(topic, self.partitions))
            self._closing.callback(self._readers[topic].close)
        reader = self._readers[topic]
        seen = len(reader.records)
        return reader.look()[seen:]

    def _all(self, topic: str) -> Sequence[Any]:
        """All records of a topic."""
        self._look(topic)
        return self._readers[topic].records

    def _row(self, step: Mapping[str, Any], message: Any) -> Row:
        """A record of a keyBy's topic."""
        text = next(text for text in _KEY_FORMATS if step["keyBy"].startswith(text))
        value = message.value()
        if value is not None:
            value = {**dict.fromkeys(self._model.graph.columns(step["name"])), **json.loads(value)}
        key = read_key(_KEY_FORMATS[text], message.key())
        return Row(key, value, message.timestamp()[1], tuple(message.headers() or ()))

    def _check_moved(self, name: str, found: Sequence[Row]) -> None:
        graph = self._model.graph
        sent = self._model.sent.pop(name, [])
        wanted = _by_task((partition, write_key(row.key), _shown(row)) for partition, row in sent)
        have = _by_key((write_key(row.key), _shown(row)) for row in found)
        where = f"the repartition topic of {name}"
        if self.once and graph.known_before_topic(name):
            interleaved(where, wanted, have)
        elif not self.once and graph.keeps_nothing(graph.nodes[name]["from"]):
            at_least_once(where, wanted, have)

    def _check(self, instances: Sequence[Instance]) -> None:
        """Sinks, dead letters, stores and changelogs."""
        for sink in self._model.graph.sinks:
            self._check_sink(sink["from"], sink["topic"])
        if self._letters:
            found, wanted = len(self._all(LETTERS)), len(self._model.unreadable)
            assert found >= wanted, f"{wanted - found} unreadable records are in no dead letter"
            assert found == wanted or not self.once, f"{found - wanted} dead letters too many"
        for store in (each for each in self._topology.stores if each.is_queryable):
            self._check_store(store.name, store.kind, instances)
            if store.kind == "key-value" and not store.source_changelog and self.once:
                self._check_changelog(store.name, store.changelog_topic)

    def _check_sink(self, name: str, topic: str) -> None:
        graph = self._model.graph
        session = isinstance(self._windows_behind(name), Sessions)
        known, where, written = graph.known(name), f"sink {topic}", self._model.sinks[topic]
        # A row that stands for several changes has no headers, as out of Kafka Streams' cache.
        with_headers = known is not Known.LAST
        wanted = _by_task(
            (
                each.partition,
                _windowed(each.key, each.window, session),
                (each.value, each.time, each.headers if with_headers else ()),
            )
            for each in written
        )
        messages = self._all(topic)
        have = _by_key(
            (
                each.key(),
                (_json(each.value()), each.timestamp()[1], tuple(each.headers() or ()) if with_headers else ()),
            )
            for each in messages
        )
        if self.once and known is Known.ALL:
            interleaved(where, wanted, have)
        elif self.once and known is not Known.NOTHING:
            last_rows(where, wanted, have, times=known is Known.LAST)
            if known is Known.LAST and not any(each.window for each in written):
                interleaved(where, wanted, have, whole=False)
        elif not self.once:
            self._check_sink_at_least_once(name, where, wanted, have)

    def _check_sink_at_least_once(self, name: str, where: str, wanted: Any, have: Any) -> None:
        graph = self._model.graph
        node = graph.owner[name]
        if graph.keeps_nothing(name):
            at_least_once(where, wanted, have)
        elif graph.ends_alike(name):
            last_rows(where, wanted, have, times=False, deletions=False)
        elif "aggregate" in node and "window" not in node and graph.keeps_nothing(node["from"]):
            last = {key: max((each for _, each in rows), key=lambda each: each[1]) for key, rows in wanted.items()}
            missing = [key for key in last if key not in have]
            assert not missing, f"{where}: nothing of {missing[:5]}"
            for key, rows in wanted.items():
                if "n" in node["aggregate"]:
                    most = max(row[0]["n"] for _, row in rows)
                    assert have[key][-1][0]["n"] >= most, f"{where} {key!r}: {have[key][-1]}, of {most} records"

    def _windows_behind(self, name: str) -> Any:
        """The windows whose keys an output has, of one task; None: it has plain keys."""
        graph = self._model.graph
        while "topic" not in graph.owner[name]:
            node = graph.owner[name]
            if "aggregate" in node:
                return self._model.tasks_of(node["name"])[0] if "window" in node else None
            if "keyBy" in node:
                return None
            name = node["merge"][0] if "merge" in node else node["from"]
        return None

    def _check_store(self, store: str, kind: str, instances: Sequence[Instance]) -> None:
        node = next(each for each in self._model.graph.nodes.values() if store in _stores_of(each))
        certain = self._model.graph.known(node["name"]) is not Known.NOTHING
        if not (certain if self.once else "aggregate" not in node and self._model.graph.ends_alike(node["name"])):
            return
        step = node["name"]
        windows = isinstance(self._windows_behind(step), Windows)
        session = kind == "session"
        wanted: dict[bytes | None, Any] = {}
        if windows:
            for each in self._model.tasks_of(step):
                ended = each.last_end()
                # What has expired may be gone; what is there has to be right.
                for (key, window), (row, _) in each.rows().items():
                    wanted[_windowed(key, window, session, stored=True)] = (row, window[1] <= ended + 1)
        else:
            wanted = {write_key(key): (row, False) for key, (row, _) in self._model.rows(store).items()}
        found = self._stored(store, kind, instances, {key for key, (_, may_go) in wanted.items() if not may_go})
        for key in {**wanted, **found}:
            row, may_go = wanted.get(key, (None, False))
            if may_go and key not in found:
                continue
            assert alike(without_nulls(row), without_nulls(found.get(key))), (
                f"store {store} {key!r}: {found.get(key)} instead of {row}"
            )

    def _stored(
        self, store: str, kind: str, instances: Sequence[Instance], wanted: Set[bytes | None]
    ) -> dict[bytes | None, Any]:
        """What all instances have of a store, once these keys are among it."""
        found: dict[bytes | None, Any] = {}

        def read() -> bool:
            parts = [each.lines(store, f"{_KEPT[kind]}?keyBytes=true") for each in instances]
            found.clear()
            for part in parts:
                found.update({base64.b64decode(line["keyBytes"]): line["value"] for line in part or ()})
            return None not in parts and wanted <= found.keys()

        eventually(read, lambda: f"the store {store} answers; missing are {list(wanted - found.keys())[:5]}", LONGEST)
        return found

    def _check_changelog(self, store: str, topic: str) -> None:
        node = next(each for each in self._model.graph.nodes.values() if store in _stores_of(each))
        if self._model.graph.known(node["name"]) is Known.NOTHING:
            return
        last: dict[bytes | None, Any] = {}
        for each in self._all(topic):
            last[each.key()] = each.value()
        live = {key: value for key, value in last.items() if value is not None}
        wanted = {write_key(key): row for key, (row, _) in self._model.rows(store).items()}
        differ = sorted(map(repr, live.keys() ^ wanted.keys()))
        assert not differ, f"changelog {topic}: {differ[:5]} in it or in the model only"
        if "toTable" in node:
            for key, row in wanted.items():
                assert alike(without_nulls(row), without_nulls(_json(live[key]))), (
                    f"changelog {topic} {key!r}: {live[key]!r}, not {row}"
                )


def _stores_of(node: Mapping[str, Any]) -> tuple[str | None, ...]:
    return (node.get("store"), node.get("table", {}).get("store"), node.get("toTable", {}).get("store"))


def _shown(row: Row) -> Shown:
    return row.value, row.time, row.headers


def _by_task(rows: Any) -> dict[bytes | None, list[tuple[int, Shown]]]:
    found: dict[bytes | None, list[tuple[int, Shown]]] = defaultdict(list)
    for task, key, shown in rows:
        found[key].append((task, shown))
    return found


def _by_key(rows: Any) -> dict[bytes | None, list[Shown]]:
    found: dict[bytes | None, list[Shown]] = defaultdict(list)
    for key, shown in rows:
        found[key].append(shown)
    return found


def _windowed(key: Any, window: Window | None, session: bool, stored: bool = False) -> bytes | None:
    """A key's bytes, those of a window behind them as a sink has it, or a store."""
    plain = write_key(key)
    if window is None or plain is None:
        return plain
    start, end = (each.to_bytes(8, "big") for each in window)
    return plain + (end + start if session else start + bytes(4 if stored else 0))


def _json(value: bytes | None) -> Any:
    return None if value is None else json.loads(value)


def _base64(data: bytes | None) -> str:
    return base64.b64encode(data or b"").decode()
