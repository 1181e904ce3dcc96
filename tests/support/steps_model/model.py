"""A whole application: tasks, their steps, and the topics between them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

from steps_model.formats import UnreadableError, read_key, read_value, write_key
from steps_model.graph import Graph, Spec, inputs
from steps_model.groups import Grouped, regrouped
from steps_model.items import Change, Given, Item, Row, Written
from steps_model.joins import ByForeignKey, OfStreams, OfTables, WithTable
from steps_model.processors import FailedError, Process
from steps_model.steps import Aggregate, Dedupe, History, Kept, Stateless, Step, Suppress
from steps_model.windows import Sessions, SlidingWindows, TimeWindows, Windows
from streams_runtime.kafka.producer.partitioner import partition_for

Task = dict[str, Step]
Waiting = tuple[int, int, Row]
"""Partition, offset and record of a topic."""
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class Model:
    """An application that is given its records batch by batch.

    Batches matter where a sub-topology reads several topics: the records of one batch take their turns by time.
    """

    def __init__(self, document: Spec, partitions: int = 1) -> None:
        """All topics of sources, and so repartition topics, have this number of partitions."""
        spec = document["spec"]
        self.graph = Graph(spec["topology"], partitions > 1)
        self.sinks: dict[str, list[Written]] = {each["topic"]: [] for each in self.graph.sinks}
        self.unreadable: list[Given] = []
        self.failed = 0
        """Records over which processors have failed."""
        processing = spec.get("processing", {})
        self._policy = processing.get("onDeserializationError", "fail")
        self._on_failure = processing.get("onProcessingError", "fail")
        self._partitions = partitions
        self._globals = {each["name"]: Kept(each["name"]) for each in self.graph.sources if self._is_global(each)}
        self._foreign = {each["name"]: ByForeignKey(each) for each in self.graph.steps if self.graph.is_foreign(each)}
        self._tasks: list[Task] = [{} for _ in range(partitions)]
        for task in self._tasks:
            for node in (*self.graph.sources, *self.graph.ordered):
                step = self._step(node, task)
                if step is not None:
                    task[node["name"]] = step
        self._topics: dict[str, list[Waiting]] = defaultdict(list)
        self._ends: Counter[tuple[str, int]] = Counter()
        self._keyless: Counter[str] = Counter()
        self._turns = 0

    @property
    def letters(self) -> int:
        """How many records have gone to dead-letter topics."""
        unreadable = len(self.unreadable) if isinstance(self._policy, Mapping) else 0
        return unreadable + (self.failed if isinstance(self._on_failure, Mapping) else 0)

    def feed(self, batch: Iterable[Given]) -> None:
        """Process these records, and what comes of them.

        Raises UnreadableError: the policy is `fail`, and a record can't be read.
        """
        sources = {each["topic"]: each for each in self.graph.sources}
        for given in batch:
            source = sources[given.topic]
            partition = self._place(given.topic, given.key) if given.partition is None else given.partition
            try:
                key = read_key(source.get("key", {}).get("format"), given.key)
                value = read_value(source["value"]["schema"], given.value)
            except UnreadableError:
                if self._policy == "fail":
                    raise
                self.unreadable.append(given)
                continue
            row = Row(key, value, given.time, given.headers)
            if self._is_global(source):
                list(self._globals[source["name"]].take(row, source["name"]))
            else:
                self._append(source["name"], partition, row)
        self.work()

    def work(self) -> None:
        """Process all that waits, and what comes of it."""
        while any(self._work(component) for component in self.graph.components):
            pass

    def rows(self, store: str) -> dict[Any, tuple[dict[str, Any] | None, int]]:
        """What a store holds, of all partitions, by key, or by key and window: value and time."""
        node = next(each for each in self.graph.nodes.values() if store in stores_of(each))
        if node["name"] in self._globals:
            return dict(self._globals[node["name"]].rows)
        if node["name"] in self._foreign:
            return dict(self._foreign[node["name"]].rows)
        found: dict[Any, tuple[dict[str, Any] | None, int]] = {}
        for task in self._tasks:
            step = task[node["name"]]
            found |= step.rows() if isinstance(step, Windows | Process) else step.rows  # type: ignore[attr-defined]
        return found

    def expired(self, step: str) -> set[Any]:
        """The keys and windows that have closed, by the time of the task that has them."""
        tasks = [each for task in self._tasks if isinstance(each := task[step], Windows)]
        return {where for task in tasks for where in task.rows() if where[1][1] <= task.last_end() + 1}

    def stream_time(self, step: str) -> int:
        """How far the windows of a step have come, in all of its tasks: the earliest. In ms."""
        return min(task[step].now for task in self._tasks)  # type: ignore[attr-defined]

    def _is_global(self, source: Spec) -> bool:
        return bool(source.get("table", {}).get("global"))

    def _place(self, topic: str, key: bytes | None) -> int:
        if key is not None:
            return partition_for(key, self._partitions)
        self._keyless[topic] += 1
        return (self._keyless[topic] - 1) % self._partitions

    def _append(self, topic: str, partition: int, row: Row) -> None:
        self._topics[topic].append((partition, self._ends[topic, partition], row))
        self._ends[topic, partition] += 1

    def _work(self, component: frozenset[str]) -> bool:
        """Process what waits for a sub-topology, and say whether anything did."""
        topics = [name for name in self._read_by(component) if self._topics[name]]
        waiting: list[tuple[Any, str, int, Row]] = []
        for name in topics:
            come: dict[int, int] = {}
            for partition, offset, row in self._topics.pop(name):
                come[partition] = max(row.time, come.get(partition, row.time))
                is_stream = "table" not in self.graph.nodes.get(name, {})
                waiting.append(((partition, come[partition], is_stream, name, offset), name, partition, row))
        for _, name, partition, row in sorted(waiting, key=lambda each: each[0]):
            self._turns += 1
            self._enter_or_leave_out(component, name, partition, replace(row, turn=self._turns))
        return bool(waiting)

    def _enter_or_leave_out(self, component: frozenset[str], name: str, partition: int, row: Row) -> None:
        """Process a record, and what is due with it; one over which a processor fails leaves no trace."""
        before = self._saved(partition) if self._on_failure != "fail" else None
        try:
            processors = [
                step
                for each in self.graph.ordered
                if each["name"] in component and isinstance(step := self._tasks[partition].get(each["name"]), Process)
            ]
            for step in processors:
                step.come(row.time)
            self._enter(name, partition, row)
            self._punctuate(processors, partition, row.turn)
        except FailedError:
            if before is None:
                raise
            self._go_back(partition, before)
            self.failed += 1

    def _punctuate(self, processors: Sequence[Process], partition: int, turn: int) -> None:
        """Call what is due in a task, the earliest first."""
        while True:
            due = [(*each, at) for at, step in enumerate(processors) for each in step.due()]
            if not due:
                return
            _, number, at = min(due, key=lambda each: (each[0], each[2], each[1]))
            for output, given in processors[at].punctuate(number, turn):
                self._give(output, partition, given)

    def _saved(self, partition: int) -> Any:
        return deepcopy((self._tasks[partition], self._topics, self._ends, self._keyless, self.sinks))

    def _go_back(self, partition: int, before: Any) -> None:
        # Steps know their task by the mapping that it is.
        task, self._topics, self._ends, self._keyless, self.sinks = before
        self._tasks[partition].update(task)

    def _read_by(self, component: frozenset[str]) -> list[str]:
        """Sources and repartition topics (by their keyBy) that the sub-topology reads."""
        sources = [each["name"] for each in self.graph.sources if each["name"] in component]
        steps = [each for each in self.graph.steps if each["name"] in component]
        moved = [name for step in steps for name in inputs(step) if name in self.graph.repartitioned]
        # One that only sinks take is in no other sub-topology of this model.
        moved += [
            step["name"]
            for step in steps
            if step["name"] in self.graph.repartitioned and not self.graph.consumers(step["name"])
        ]
        return list(dict.fromkeys([*sources, *moved, *(step["name"] for step in steps if "groupBy" in step)]))

    def _enter(self, name: str, partition: int, row: Row) -> None:
        reads = self.graph.nodes.get(name, {}).keys() & {"topic", "groupBy"}
        table = self._tasks[partition].get(name) if reads else None
        if table is None:
            self._push(name, partition, row)
            return
        for output, item in table.take(row, name):
            self._push(output, partition, item)

    def _push(self, name: str, partition: int, item: Item) -> None:
        """Hand what an output gives to its sinks and, one after the other, to the steps behind it."""
        for sink in (each for each in self.graph.sinks if each["from"] == name):
            row = item.as_row() if isinstance(item, Change) else item
            written = Written(row.key, row.value, row.time, row.headers, row.window, partition)
            self.sinks[sink["topic"]].append(written)
        for step in self.graph.consumers(name):
            if step["name"] in self._foreign:
                self._to_foreign(step, name, partition, item)
                continue
            if "groupBy" in step:
                for told in regrouped(step["groupBy"], item):
                    self._append(step["name"], self._place(step["name"], write_key(told.key)), told)
                continue
            for output, given in self._tasks[partition][step["name"]].take(item, name):
                self._give(output, partition, given)

    def _give(self, output: str, partition: int, item: Item) -> None:
        """Hand on what a step gives: to its topic, or to the steps behind it."""
        if output in self.graph.repartitioned:
            self._send(output, partition, item)
        else:
            self._push(output, partition, item)

    def _to_foreign(self, step: Spec, name: str, partition: int, item: Item) -> None:
        join = self._foreign[step["name"]]
        assert isinstance(item, Change)
        if name == step["from"]:
            for where, change in join.left(item, partition):
                self._push(step["name"], where, change)
        if name == step["join"]["table"]:
            for where, change in join.right(item):
                self._push(step["name"], where, change)

    def _send(self, name: str, partition: int, item: Item) -> None:
        """Hand what the task of this partition gives to a repartition topic."""
        assert isinstance(item, Row)
        if item.key is not None or name in self.graph.keeping_null_keys:
            self._append(name, self._place(name, write_key(item.key)), replace(item, window=None))

    def _step(self, node: Spec, task: Task) -> Step | None:
        made: Mapping[str, Callable[[], Step | None]] = {
            "topic": lambda: _kept(node, node["table"]) if "table" in node and not self._is_global(node) else None,
            "window": lambda: _windows(node),
            "groupBy": lambda: Grouped(node),
            "aggregate": lambda: Aggregate(node),
            "toTable": lambda: _kept(node, node["toTable"]),
            "process": lambda: Process(node),
            "dedupe": lambda: Dedupe(node, ms(node["dedupe"]["within"])),
            "join": lambda: self._join(node, task),
        }
        if "suppress" in node.get("toStream", {}):
            return Suppress(node, ms(node["toStream"]["suppress"]["within"]), self.graph.in_sessions(node["from"]))
        kind = next((each for each in made if each in node), None)
        if kind is not None:
            return made[kind]()
        return Stateless(node, self._lookup(inputs(node)[0], task), self.graph.knows_old_rows(node))

    def _join(self, node: Spec, task: Task) -> Step | None:
        join = node["join"]
        columns = self.graph.columns(node["from"])
        if "stream" in join:
            within = join["within"]
            both = (within, within) if isinstance(within, str) else (within["before"], within["after"])
            return OfStreams(node, ms(both[0]), ms(both[1]), ms(join.get("grace", "0ms")), columns)
        if self.graph.is_foreign(node):
            return None
        if node["from"] in self.graph.tables:
            return OfTables(node, self._lookup(node["from"], task), self._lookup(join["table"], task), columns)
        return WithTable(node, self._lookup_at(join["table"], task))

    def _lookup_at(self, name: str, task: Task) -> Callable[[Any, int], Any]:
        if "historyRetention" in (self.graph.nodes[name].get("table") or self.graph.nodes[name].get("toTable", {})):

            def row_at(key: Any, time: int) -> Any:
                return task[name].row_at(key, time)  # type: ignore[attr-defined]  # the step may not be made yet

            return row_at
        row = self._lookup(name, task)
        return lambda key, _: row(key)

    def _lookup(self, name: str, task: Task) -> Callable[..., Any]:
        if name in self._globals:
            return self._globals[name].row
        if name in self._foreign:
            return self._foreign[name].rows.get
        table = self.graph.owner[name]["name"]

        def row(key: Any, window: Any = None) -> Any:
            of_window = () if window is None else (window,)
            return task[table].row(key, *of_window)  # the step may not be made yet

        return row


def ms(text: str) -> int:
    """A duration."""
    return sum(int(number) * _UNITS[unit] for number, unit in re.findall(r"(\d+)(ms|s|m|h|d)", text))


def _windows(node: Spec) -> Windows:
    window = node["window"]
    kind = next(name for name in ("tumbling", "hopping", "sliding", "session") if name in window)
    of = {name: ms(text) for name, text in window[kind].items() if name != "timezone"}
    grace = of.get("grace", 0)
    declared = None if "retention" not in window else ms(window["retention"])
    if kind == "session":
        return Sessions(node, grace, gap=of["gap"], retention=declared or of["gap"] + grace)
    if kind == "sliding":
        least = 2 * of["timeDifference"] + grace
        return SlidingWindows(node, grace, size=of["timeDifference"], retention=declared or least)
    lengths = {name: of[name] for name in ("size", "offset") if name in of} | {"advance": of.get("advance", of["size"])}
    zone = window[kind].get("timezone")
    longest = of["size"] + (_UNITS["h"] if zone else 0)  # of a day whose clock is set back
    return TimeWindows(node, grace, **lengths, timezone=zone, retention=declared or longest + grace)


def _kept(node: Spec, table: Spec) -> Kept:
    retention = table.get("historyRetention")
    return Kept(node["name"]) if retention is None else History(node["name"], ms(retention))


def stores_of(node: Spec) -> tuple[str, ...]:
    """The stores that a source or step has, by their names."""
    kept = [node[each]["store"] for each in ("table", "toTable") if each in node]
    return (*([node["store"]] if "store" in node else []), *kept, *node.get("process", {}).get("stores", ()))
