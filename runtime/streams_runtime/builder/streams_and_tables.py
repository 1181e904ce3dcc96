"""Streams and tables of a builder: each method adds a step and gives what flows out of it.

Names are those of Kafka Streams' DSL in Python's spelling; expressions are Spark SQL. A step that internal topics or
stores are called after is given its name, others have one by their input where none is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streams_runtime.builder.branches import BranchedKStream
from streams_runtime.builder.builder_global_tables import GlobalKTable
from streams_runtime.builder.flow import Flow
from streams_runtime.builder.grouped_streams import KGroupedStream
from streams_runtime.builder.grouped_tables import KGroupedTable
from streams_runtime.builder.processed_streams import ProcessedFlow
from streams_runtime.builder.recording import refused
from streams_runtime.builder.window_arguments import Time


class KTable(Flow):
    """A table: the last value of each key (Kafka Streams' KTable). Methods add steps as Flow says."""

    def join(
        self,
        other: KTable,
        select: Mapping[str, str],
        *,
        name: str | None = None,
        key: str | None = None,
        store: str | None = None,
    ) -> KTable:
        """Join with another table: a row for each key that both have (KTable#join).

        The result is a table that changes with either. `select` adds or replaces columns: name to expression, in which
        `other`'s columns stand behind its name and a dot. With `key`, an expression over this table's columns, each row
        joins the row of `other` that has this key (a foreign key, KIP-213); the result is then kept in `store`, whose
        name the step has too where `name` is absent.

        Raises:
            ConfigException: `key` without `store`, or `other` is of another builder.
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
        """Join, and keep rows that `other` has nothing for, with nulls for its columns (KTable#leftJoin).

        Parameters and errors are those of `join`.
        """
        return self._joined("left_join", "left", other, select, name, key, store)

    def outer_join(self, other: KTable, select: Mapping[str, str], *, name: str | None = None) -> KTable:
        """Join by the tables' keys, and keep rows that only one of both has, with nulls (KTable#outerJoin).

        Parameters and errors are those of `join`; there is no foreign key.
        """
        return self._joined("outer_join", "outer", other, select, name)

    def to_stream(self, *, name: str | None = None) -> KStream:
        """Take the table's changes as a stream of records (KTable#toStream).

        Where a row was deleted the record has no value. Raises as every method of Flow does.
        """
        return KStream(self._recording, self._step("to_stream", name, {"toStream": {}}))

    def suppress(
        self,
        within: Time,
        *,
        name: str,
        records: int | None = None,
        bytes: int | None = None,
        full: str | None = None,
    ) -> KStream:
        """Take the last of each key's changes within a time as a stream (KTable#suppress with untilTimeLimit, and
        toStream behind it).

        A change waits until stream time is `within` past the first one of its key that waits. At most `records` keys
        and `bytes` wait in a task; where that is full the oldest go on early (`full="emitEarly"`, as without it), or
        the application stops (`"fail"`). The step keeps a store, which is called after `name`. Raises as every method
        of Flow does.
        """
        bounds = {"records": records, "bytes": bytes, "full": full}
        buffer = bounds if any(each is not None for each in bounds.values()) else None
        fields = {"toStream": {"suppress": {"within": within, "buffer": buffer}}}
        return KStream(self._recording, self._step("suppress", name, fields))

    def group_by(self, expression: str) -> KGroupedTable:
        """Group the rows by another key, to be aggregated (KTable#groupBy). Raises nothing.

        `expression` is Spark SQL over a row; rows whose group is null count in none.
        """
        return KGroupedTable(self._recording, self.name, expression, lambda name: KTable(self._recording, name))

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


class KStream(ProcessedFlow):
    """A stream of records (Kafka Streams' KStream). Methods add steps as Flow says."""

    def flat_map(self, explode: str, as_: str, *, name: str | None = None) -> KStream:
        """Make a record of each element of an array, in the array's order (KStream#flatMapValues).

        `explode` is a Spark SQL expression for the array, `as_` the column that holds the element; the other columns
        stay. A null or empty array gives no record. Raises as every method of Flow does.
        """
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
        """Log or count records that pass, and change none (KStream#peek). A batch that is read again is shown again.

        `log` is an expression whose text is logged, at `level` (`info`, or `debug`), at most `at_most` lines a second
        of each thread (10). `metric` counts records under this name, and adds up the numeric expression `value` (1).
        Raises as every method of Flow does.
        """
        shown = {"log": log, "level": level, "atMost": at_most, "metric": metric, "value": value}
        return self._also("peek", name, {"peek": shown})

    def headers(self, headers: Mapping[str, str], *, name: str | None = None) -> KStream:
        """Set headers of each record: name to Spark SQL expression. Headers of the same names are replaced.

        Bytes stay as they are, anything else is written as text, and null takes the header away. Kafka Streams does so
        in processors only. Raises as every method of Flow does.
        """
        return self._also("headers", name, {"headers": headers})

    def dedupe(self, within: Time, *, name: str, by: str | None = None) -> KStream:
        """Drop records with the id of an earlier one (KIP-655) at most `within` away in time, before it or behind.

        `by` is an expression for the id; None: the record's key. Records with one id have to be in one partition, and
        those whose id is null all pass. The step keeps a store, which is called after `name`. Raises as every method of
        Flow does.
        """
        return self._also("dedupe", name, {"dedupe": {"within": within, "by": by}})

    def merge(self, *others: KStream, name: str | None = None) -> KStream:
        """Put the records of several streams into one (KStream#merge); all need the same columns.

        Raises:
            ConfigException: one of `others` is of another builder.
        """
        fields = {"merge": [self.name, *(self._checked(each) for each in others)]}
        return KStream(self._recording, self._step("merge", name, fields, inputs=False))

    def to_table(self, store: str, *, name: str | None = None, history_retention: Time | None = None) -> KTable:
        """Keep the last value of each key as a table, in the key-value store `store` (KStream#toTable).

        A record without a value deletes its key's row. With `history_retention` the store also keeps what each key had,
        so long back in stream time (Stores#persistentVersionedKeyValueStore). The step is called as the store where
        `name` is absent. Raises as every method of Flow does.
        """
        given = name if name is not None else store
        kept = {"store": store, "historyRetention": history_retention}
        return KTable(self._recording, self._step("to_table", given, {"toTable": kept}))

    def split(self, *, name: str) -> BranchedKStream:
        """Divide the stream (KStream#split, KIP-418): call `.branch(…)` for each condition, in order.

        Raises as every method of Flow does.
        """
        split: list[Any] = []
        step = self._recording.add("steps", "split", {"name": name, "from": self.name, "split": split})
        return BranchedKStream(step, split, lambda branch: KStream(self._recording, branch))

    def select_key(self, expression: str, *, name: str) -> KStream:
        """Give each record another key: the value of a Spark SQL expression (KStream#selectKey).

        The repartition topic, which exists where something stateful follows, is called after `name`. Raises as every
        method of Flow does.
        """
        return self._also("select_key", name, {"keyBy": expression})

    key_by = select_key

    def repartition(self, partitions: int | None = None, *, name: str, partition_by: str | None = None) -> KStream:
        """Spread the records over a topic of `partitions` partitions by their keys (KStream#repartition, KIP-221).

        Without a number it has as many as the largest topic that the records come from. `partition_by` is an expression
        that gives each record its partition (a StreamPartitioner); null: its key does. The topic is called after
        `name`. Raises as every method of Flow does.
        """
        return self._also("repartition", name, {"repartition": {"partitions": partitions, "partitionBy": partition_by}})

    def group_by_key(self) -> KGroupedStream:
        """Group the records by their key, to be aggregated (KStream#groupByKey). Raises nothing."""
        return KGroupedStream(self._recording, self.name, lambda name: KTable(self._recording, name))

    def group_by(self, expression: str, *, name: str) -> KGroupedStream:
        """Group the records by another key (KStream#groupBy): `select_key` with this name, then `group_by_key`.

        Raises as every method of Flow does.
        """
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
        """Join each record with what `other` has for its key, and drop it where that is nothing (KStream#join).

        `select` adds or replaces columns: name to expression, in which `other`'s columns stand behind its name and a
        dot. With a global table `key` is the expression that is looked up. With a stream `within` is how far apart two
        records may lie in time, both ways or as `{"before": …, "after": …}`, `grace` how much later one may come, and
        stores are called after `name`.

        Raises:
            ConfigException: a join of two streams without a name, or `other` is of another builder.
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
        """Join, and keep records that `other` has nothing for, with nulls for its columns (KStream#leftJoin).

        Of two streams such a record goes on once no match can come in time. Parameters and errors are those of `join`.
        """
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
        """Join two streams, and keep records of either that have no match, with nulls (KStream#outerJoin).

        They go on once no match can come in time. Parameters and errors are those of `join`.
        """
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
