"""The processor of oracle/driver/Processors.java, as users write it here."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from streams_runtime import ProcessorContext, ProcessorRecord, PunctuationType

_Entries = Iterable[tuple[str, dict[str, Any]]]


class Scripted:
    """Does what each record says, and tells of it."""

    sweeps, counts = True, True

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self.seen = context.state_store("seen" if self.sweeps else "other")
        stream, clock = PunctuationType.STREAM_TIME, PunctuationType.WALL_CLOCK_TIME
        made = []
        if self.sweeps:
            made.append(context.schedule(timedelta(milliseconds=7), stream, self.sweep))
        if self.counts:
            made.append(context.schedule(timedelta(milliseconds=10), stream, self.count))
        if self.sweeps and self.counts:
            context.schedule(timedelta(milliseconds=47), clock, self.tick)
            context.schedule(timedelta(milliseconds=30), clock, self.tock)
        self.first = made[0]

    def process(self, record: ProcessorRecord) -> None:
        metadata = self.context.record_metadata()
        where = "nowhere" if metadata is None else metadata.offset
        done = self.done(record)
        text = f"{where} at {self.context.current_stream_time_ms()}: {done}"
        self.context.forward(record.with_value({"seen": text}))

    def done(self, record: ProcessorRecord) -> str:  # noqa: PLR0911 - an answer for each operation
        key = record.key
        if key is None:
            return "no key"
        if record.value is None:
            return _shown(self.seen.delete(key))
        op, n = record.value["op"], record.value["n"]
        match op:
            case "put" | "gone":
                self.seen.put(key, None if op == "gone" else {"n": n})
                return str(op)
            case "absent":
                return _shown(self.seen.put_if_absent(key, {"n": n}))
            case "delete":
                return _shown(self.seen.delete(key))
            case "range":
                return _texts(self.seen.range("b", key, reverse=n % 2 == 1))
            case "from":
                return _texts(self.seen.range(key, None))
            case "all":
                return _texts(self.seen.all(reverse=n % 2 == 1))
            case "clear":
                return self.cleared()
            case "cancel":
                self.first.cancel()
                return "cancelled"
            case "twice":
                moved = ProcessorRecord(f"{key}!", {"seen": "moved"}, record.timestamp + 1000)
                self.context.forward(moved)
                self.context.forward(record.with_value(None))
                return "twice"
        return _shown(self.seen.get(key))

    def cleared(self) -> str:
        """Deletes each key that it comes to, and puts one behind all."""
        found: list[str] = []
        for key, value in self.seen.all():
            found.append(f"{key}={value['n']}")
            self.seen.delete(key)
            self.seen.put("zz", {"n": len(found)})
        return ",".join(found)

    def sweep(self, time: int) -> None:
        found = _texts(self.seen.all())
        if found:
            self.seen.delete(found[: found.index("=")])
        self.tell("sweep", f"swept {found}", time)

    def count(self, time: int) -> None:
        self.tell("count", f"{len(_texts(self.seen.all()))} at {time}", time)

    def tick(self, time: int) -> None:
        self.seen.put("tick", {"n": time})
        self.tell("tick", f"tick {time} in {self.context.current_stream_time_ms()}", time)

    def tock(self, time: int) -> None:
        self.tell("tock", f"tock {_texts(self.seen.all())}", time + 5)

    def tell(self, key: str, text: str, time: int) -> None:
        self.context.forward({"seen": text}, key=key, timestamp=time)


class Sweeping(Scripted):
    """With one schedule."""

    counts = False


class Counting(Scripted):
    """With the other one."""

    sweeps = False


def _shown(value: dict[str, Any] | None) -> str:
    return "null" if value is None else str(value["n"])


def _texts(entries: _Entries) -> str:
    return ",".join(f"{key}={value['n']}" for key, value in entries)
