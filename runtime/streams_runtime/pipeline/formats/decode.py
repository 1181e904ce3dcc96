"""Raw records to the columns that expressions see, and the account of those that can't be read.

A Column is an expression in Spark's JVM. It takes many calls to make, each with an answer to wait for, and belongs to
no DataFrame: what every batch asks for is made once.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

import orjson
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StructType, TimestampType

from streams_runtime.api.steps.format_names import OF_COLUMNS
from streams_runtime.batch.columns import NULL_VALUE, RECORD, VALUE
from streams_runtime.batch.read_accounts import Account, BrokenRecord
from streams_runtime.errors import InvalidApplicationException, Mistake
from streams_runtime.kafka.consumer.record_table import LATEST_TIME
from streams_runtime.metrics.sampled import NOTHING, Spread
from streams_runtime.pipeline.formats.json_read import JsonReader, json_reader
from streams_runtime.pipeline.formats.registered_format import RegisteredFormat
from streams_runtime.pipeline.formats.spark_formats import content, is_broken, is_null, parsed
from streams_runtime.pipeline.kafka_scan import FIELDS, READ, Wanted
from streams_runtime.pipeline.spark.observed import Observed
from streams_runtime.pipeline.spark.refused_expressions import refusing
from streams_runtime.topology.nodes.source_and_sink_nodes import Format

_BROKEN, _RAW_KEY, _RAW_VALUE = "_broken", "_raw_key", "_raw_value"
_UNFIT_TIME = "_unfit_time"  # of a record whose time is none that a record may have: that time, ms
_POSITION = ("_topic", "_partition", "_offset", _RAW_KEY, _RAW_VALUE, _UNFIT_TIME)  # sorts by where a record is
_PARSED_KEY, _PARSED_VALUE = "_parsed_key", "_parsed_value"
_ACCOUNT = "account"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Decoder:
    """How the records of one topic are read.

    `timestamp` is the expression that replaces a record's timestamp, declared at the field `timestamp_path`;
    `keep_record` keeps the record's own bytes beside its columns. `strict`: their JSON has finite numbers only; what
    the application writes for itself has texts for others (formats.parsed).
    """

    key: Format
    value: Format
    timestamp: str | None = None
    timestamp_path: str = ""
    keep_record: bool = False
    strict: bool = True
    _made: dict[str, Any] = field(default_factory=dict, init=False, compare=False, repr=False)
    """Columns that are made once, by what they are."""

    def wanted(self, headers: bool) -> Wanted:
        """What `decode` needs of records."""
        return Wanted(headers, self.json, self.keep_record or self.timestamp is not None)

    def decode(self, raw: DataFrame) -> DataFrame:
        """All records, with a mark on those whose key, value or timestamp can't be read; `readable` takes it off.

        `raw` has what is `wanted`.
        """
        # What these are parsed with grows with the schemas that are met.
        grows = isinstance(self.key, RegisteredFormat) or isinstance(self.value, RegisteredFormat)
        both_parsed, columns = self._columns() if grows else self._once("columns", self._columns)
        frame = raw.withColumns(both_parsed)
        fields = self.fields(frame, _PARSED_VALUE)
        if self.json is not None:
            fields = self._once("fields read", lambda: self._fields_read(frame, fields))
        return self._timestamped(frame.select(*columns, *fields))

    @property
    def json(self) -> JsonReader | None:
        """What reads values before they come to Spark's JVM; Spark does so itself with those that it leaves."""
        return self._once("json", self._json)

    def _json(self) -> JsonReader | None:
        if self.value.name != "json" or self.value.schema is None:
            return None
        columns = StructType.fromDDL(self.value.schema)
        assert isinstance(columns, StructType)
        return json_reader(to_arrow_schema(columns))

    def _fields_read(self, frame: DataFrame, fields: list[Column]) -> list[Column]:
        names = frame.select(*fields).columns
        return [
            F.when(F.col(READ), F.col(FIELDS)[name]).otherwise(field).alias(name)
            for name, field in zip(names, fields, strict=True)
        ]

    def readable(self, decoded: DataFrame) -> DataFrame:
        """The records that can be read: metadata, `_null`, `_record` if kept, then one column a field."""
        return decoded.where(f"not {_BROKEN}").drop(_BROKEN, _RAW_KEY, _RAW_VALUE, _UNFIT_TIME)

    def broken(self, decoded: DataFrame) -> DataFrame:
        """The records that can't be read, as they came, with _topic, _partition, _offset, _timestamp and _headers.

        `time` is the one (ms) for which a record can't be read; null where it is another reason.
        """
        return decoded.where(F.col(_BROKEN)).select(
            "_topic",
            "_partition",
            "_offset",
            F.unix_millis("_timestamp").alias("_timestamp"),
            F.col("_headers"),
            F.col(_RAW_KEY).alias("key"),
            F.col(_RAW_VALUE).alias("value"),
            F.col(_UNFIT_TIME).alias("time"),
        )

    def fields(self, frame: DataFrame, parsed_value: str) -> list[Column]:
        """The value's columns; `parsed_value` is the column of the frame that has it parsed."""
        return self._once(f"fields of {parsed_value}", lambda: self._fields(frame, F.col(parsed_value)))

    def _fields(self, frame: DataFrame, value: Column) -> list[Column]:
        if self.value.name not in OF_COLUMNS:
            return [value.alias(VALUE)]
        kind = frame.select(content(value, self.value).alias(VALUE)).schema[VALUE].dataType
        assert isinstance(kind, StructType)
        return [value[name].alias(name) for name in kind.fieldNames()]

    def _columns(self) -> tuple[dict[str, Column], list[Column]]:
        """Key and value parsed, and what is made of them and of the rest of a record, but for the value's columns."""
        key, value = F.col("key"), F.col("value")
        parsed_key, parsed_value = F.col(_PARSED_KEY), F.col(_PARSED_VALUE)
        unfit, missing = is_broken(value, parsed_value, self.value, self.strict), is_null(value, self.value)
        parsed_here = parsed(value, self.value, self.strict)
        if self.json is not None:
            left = ~F.col(READ)
            unfit, missing, parsed_here = left & unfit, left & missing, F.when(left, parsed_here)
        broken = is_broken(key, parsed_key, self.key, self.strict) | unfit
        time = F.col("timestamp")
        unfit_time = F.lit(None) if self.timestamp is not None else _unless_time(F.unix_millis(time))
        return {_PARSED_KEY: parsed(key, self.key, self.strict), _PARSED_VALUE: parsed_here}, [
            content(parsed_key, self.key).alias("_key"),
            time.alias("_timestamp"),
            F.col("topic").alias("_topic"),
            F.col("partition").alias("_partition"),
            F.col("offset").alias("_offset"),
            F.col("headers").alias("_headers"),
            key.alias(_RAW_KEY),
            value.alias(_RAW_VALUE),
            (broken | unfit_time.isNotNull()).alias(_BROKEN),
            unfit_time.cast("bigint").alias(_UNFIT_TIME),
            missing.alias(NULL_VALUE),
            *([F.struct("key", "value", "timestamp").alias(RECORD)] if self.keep_record else []),
        ]

    def _once(self, name: str, make: Callable[[], T]) -> T:
        if name not in self._made:
            self._made[name] = make()
        found: T = self._made[name]
        return found

    def registered_value(self, data: bytes) -> object:
        """One value of a format in a registry as JSON has it. Raises as `RegisteredFormat.decoded`."""
        assert isinstance(self.value, RegisteredFormat)
        return self.value.decoded(data)

    def _timestamped(self, frame: DataFrame) -> DataFrame:
        """Replace the timestamp by the declared one; a record with a value but without that is broken.

        So is one whose timestamp, the declared one if there is one, is no time that a record may have.
        """
        if self.timestamp is None:
            return frame
        return frame.withColumns(self._once("time", lambda: self._time(frame)))

    def _time(self, frame: DataFrame) -> dict[str, Column]:
        milliseconds, own = self._declared(frame)[0], F.col("_timestamp")
        missing = ~F.col(NULL_VALUE) & milliseconds.isNull()
        unfit_time = _unless_time(F.coalesce(milliseconds, F.unix_millis(own)))
        return {
            _BROKEN: F.col(_BROKEN) | missing | unfit_time.isNotNull(),
            _UNFIT_TIME: unfit_time,
            "_timestamp": F.coalesce(self.extracted(frame), own),
        }

    def extracted(self, frame: DataFrame) -> Column:
        """The declared timestamp of rows with a value's columns; null where their values give none that records have.

        Raises InvalidApplicationException for an expression that is no time.
        """
        milliseconds, time = self._declared(frame)
        return F.when(_is_time(milliseconds), time)

    def _declared(self, frame: DataFrame) -> tuple[Column, Column]:
        """The declared timestamp in ms, whatever it is, and as a time, which has to be one that records have."""
        assert self.timestamp is not None
        with refusing(self.timestamp_path):
            found = F.expr(self.timestamp)
            kind = frame.select(found.alias("t")).schema["t"].dataType
        if isinstance(kind, LongType):
            return found, F.timestamp_millis(found)
        if isinstance(kind, TimestampType):
            return F.unix_millis(found), found
        what = f"{self.timestamp} is {kind.simpleString().upper()}"
        remedy = "give a TIMESTAMP, or a BIGINT of milliseconds since 1970"
        raise InvalidApplicationException([Mistake(self.timestamp_path, what, remedy)])


