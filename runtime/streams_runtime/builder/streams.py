"""Streams and tables of a builder: each method adds a step and gives what flows out of it.

Names are those of Kafka Streams' DSL in Python's spelling; expressions are Spark SQL. A step that internal topics or
stores are called after is given its name, others have one by their input where none is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from streams_runtime.api.mistakes import suggestion
from streams_runtime.api.names import branch_name
from streams_runtime.builder.formats import Format, format_document
from streams_runtime.builder.global_tables import GlobalKTable
from streams_runtime.builder.recording import Recording, plain, refused
from streams_runtime.builder.windows import Time, Windows


class Flow:
    """What streams and tables have in common. `name` is what expressions of joins call it."""

    def __init__(self, recording: Recording, name: str) -> None:
        self.name = name
        self._recording = recording

    def filter(self, condition: str, *, name: str | None = None) -> Self:
        """Leave out the records for which `condition` is not true; of a table, delete the rows."""
        return self._also("filter", name, {"where": condition})

    def select(self, columns: Mapping[str, str] | None = None, /, *, name: str | None = None, **more: str) -> Self:
        """The new value: an expression for each column, as a mapping or by keyword. The key stays (mapValues)."""
        return self._also("select", name, {"select": {**(columns or {}), **more}})

    map_values = select

    def to(self, topic: str, *, key: Format | None = None, value: Format | None = None) -> None:
        """Write the records to `topic`. Absent: `key` as the key is, `value` as json."""
        fields = {"from": self.name, "topic": topic, "key": format_document(key), "value": format_document(value)}
        self._recording.add("sinks", "to", fields)

    def _also(self, method: str, name: str | None, fields: Mapping[str, Any]) -> Self:
        return type(self)(self._recording, self._step(method, name, fields))

    def _step(self, method: str, name: str | None, fields: Mapping[str, Any], inputs: bool = True) -> str:
        given = name if name is not None else self._recording.derived(f"{self.name}-{method.replace('_', '-')}")
        taken = {"from": self.name} if inputs else {}
        self._recording.add("steps", method, {"name": given, **taken, **fields})
        return given

    def _checked(self, other: Flow | GlobalKTable) -> str:
        if other._recording is not self._recording:
            raise refused(f"{other.name!r} belongs to another StreamsBuilder; take both from one builder")
        return other.name


class KTable(Flow):
    """A table: the last value of each key."""

    def join(
        self,
        other: KTable,
        select: Mapping[str, str],
        *,
        name: str | None = None,
        key: str | None = None,
        store: str | None = None,
    ) -> KTable:
        """What both tables hold for a key; `select` adds columns, `other`'s being named behind its name and a dot.

        With `key`, an expression over this table's columns, each row stands beside the row of `other` with the key that
        it gives (a foreign key). Then the result is kept in `store`, and `name`, which its internal topics are called
        after, is the store's where it is absent.
        """
        return self._joined("join", "inner", other, select, name, key, store)

    def left_join(
        self,
        other: KTable,
        select: Mapping[str, str],
        *,
        name: str | None = None,
        key: str | None = None,
        store: str | None = None,
    ) -> KTable:
        """The same, with nulls where only this table has the key, or `other` has not the one that `key` gives."""
        return self._joined("left_join", "left", other, select, name, key, store)

    def outer_join(self, other: KTable, select: Mapping[str, str], *, name: str | None = None) -> KTable:
        """The same, with nulls where only one of both has the key."""
        return self._joined("outer_join", "outer", other, select, name)

    def to_stream(self, *, name: str | None = None) -> KStream:
        """The table's changes as records: one without a value where a row was deleted."""
        return KStream(self._recording, self._step("to_stream", name, {"toStream": {}}))

    def _joined(
        self,
        method: str,
        type: str,
        other: KTable,
        select: Mapping[str, str],
        name: str | None,
        key: str | None = None,
        store: str | None = None,
    ) -> KTable:
        if key is not None and store is None:
            raise refused(
                f"{method} of the tables {self.name!r} and {other.name!r} by {key!r} has no store for its result; give"
                " store="
            )
        join = {"table": self._checked(other), "key": key, "type": type, "select": select}
        return self._also(method, name if name is not None else store, {"join": join, "store": store})


