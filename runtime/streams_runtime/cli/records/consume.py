"""`streamsapp consume`: prints what a topic holds."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import orjson
import typer

from streams_runtime.api.spec.kafka_spec import SchemaRegistrySpec
from streams_runtime.cli.broker_option import LOCAL_BROKER, bootstrap_option, wait_for_broker
from streams_runtime.cli.option_groups import with_option_groups
from streams_runtime.cli.output_format import Output, reported_errors
from streams_runtime.cli.records.value_readers import RecordFormat, reader_of
from streams_runtime.errors import StreamsException
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.client.client_properties import client_properties
from streams_runtime.kafka.consumer.invalid_offset import InvalidOffsetException
from streams_runtime.kafka.consumer.range_reader import RangeReader
from streams_runtime.kafka.schema_registry import SchemaRegistry
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.query.wire.json_values import to_plain
from streams_runtime.query.wire.moments import parse_time
from streams_runtime.query.wire.windowed_keys import first_ms, moment
from streams_runtime.state.serdes import SerdeException, key_serde, value_serde
from streams_runtime.state.window_keys import SESSION_KEYS, START_BYTES, split_session_key, split_start

_LOOK = 0.3  # seconds between two looks for more under --follow
_COLUMNS = ("partition", "offset", "timestamp", "key", "headers", "value")


class KeyWindows(StrEnum):
    """What follows a windowed key: `time`, 8 bytes of start; `session`, 8 bytes of end and 8 of start."""

    TIME = "time"
    SESSION = "session"


@dataclass(frozen=True, slots=True)
class Registry:
    """The options that name a schema registry."""

    schema_registry: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            envvar="STREAMSAPP_SCHEMA_REGISTRY_URL",
            help="It knows the schemas of avro, protobuf and jsonschema.",
        ),
    ] = None
    schema_registry_user_info: Annotated[
        str | None,
        typer.Option(
            metavar="USER:PASSWORD", envvar="STREAMSAPP_SCHEMA_REGISTRY_USER_INFO", help="The registry's login."
        ),
    ] = None

    def client(self) -> SchemaRegistry | None:
        """Its client; None where none is named. Raises ConfigException: an option can't be used."""
        if self.schema_registry is None:
            return None
        login = self.schema_registry_user_info
        config = {} if login is None else {"basic.auth.user.info": login}
        return SchemaRegistry(SchemaRegistrySpec(url=self.schema_registry, config=config))


