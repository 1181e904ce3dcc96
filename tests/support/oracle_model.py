"""What the oracle's stores should come to, record by record, and the changes of each batch: plain Python."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

import orjson
from oracle_inputs import MINUTE, Input
from oracle_stores import FORMATS, PARTITIONS

from streams_runtime.kafka.producer.partitioner import partition_for
from streams_runtime.state.serdes import key_serde, value_serde
from streams_runtime.state.store import Updates
from streams_runtime.state.window_keys import session_key, window_key
from streams_runtime.topology.nodes.source_and_sink_nodes import Format

_GAP = MINUTE  # of sessions

Session = tuple[int, int, int, int]
"""Start and end (ms), total, number of records."""


class Model:
    """Running results of the application `stores`; late records count like all others."""

    def __init__(self) -> None:
        self.counts: defaultdict[str, int] = defaultdict(int)
        self.tumbling: defaultdict[tuple[str, int], int] = defaultdict(int)
        self.hopping: dict[tuple[int, int], tuple[int, int]] = {}
        self.sessions: defaultdict[str, list[Session]] = defaultdict(list)
        self._times: dict[tuple[str, bytes], int] = {}
        self._changed: defaultdict[tuple[str, int], dict[bytes, tuple[bytes | None, int]]] = defaultdict(dict)

    def take(self, events: Iterable[Input], readings: Iterable[Input]) -> Mapping[tuple[str, int], Updates]:
        """The changes that a batch of records makes, by store and partition: the last one of each key."""
        self._changed.clear()
        for event in events:
            assert isinstance(event.key, str)
            assert isinstance(event.value, int)
            self._event(event.key, event.value, event.time)
        for reading in readings:
            assert isinstance(reading.key, int)
            self._reading(reading.key, None if reading.value is None else str(reading.value), reading.time)
        return {
            where: Updates(list(found), [value for value, _ in found.values()], [time for _, time in found.values()])
            for where, found in self._changed.items()
        }

    def _event(self, key: str, amount: int, time: int) -> None:
        data = key.encode()
        self.counts[key] += 1
        self._change("counts", data, data, self.counts[key], time)
        start = time - time % MINUTE
        self.tumbling[key, start] += 1
        self._change("tumbling", data, window_key(data, start), self.tumbling[key, start], time)
        met = [it for it in self.sessions[key] if it[0] - _GAP <= time <= it[1] + _GAP]
        for session in met:
            self.sessions[key].remove(session)
            self._change("sessions", data, session_key(data, *session[:2]), None, session[1])
        first, last = min([time, *(it[0] for it in met)]), max([time, *(it[1] for it in met)])
        merged = (first, last, amount + sum(it[2] for it in met), 1 + sum(it[3] for it in met))
        self.sessions[key].append(merged)
        self._change("sessions", data, session_key(data, first, last), _totals(*merged[2:]), last)

    def _reading(self, key: int, text: str | None, time: int) -> None:
        data = key_serde(Format("long")).encode(key)
        self._change("latest", data, data, text, time)
        for start in range(max(time - time % MINUTE - 4 * MINUTE, 0), time + 1, MINUTE):
            total, n = self.hopping.pop((key, start), (0, 0))
            if text is not None:
                self.hopping[key, start] = (total + len(text), n + 1)
            value = None if text is None else _totals(total + len(text), n + 1)
            self._change("hopping", data, window_key(data, start), value, time)

    def _change(self, store: str, key: bytes, changelog_key: bytes, value: object, time: int) -> None:
        encoded = None if value is None else value_serde(Format(FORMATS[store][1])).encode(value)
        at = time if encoded is None else max(time, self._times.get((store, changelog_key), time))
        self._times[store, changelog_key] = at
        # What changes last comes last, as in a changelog of single records.
        changes = self._changed[store, partition_for(key, PARTITIONS)]
        changes.pop(changelog_key, None)
        changes[changelog_key] = (encoded, at)


def _totals(total: int, n: int) -> dict[str, int]:
    return {"total": total, "n": n}


def sums(orders: Iterable[Input]) -> dict[str, dict[str, int]]:
    """Total and number of the orders of each key, as the application `totals` keeps them."""
    found: dict[str, dict[str, int]] = {}
    for order in orders:
        state = found.setdefault(str(order.key), _totals(0, 0))
        state["total"] += orjson.loads(str(order.value))["amount"]
        state["n"] += 1
    return found