class KStream(Flow):
    """A stream of records."""

    def flat_map(self, explode: str, as_: str, *, name: str | None = None) -> KStream:
        """A record of each element of the array that `explode` gives, in the column `as_` (flatMapValues)."""
        return self._also("flat_map", name, {"flatMap": {"explode": explode, "as": as_}})

    flat_map_values = flat_map

    def peek(
        self,
        *,
        log: str | None = None,
        level: str | None = None,
        at_most: int | None = None,
        metric: str | None = None,
        value: str | None = None,
        name: str | None = None,
    ) -> KStream:
        """Log or count records that pass, and change none."""
        shown = {"log": log, "level": level, "atMost": at_most, "metric": metric, "value": value}
        return self._also("peek", name, {"peek": shown})

    def headers(self, headers: Mapping[str, str], *, name: str | None = None) -> KStream:
        """Give each record headers, in place of those of the same names: an expression for each; null takes it away."""
        return self._also("headers", name, {"headers": headers})

    def dedupe(self, within: Time, *, name: str, by: str | None = None) -> KStream:
        """Leave out records with the id of another one at most `within` away in time. The store has `name` in it."""
        return self._also("dedupe", name, {"dedupe": {"within": within, "by": by}})

    def merge(self, *others: KStream, name: str | None = None) -> KStream:
        """The records of several streams as one; same columns in all."""
        fields = {"merge": [self.name, *(self._checked(each) for each in others)]}
        return KStream(self._recording, self._step("merge", name, fields, inputs=False))

    def to_table(self, store: str, *, name: str | None = None) -> KTable:
        """A table of the last value of each key, kept in `store`. Absent: the step's `name` is the store's."""
        given = name if name is not None else store
        return KTable(self._recording, self._step("to_table", given, {"toTable": {"store": store}}))

    def split(self, *, name: str) -> BranchedKStream:
        """Divide the stream: `.branch(…)` for each condition, in the order in which they are tried."""
        split: list[Any] = []
        step = self._recording.add("steps", "split", {"name": name, "from": self.name, "split": split})
        return BranchedKStream(self._recording, step, split)

    def select_key(self, expression: str, *, name: str) -> KStream:
        """Another key. `name`: the repartition topic, where something stateful follows, is called so."""
        return self._also("select_key", name, {"keyBy": expression})

    key_by = select_key

    def group_by_key(self) -> KGroupedStream:
        """The records by their key, to be aggregated."""
        return KGroupedStream(self._recording, self.name)

    def group_by(self, expression: str, *, name: str) -> KGroupedStream:
        """The records by another key: `select_key` and `group_by_key`."""
        return self.select_key(expression, name=name).group_by_key()

    def join(
        self,
        other: KTable | GlobalKTable | KStream,
        select: Mapping[str, str],
        *,
        key: str | None = None,
        name: str | None = None,
        within: Time | Mapping[str, Time] | None = None,
        grace: Time | None = None,
    ) -> KStream:
        """What a table holds for each record's key, or the records of a stream with its key within a time.

        `select` adds columns, those of `other` being named behind its name and a dot. Of a global table `key` is the
        expression that is looked up, whatever the record's key. Of two streams `within` is a time both ways or
        `{"before": …, "after": …}`, and `name` is what its stores are called after.
        """
        return self._joined("join", "inner", other, select, name, within, grace, key)

    def left_join(
        self,
        other: KTable | GlobalKTable | KStream,
        select: Mapping[str, str],
        *,
        key: str | None = None,
        name: str | None = None,
        within: Time | Mapping[str, Time] | None = None,
        grace: Time | None = None,
    ) -> KStream:
        """The same, with nulls for records that the other side has nothing for."""
        return self._joined("left_join", "left", other, select, name, within, grace, key)

    def outer_join(
        self,
        other: KStream,
        select: Mapping[str, str],
        *,
        name: str,
        within: Time | Mapping[str, Time],
        grace: Time | None = None,
    ) -> KStream:
        """The same of two streams, with nulls for what only one of both has."""
        return self._joined("outer_join", "outer", other, select, name, within, grace)

    def _joined(
        self,
        method: str,
        type: str,
        other: KTable | GlobalKTable | KStream,
        select: Mapping[str, str],
        name: str | None,
        within: Time | Mapping[str, Time] | None,
        grace: Time | None,
        key: str | None = None,
    ) -> KStream:
        if isinstance(other, KStream) and name is None:
            raise refused(
                f"{method} of the streams {self.name!r} and {other.name!r} has no name, and its stores are called after"
                " it; give name="
            )
        side = "stream" if isinstance(other, KStream) else "table"
        join = {
            side: self._checked(other),
            "type": type,
            "within": within,
            "grace": grace,
            "select": select,
            "key": key,
        }
        return self._also(method, name, {"join": join})


