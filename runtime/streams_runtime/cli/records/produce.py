"""`streamsapp produce`: feeds a file into a topic."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from streams_runtime.cli.broker_option import LOCAL_BROKER, PATIENCE, bootstrap_option, wait_for_broker
from streams_runtime.cli.output_format import Output, print_json, reported_errors
from streams_runtime.cli.records.record_files import Record, RecordFile, open_records
from streams_runtime.errors import ConfigException, StreamsException
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.client.client_properties import client_properties
from streams_runtime.kafka.producer.batch_producer import BatchProducer
from streams_runtime.kafka.types import TopicSpec

_CHUNK = 10_000
# Seconds of a piece under --rate: short enough to look steady, long enough to cost nothing.
_PIECE = 0.05
_TICK = 0.05


@dataclass(frozen=True, slots=True)
class Destination:
    """The topic that records go to: its partitions, and whether this command made it."""

    topic: str
    partitions: int
    created: bool


def produce(
    topic: Annotated[str, typer.Argument(help="The topic; it is made when it is not there.")],
    file: Annotated[Path, typer.Argument(help="Records: .csv or .jsonl, each also as .gz, or one of them in a .zip.")],
    key: Annotated[str | None, typer.Option(help="The column whose text becomes the key.")] = None,
    null: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="A CSV field that means null, besides the empty one (NA, say)."),
    ] = None,
    rate: Annotated[
        float | None, typer.Option(min=0.001, help="Records a second. Default: as fast as it goes.")
    ] = None,
    partitions: Annotated[
        int | None, typer.Option(min=1, help="Partitions of the topic when it is made. Default: 1.")
    ] = None,
    bootstrap_servers: Annotated[str, bootstrap_option()] = LOCAL_BROKER,
    output: Annotated[Output, typer.Option(help="json: the result as one object on one line.")] = Output.TEXT,
) -> None:
    """Write each line of a file to a topic as a JSON object.

    In CSV the first line names the columns. Field by field, an empty one becomes null and one that is a
    JSON number (12, -0.50, 1e-05) that number, digit by digit; anything else is a string: 007, 1E5, NA,
    dates. A JSON line is written as it stands. Records have the time of writing as their timestamp.
    """
    with reported_errors(output), open_records(file, key, null or ()) as records:
        properties = client_properties(bootstrap_servers, {})
        destination = _destination(Admin(properties), topic, partitions)
        producer = BatchProducer(properties, "streamsapp-produce")
        started = time.monotonic()
        try:
            with _progress(topic, records, output) as advance:
                sent = _send(records, producer, topic, rate, advance)
        finally:
            producer.close()
        _announce(destination, file, sent, time.monotonic() - started, output)


def _destination(admin: Admin, topic: str, partitions: int | None) -> Destination:
    """The topic as it is, or made. Raises ConfigException when it has not the number of partitions asked
    for.
    """
    wait_for_broker(admin)
    created = False
    deadline = time.monotonic() + PATIENCE
    while (found := admin.describe_topics([topic], config=False).get(topic)) is None:
        if time.monotonic() > deadline:
            raise StreamsException(f"the topic {topic} is not to be seen on {admin.address}. Check the brokers")
        if not created:
            result = admin.create_topics([TopicSpec(topic, partitions or 1)])
            for reason in result.refused.values():
                raise reason
            created = topic in result.created
        time.sleep(_TICK)
    if partitions not in (None, found.partitions):
        raise ConfigException(
            f"--partitions {partitions}: the topic {topic} exists with {found.partitions}. Leave the option out,"
            " or delete the topic"
        )
    return Destination(topic, found.partitions, created)


def _send(
    records: RecordFile,
    producer: BatchProducer,
    topic: str,
    rate: float | None,
    advance: Callable[[int], None],
) -> int:
    """Sends everything; returns how many. What stands before an error in the file is in the topic."""
    sent = 0
    started = time.monotonic()
    pieces = records.chunks(_CHUNK if rate is None else max(1, min(_CHUNK, int(rate * _PIECE))))
    try:
        while chunk := _next_of(pieces, sent, topic, producer):
            now = time.time_ns() // 1_000_000
            keys = [key for key, _ in chunk]
            values = [value for _, value in chunk]
            producer.send(topic, keys, values, [now] * len(chunk))
            sent += len(chunk)
            advance(sent)
            if rate is not None:
                time.sleep(max(0.0, started + sent / rate - time.monotonic()))
    except KeyboardInterrupt as interruption:
        producer.flush()
        raise StreamsException(f"interrupted: {topic} has at least the first {sent} records") from interruption
    producer.flush()
    return sent


def _next_of(pieces: Iterator[list[Record]], sent: int, topic: str, producer: BatchProducer) -> list[Record] | None:
    try:
        return next(pieces, None)
    except StreamsException as failure:
        producer.flush()
        raise StreamsException(f"{failure}. The topic {topic} has the first {sent} records") from failure


@contextmanager
def _progress(topic: str, records: RecordFile, output: Output) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal; what is given is called with the number of records sent so far."""
    console = Console(stderr=True)
    if output is Output.JSON or not console.is_terminal:
        yield lambda _sent: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[sent]:,} records"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(topic, total=records.size, sent=0)
        yield lambda sent: progress.update(task, completed=records.position(), sent=sent)


def _announce(destination: Destination, file: Path, sent: int, seconds: float, output: Output) -> None:
    rate = round(sent / max(seconds, 1e-9))
    if output is Output.JSON:
        facts = {
            "topic": destination.topic,
            "file": str(file),
            "records": sent,
            "partitions": destination.partitions,
            "created": destination.created,
            "seconds": round(seconds, 3),
            "records_per_second": rate,
        }
        print_json(facts)
    else:
        made = "new topic" if destination.created else "topic"
        typer.echo(
            f"{sent:,} records in {seconds:.1f} s ({rate:,}/s) to the {made} {destination.topic},"
            f" partitions: {destination.partitions}"
        )