@with_option_groups
def consume(
    topic: Annotated[str, typer.Argument(help="The topic.")],
    registry: Registry,
    key_format: Annotated[RecordFormat, typer.Option(help="The format of keys.")] = RecordFormat.STRING,
    value_format: Annotated[RecordFormat, typer.Option(help="The format of values.")] = RecordFormat.JSON,
    key_windows: Annotated[
        KeyWindows | None, typer.Option(help="Keys are windowed, as sinks of windows and of sessions write them.")
    ] = None,
    from_time: Annotated[
        str | None,
        typer.Option(help="From the first record of each partition that is as late: RFC 3339, or ms since 1970."),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what comes, until Ctrl-C.")] = False,
    bootstrap_servers: Annotated[str, bootstrap_option()] = LOCAL_BROKER,
) -> None:
    """Print the records of a topic, each as a JSON object on a line of its own.

    Partition by partition, each from its first record to its last one. Records of open and of aborted
    transactions are left out. A key or a value that is not of its format is printed as key_base64 or
    value_base64. Joins no group, commits nothing.
    """
    with reported_errors(Output.TEXT):
        properties = {**client_properties(bootstrap_servers, {}), "isolation.level": "read_committed"}
        lines = RecordLines(key_format, value_format, key_windows, registry.client())
        admin, reader = Admin(properties), RangeReader(properties)
        try:
            wait_for_broker(admin)
            _print(Log(admin, topic, _milliseconds(from_time)), reader, lines, follow)
        except KeyboardInterrupt:
            if not follow:
                raise
        finally:
            reader.close()
            admin.close()
            lines.report()


@dataclass(frozen=True, slots=True)
class Log:
    """One topic as it lies at the brokers, from a time on (ms since 1970; None: the whole of it)."""

    admin: Admin
    topic: str
    since: int | None = None

    def ranges(self, positions: Mapping[int, int]) -> dict[int, tuple[int, int]]:
        """By partition the offsets from its position, or else from its start, to its end.

        Raises StreamsException: there is no such topic.
        """
        count = self.admin.partition_counts([self.topic]).get(self.topic)
        if count is None:
            raise StreamsException(
                f"there is no topic {self.topic} at {self.admin.address}. Check the name, and --bootstrap-servers"
            )
        partitions = [TopicPartition(self.topic, number) for number in range(count)]
        ends = self.admin.end_offsets(partitions, read_committed=True)
        starts = self._starts([each for each in partitions if each.partition not in positions])
        return {
            each.partition: (positions.get(each.partition, starts.get(each, end)), end) for each, end in ends.items()
        }

    def _starts(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        if self.since is None:
            return self.admin.start_offsets(partitions)
        found = self.admin.offsets_at(dict.fromkeys(partitions, self.since))
        return {partition: offset for partition, offset in found.items() if offset is not None}


def _print(log: Log, reader: RangeReader, lines: RecordLines, follow: bool) -> None:
    positions: dict[int, int] = {}
    while True:
        for number, (start, end) in sorted(log.ranges(positions).items()):
            try:
                for records in reader.read(log.topic, {number: (start, end)}):
                    columns = {name: records.column(name).to_pylist() for name in _COLUMNS}
                    for row in zip(*columns.values(), strict=True):
                        sys.stdout.buffer.write(lines.line(dict(zip(columns, row, strict=True))))
                    sys.stdout.buffer.flush()
                positions[number] = end
            except InvalidOffsetException as error:
                raise StreamsException(
                    f"{error.partition} was cut, by its retention or by hand, while it was read. Begin again"
                ) from error
        if not follow:
            return
        time.sleep(_LOOK)


class RecordLines:
    """Records as lines of JSON. Counts keys and values that are not of their formats."""

    def __init__(
        self,
        keys: RecordFormat,
        values: RecordFormat,
        key_windows: KeyWindows | None = None,
        registry: SchemaRegistry | None = None,
    ) -> None:
        """Raises ConfigException: a format needs a registry."""
        self._formats = {"key": keys, "value": values}
        self._readers = {
            "key": reader_of(keys, key_serde, registry),
            "value": reader_of(values, value_serde, registry),
        }
        self._key_windows = key_windows
        self._unfit = {"key": 0, "value": 0}

    def line(self, record: Mapping[str, Any]) -> bytes:
        """One record, whose members are named as the columns of a topic, with the end of the line."""
        key, window = record["key"], None
        if key is not None and self._key_windows is not None:
            key, window = _split(key, self._key_windows)
        members: dict[str, Any] = {name: to_plain(record[name]) for name in ("partition", "offset", "timestamp")}
        members |= self._member("key", key)
        if window is not None:
            members["window"] = window
        if record["headers"]:
            # A list, as one name may be there several times.
            members["headers"] = [{each["key"]: _text(each["value"])} for each in record["headers"]]
        members |= self._member("value", record["value"])
        return orjson.dumps(members, option=orjson.OPT_APPEND_NEWLINE)

    def report(self) -> None:
        """Say how many keys and values could not be read."""
        for name, count in self._unfit.items():
            if count:
                given = self._formats[name]
                typer.echo(f"{count:,} times the {name} was not {given}; say what it is by --{name}-format", err=True)

    def _member(self, name: str, data: bytes | None) -> dict[str, Any]:
        if data is None:
            return {name: None}
        try:
            return {name: self._readers[name](data)}
        except SerdeException:
            self._unfit[name] += 1
            return {f"{name}_base64": to_plain(data)}


def _milliseconds(text: str | None) -> int | None:
    return None if text is None else first_ms("--from-time", parse_time("--from-time", text))


def _split(key: bytes, windows: KeyWindows) -> tuple[bytes, dict[str, Any] | None]:
    """The record's key and its window; a key that is too short for one stays whole."""
    sessions = windows is KeyWindows.SESSION
    if len(key) < (SESSION_KEYS.suffix_bytes if sessions else START_BYTES):
        return key, None
    bare, *times = split_session_key(key) if sessions else split_start(key)
    return bare, {name: to_plain(moment(ms)) for name, ms in zip(("start", "end"), times, strict=False)}


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="replace")