class BranchedKStream:
    """A stream that is being divided. `branches["large"]` is the stream of one branch."""

    def __init__(self, recording: Recording, step: dict[str, Any], branches: list[Any]) -> None:
        self._recording = recording
        self._step = step
        self._branches = branches

    def branch(self, condition: str, name: str) -> BranchedKStream:
        """The records for which `condition` is the first one that is true."""
        self._branches.append(plain({"name": name, "where": condition}))
        return self

    def default_branch(self, name: str) -> BranchedKStream:
        """The records that no condition is true for; without it they are left out."""
        self._step["default"] = plain(name)
        return self

    def __getitem__(self, name: str) -> KStream:
        """The stream of one branch. Raises ConfigException where no branch is called so."""
        known = [str(each["name"]) for each in self._branches]
        known += [str(self._step["default"])] if "default" in self._step else []
        if name not in known:
            raise refused(f"{self._step['name']!r} has no branch {name!r}; {suggestion(name, known)}")
        return KStream(self._recording, branch_name(self._step["name"], name))


class KGroupedStream:
    """Records by their key, to be aggregated."""

    def __init__(self, recording: Recording, input: str, window: Mapping[str, Any] | None = None) -> None:
        self._recording = recording
        self._input = input
        self._window = window
        self._suppress: str | None = None

    def aggregate(
        self, columns: Mapping[str, str] | None = None, /, *, store: str, name: str | None = None, **more: str
    ) -> KTable:
        """For each key an aggregate function of Spark SQL for each column, as a mapping or by keyword.

        Absent: the step's `name` is the store's.
        """
        return self._aggregated("aggregate", {**(columns or {}), **more}, store, name)

    def count(self, column: str = "count", *, store: str, name: str | None = None) -> KTable:
        """How many records each key has, in `column`."""
        return self._aggregated("count", {column: "count(*)"}, store, name)

    def windowed_by(
        self, windows: Windows, *, retention: Time | None = None, late: str | None = None
    ) -> WindowedKStream:
        """The records of each window by themselves.

        `retention`: how long windows can be queried. `late`: the topic for records that come too late.
        """
        window = {windows.kind: windows.fields, "retention": retention, "late": late and {"topic": late}}
        return WindowedKStream(self._recording, self._input, window)

    def _aggregated(self, method: str, columns: Mapping[str, str], store: str, name: str | None) -> KTable:
        given = name if name is not None else store
        fields = {"name": given, "from": self._input, "window": self._window, "aggregate": columns, "store": store}
        self._recording.add("steps", method, {**fields, "suppress": self._suppress})
        return KTable(self._recording, given)


class WindowedKStream(KGroupedStream):
    """Records by key and window, to be aggregated."""

    def suppress(self, until: str = "untilWindowCloses") -> WindowedKStream:
        """Have only the last contents of each window passed on, once it has closed.

        It stands before the aggregate and not behind it as in Java: the step is one, and a table that some read with
        every change and others closed would be two.
        """
        suppressed = WindowedKStream(self._recording, self._input, self._window)
        suppressed._suppress = until
        return suppressed