def _is_time(milliseconds: Column) -> Column:
    return milliseconds.between(0, LATEST_TIME)


def _unless_time(milliseconds: Column) -> Column:
    """The number where it is no time that a record may have; else null."""
    return F.when(~_is_time(milliseconds), milliseconds)


def counted(decoded: DataFrame, account: Observed) -> DataFrame:
    """The same records; a query over them leaves an account of them (`account_of`)."""
    return account.on(decoded, _account())


@cache
def _account() -> Column:
    """One JSON text: an observation carries no struct back to Python, and each of its fields costs calls."""
    first = f"min(case when {_BROKEN} then struct({', '.join(_POSITION)}) end)"
    time = f"case when not {_BROKEN} then unix_millis(_timestamp) end"
    times = f"sum(cast({time} as double)) total, min({time}) low, max({time}) high"
    fields = f"count(1) records, count_if({_BROKEN}) broken, {first} first, {times}"
    return F.expr(f"to_json(struct({fields}))").alias(_ACCOUNT)


def account_of(account: Observed) -> Account:
    """The account that the last query over the counted records has left."""
    found = orjson.loads(account[_ACCOUNT])
    record = None
    if (first := found.get("first")) is not None:
        key, value = (None if each is None else b64decode(each) for each in map(first.get, (_RAW_KEY, _RAW_VALUE)))
        where = first["_topic"], first["_partition"], first["_offset"]
        record = BrokenRecord(*where, key, value, first.get(_UNFIT_TIME))
    readable = found["records"] - found["broken"]
    times = Spread(readable, found["total"], found["low"], found["high"]) if readable else NOTHING
    return Account(found["records"], found["broken"], record, times)
