"""The right side of a join by a foreign key: who subscribes to the rows of a table, and what they are answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from streams_runtime.batch.columns import OUT_TIME, OUT_VALUE
from streams_runtime.batch.stage import Emission
from streams_runtime.processors.contract import Applied, SparkSide, Stores
from streams_runtime.processors.tables.table_snapshots import At, Event, Events
from streams_runtime.state.open_store import AnyStore, key_value_store
from streams_runtime.state.store import KeyValueStore, Updates
from streams_runtime.state.subscriptions import Instruction, Response, Subscription, behind, combined_key, prefix_of
from streams_runtime.topology.nodes.foreign_key_nodes import ResponseNode
from streams_runtime.topology.nodes.step_nodes import TransformNode
from streams_runtime.topology.table_parts import TablePart


def answered(
    node: ResponseNode,
    side: TablePart,
    spark: SparkSide,
    events: Events,
    stores: Stores,
) -> Applied:
    """A batch's answers and what the stores of subscriptions will hold.

    `events` are the changes of the sources of `side` and the subscriptions of the batch; there are some.

    Raises ProcessorStateException: a store can't be read.
    """
    sent = spark.rows_sent(side, events.table())
    rows = list(zip(sent[OUT_VALUE].to_pylist(), sent[OUT_TIME].to_pylist(), strict=True))
    rows = [(None if value is None else value.encode(), time) for value, time in rows]
    subscribers = Subscribers({number: key_value_store(of_task, node.store) for number, of_task in stores.items()})
    answers = _Answers(node.topic)
    # A where is silent about rows that were not in its table and are not now.
    filtered = any(step.where is not None for step in side.steps if isinstance(step, TransformNode))
    for event in events.sequence:
        (row, time), was = rows[event.after], rows[event.before][0]
        if event.message is not None:
            _subscribed(event, Subscription.of(event.message), row, time, subscribers, answers)
        elif not (filtered and was is None and row is None):
            for each in subscribers.of(event.at):
                answers.add(each, row, event.time)
    return Applied(emissions=answers.emissions(), updates=subscribers.updates())


def _subscribed(
    event: Event, each: Subscription, row: bytes | None, time: int | None, subscribers: Subscribers, answers: _Answers
) -> None:
    if each.instruction is Instruction.DELETE_KEY_NO_PROPAGATE:
        subscribers.remove(event.at, each, event.time)
        return
    subscribers.put(event.at, each, event.time)
    answers.add(each, row, event.time if row is None or time is None else max(event.time, time))


@dataclass(slots=True)
class Subscribers:
    """The subscriptions to each row, as they come to be during a batch; `stores` have them as they were before it."""

    stores: Mapping[int, KeyValueStore]
    _known: dict[At, dict[bytes, Subscription]] = field(default_factory=dict)
    _changed: dict[At, dict[bytes, tuple[Subscription | None, int]]] = field(default_factory=dict)

    def of(self, at: At) -> list[Subscription]:
        """Those to a row, in the order of the keys of those that subscribe."""
        if at not in self._known:
            self._known[at] = self._stored(at)
            for key, (each, _) in self._changed.get(at, {}).items():
                self._follow(at, key, each)
        return [each for _, each in sorted(self._known[at].items())]

    def put(self, at: At, each: Subscription, time: int) -> None:
        """Keep one, in place of an older one of the same left row. Time in ms."""
        self._change(at, each.key, each, time)

    def remove(self, at: At, each: Subscription, time: int) -> None:
        """Keep it no longer."""
        self._change(at, each.key, None, time)

    def updates(self) -> list[tuple[AnyStore, Updates]]:
        """What the stores will hold."""
        changed: dict[int, list[tuple[bytes, bytes | None, int]]] = {}
        for (partition, foreign_key), of_row in self._changed.items():
            changed.setdefault(partition, []).extend(
                (combined_key(foreign_key, key), None if each is None else each.to_bytes(), time)
                for key, (each, time) in of_row.items()
            )
        found: list[tuple[AnyStore, Updates]] = []
        for partition, rows in changed.items():
            keys, values, times = zip(*rows, strict=True)
            found.append((self.stores[partition], Updates(keys, values, times)))
        return found

    def _change(self, at: At, key: bytes, each: Subscription | None, time: int) -> None:
        self._changed.setdefault(at, {})[key] = (each, time)
        if at in self._known:
            self._follow(at, key, each)

    def _follow(self, at: At, key: bytes, each: Subscription | None) -> None:
        self._known[at].pop(key, None)
        if each is not None:
            self._known[at][key] = each

    def _stored(self, at: At) -> dict[bytes, Subscription]:
        partition, prefix = at[0], prefix_of(at[1])
        rows = self.stores[partition].scan(prefix, behind(prefix))
        found = (Subscription.of(value) for key, value in rows if key.startswith(prefix))
        return {each.key: each for each in found}


@dataclass(slots=True)
class _Answers:
    """Answers in order, by the partition of the left table that they go to."""

    topic: str
    _by_partition: dict[int, list[tuple[bytes, bytes, int]]] = field(default_factory=dict)

    def add(self, to: Subscription, row: bytes | None, time: int) -> None:
        answer = (to.key, Response(to.hash, row).to_bytes(), time)
        self._by_partition.setdefault(to.partition, []).append(answer)

    def emissions(self) -> list[Emission]:
        found = []
        for partition, answers in self._by_partition.items():
            keys, values, times = zip(*answers, strict=True)
            found.append(Emission(self.topic, True, list(keys), list(values), list(times), partition=partition))
        return found
