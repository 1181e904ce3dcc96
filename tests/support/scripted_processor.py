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
        self.pass_on(record.with_value({"seen": text}), 0 if record.value is None else record.value["n"])

    def pass_on(self, record: ProcessorRecord, number: int) -> None:
        self.context.forward(record)

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
        self.pass_on(ProcessorRecord(key, {"seen": text}, time), time)


class Addressing(Scripted):
    """Forwards to one of two outputs, or to both, as a number says."""

    def pass_on(self, record: ProcessorRecord, number: int) -> None:
        match number % 4:
            case 1:
                self.context.forward(record, to="large")
            case 2:
                self.context.forward(record, to="small")
            case 3:
                self.context.forward(record, to="small")
                self.context.forward(record)
            case _:
                self.context.forward(record)


class Windowing:
    """Keeps numbers in windows of 10 ms, and tells what a record asks for; by a punctuator too."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self.windows = context.state_store("windows")
        context.schedule(timedelta(milliseconds=7), PunctuationType.STREAM_TIME, self.sweep)

    def process(self, record: ProcessorRecord) -> None:
        self.context.forward(record.with_value({"seen": self.done(record)}))

    def done(self, record: ProcessorRecord) -> str:  # noqa: PLR0911 - an answer for each operation
        key = record.key
        if key is None:
            return "no key"
        op, n = ("gone", 0) if record.value is None else (record.value["op"], record.value["n"])
        time, at = record.timestamp, record.timestamp // 10 * 10
        match op:
            case "put" | "absent" | "twice":
                self.windows.put(key, {"n": n}, at)
                return "put"
            case "gone" | "delete":
                self.windows.put(key, None, at)
                return "gone"
            case "range" | "from":
                return _starts(self.windows.fetch(key, time - 20, time, reverse=n % 2 == 1))
            case "all":
                return _windows(self.windows.all(reverse=n % 2 == 1))
            case "clear":
                return _windows(self.windows.fetch_all(time - 20, time, reverse=n % 2 == 1))
        return _shown(self.windows.fetch(key, at))

    def sweep(self, time: int) -> None:
        found = _windows(self.windows.all())
        if found:
            key, _, start = found.split("=")[0].partition("@")
            self.windows.put(key, None, int(start))
        self.context.forward({"seen": f"swept {found}"}, key="sweep", timestamp=time)


class Sessioning:
    """Keeps numbers in sessions, merged or as the record says, and tells what it asks for; by a punctuator too."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self.sessions = context.state_store("sessions")
        context.schedule(timedelta(milliseconds=7), PunctuationType.STREAM_TIME, self.sweep)

    def process(self, record: ProcessorRecord) -> None:
        self.context.forward(record.with_value({"seen": self.done(record)}))

    def done(self, record: ProcessorRecord) -> str:  # noqa: PLR0911 - an answer for each operation
        key = record.key
        if key is None:
            return "no key"
        op, n = ("gone", 0) if record.value is None else (record.value["op"], record.value["n"])
        time, reverse = record.timestamp, n % 2 == 1
        match op:
            case "put":
                self.sessions.put(key, {"n": n}, max(time - 4 * n, 0), time)
                return "put"
            case "absent" | "twice":
                return self.merged(key, n, time)
            case "gone" | "delete":
                return self.removed(key, time)
            case "range":
                return _sessions(self.sessions.find_sessions(key, time - 20, time, reverse=reverse))
            case "from":
                return _sessions(self.sessions.fetch(key, reverse=reverse))
            case "all":
                return _sessions(self.sessions.fetch(None, None, reverse=reverse))
            case "clear":
                return _sessions(self.sessions.find_sessions("b", key, time - 20, time - 2, reverse=reverse))
        return _shown(self.sessions.fetch_session(key, max(time - 4 * n, 0), time))

    def merged(self, key: str, number: int, time: int) -> str:
        """The sessions of a gap of 5 ms that the time belongs to, as one."""
        start = end = time
        for session, value in self.sessions.find_sessions(key, time - 5, time + 5):
            number += value["n"]
            start, end = min(start, session.start), max(end, session.end)
            self.sessions.remove(*session)
        self.sessions.put(key, {"n": number}, start, end)
        return f"{start}-{end}={number}"

    def removed(self, key: str, time: int) -> str:
        """Those that the time lies in."""
        found = [*self.sessions.find_sessions(key, time, time)]
        for session, _ in found:
            self.sessions.remove(*session)
        return f"removed {_sessions(found)}"

    def sweep(self, time: int) -> None:
        found = [*self.sessions.all()]
        if found:
            self.sessions.put(found[0][0].key, None, found[0][0].start, found[0][0].end)
        self.context.forward({"seen": f"swept {_sessions(found)}"}, key="sweep", timestamp=time)


class Sweeping(Scripted):
    """With one schedule."""

    counts = False


class Counting(Scripted):
    """With the other one."""

    sweeps = False


def _shown(value: dict[str, Any] | None) -> str:
    return "null" if value is None else str(value["n"])


def _starts(entries: Iterable[tuple[int, dict[str, Any]]]) -> str:
    return ",".join(f"{start}={value['n']}" for start, value in entries)


def _windows(entries: Iterable[tuple[tuple[str, int], dict[str, Any]]]) -> str:
    return ",".join(f"{key}@{start}={value['n']}" for (key, start), value in entries)


def _sessions(entries: Iterable[tuple[Any, dict[str, Any]]]) -> str:
    return ",".join(f"{key}@{start}-{end}={value['n']}" for (key, start, end), value in entries)


def _texts(entries: _Entries) -> str:
    return ",".join(f"{key}={value['n']}" for key, value in entries)
