"""Processors as users write them: one that does whatever its records say, and some that make one mistake each."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from streams_runtime.processors.user_processors.processor_context import ProcessorContext
from streams_runtime.processors.user_processors.processor_records import ProcessorRecord, PunctuationType


class Everything:
    """Reads and writes its store as a record's `op` says, and tells what it has seen."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self.seen = context.state_store("seen")
        self.first = context.schedule(timedelta(milliseconds=7), PunctuationType.STREAM_TIME, self.sweep)
        context.schedule(timedelta(milliseconds=10), PunctuationType.STREAM_TIME, self.count)
        context.schedule(timedelta(milliseconds=50), PunctuationType.WALL_CLOCK_TIME, self.tick)

    def process(self, record: ProcessorRecord) -> None:
        where = str(self.context.record_metadata()).rsplit("-", 1)[-1]
        self.tell(f"{where} at {self.context.current_stream_time_ms()}: {self.done(record)}")

    def done(self, record: ProcessorRecord) -> Any:  # noqa: PLR0911 - an answer for each operation
        if record.value is None:
            return self.seen.delete(record.key)
        op, n = record.value["op"], record.value["n"]
        match op:
            case "put":
                return self.seen.put(record.key, {"n": n})
            case "absent":
                return self.seen.put_if_absent(record.key, {"n": n})
            case "range":
                return list(self.seen.range("b", record.key, reverse=n % 2 == 1))
            case "prefix":
                return list(self.seen.prefix_scan(record.key))
            case "all":
                found = self.seen.all(reverse=n % 2 == 1)
                self.seen.put("zz", {"n": n})  # an iterator shows what was there when it was asked for
                return list(found)
            case "cancel":
                return self.first.cancel()
            case "twice":
                self.context.forward({"seen": "moved"}, key=f"{record.key}!", timestamp=record.timestamp + 1000)
                return self.context.forward(record.with_value(None).with_headers((("h", b"1"),)))
        return self.seen.get(record.key)

    def sweep(self, time: int) -> None:
        entries = list(self.seen.all())
        if entries:
            self.seen.delete(entries[0][0])
        self.context.forward({"seen": f"swept {entries}"}, key="sweep", timestamp=time)

    def count(self, time: int) -> None:
        self.context.forward({"seen": f"{len(list(self.seen.all()))} at {time}"}, key="count")

    def tick(self, time: int) -> None:
        self.seen.put("tick", {"n": time})
        self.context.forward({"seen": f"tick {time}"}, key="tick")

    def tell(self, text: str) -> None:
        self.context.forward({"seen": text})


class Plain:
    """The least that a processor has to have."""

    def process(self, record: ProcessorRecord) -> None:
        """Forwards nothing."""


class Echo:
    """Tells what each record asks for."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context

    def process(self, record: ProcessorRecord) -> None:
        self.context.forward({"seen": None if record.value is None else record.value["op"]})


class Keeping:
    """Keeps the number of each key, and fails where a record says so, having written; no punctuator."""

    def init(self, context: ProcessorContext) -> None:
        self.seen = context.state_store("seen")

    def process(self, record: ProcessorRecord) -> None:
        if record.value is not None and record.value["op"] == "raise":
            self.seen.put("half", {"n": 1})
            raise ValueError("a bad record")
        self.seen.put(record.key, None if record.value is None else {"n": record.value["n"]})


class Failing:
    """Fails where the record, or the class's own name, says so."""

    closed = 0

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        context.schedule(timedelta(milliseconds=100), PunctuationType.STREAM_TIME, self.punctuate)

    def process(self, record: ProcessorRecord) -> None:
        op = "" if record.value is None else record.value["op"]
        if op == "raise":
            raise ValueError("a bad record")
        if op == "type":
            self.context.forward({"seen": 5})
        if op == "field":
            self.context.forward({"sen": "x"})
        if op == "store":
            self.context.state_store("sen")
        if op == "put":
            self.context.state_store("seen").put("a", {"n": "many"})
        if op == "key":
            self.context.state_store("seen").get(5)
        if op == "schedule":
            self.context.schedule(timedelta(seconds=1), PunctuationType.STREAM_TIME, self.punctuate)
        if op == "time":
            self.context.forward({"seen": "x"}, timestamp=-1)

    def punctuate(self, time: int) -> None:
        if time >= 200:
            self.context.forward({"seen": "no key"})

    def close(self) -> None:
        Failing.closed += 1


class Scattering:
    """Forwards three records of each one under one key, at other times than its own."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context

    def process(self, record: ProcessorRecord) -> None:
        for number, later in enumerate((1_000_000, -1_000, 5)):
            text = f"{self.context.record_metadata()}.{number}"
            self.context.forward({"seen": text}, key=record.key, timestamp=record.timestamp + later)


class Addressed:
    """Forwards the offset of each record to the output that it names, or to all; and once a second to one of them."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        context.schedule(timedelta(seconds=1), PunctuationType.WALL_CLOCK_TIME, self.tick)

    def process(self, record: ProcessorRecord) -> None:
        metadata = self.context.record_metadata()
        assert record.value is not None
        assert metadata is not None
        to = record.value["op"]
        self.context.forward({"seen": str(metadata.offset)}, to=None if to == "all" else to)

    def tick(self, time: int) -> None:
        self.context.forward({"seen": "tick"}, key="tick", to="large")


class Sizing:
    """Sorts orders by their amounts: 1 is small, 2 is large, and 3 is both."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context

    def process(self, record: ProcessorRecord) -> None:
        assert record.value is not None
        amount, row = record.value["amount"], {name: record.value[name] for name in ("amount", "id")}
        to = {1: "small", 2: "large"}.get(amount)
        self.context.forward(row, key=record.value["user"], to=to)


class FailingInit:
    def init(self, context: ProcessorContext) -> None:
        context.forward({"seen": "too early"}, key="a")

    def process(self, record: ProcessorRecord) -> None:
        """Never called."""


class Misnamed:
    def proces(self, record: ProcessorRecord) -> None:
        """A name that is nearly right."""


def function(record: ProcessorRecord) -> None:
    """No class."""
