"""`streamsapp validate`: every mistake of a file, before anything is started."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from streams_runtime.api import Reading, StreamsApplication
from streams_runtime.builder.resolve_python import Beside, read_file
from streams_runtime.cli.output_format import Output, print_error, print_json, reported_errors
from streams_runtime.cli.user_classes import class_mistakes
from streams_runtime.errors import (
    ConfigException,
    EnvironmentException,
    InvalidApplicationException,
    Mistake,
)
from streams_runtime.kafka.client.client_properties import client_properties
from streams_runtime.topology.aggregate_order import order_mistakes
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.plan import Topology

INVALID, NOT_CHECKED = 1, 2
"""Exit codes: the file has mistakes; it could not be checked (not readable, no Java), or wrong usage."""


File = Annotated[Path, typer.Argument(metavar="FILE", help="A StreamsApplication in YAML or JSON.", show_default=False)]


def validate(
    file: File,
    output: Annotated[Output, typer.Option(help="json: one object a line.")] = Output.TEXT,
    spark: Annotated[
        bool,
        typer.Option(help="Let Spark's own parser read the expressions too; takes a Java and a few seconds."),
    ] = True,
) -> None:
    """Check FILE and list every mistake with its field, what was found, and what would do.

    Classes in Python that it names are loaded, also from the file's own folder.

    Exit code 0: valid. 1: mistakes were listed. 2: the file could not be checked.
    """
    reading = read_or_exit(file, output)
    reading = reading.with_more(_client_property_mistakes(reading))
    if spark:
        from streams_runtime.pipeline.spark.parsed_expressions import check_sql

        try:
            reading = reading.with_more(check_sql(reading.sql, reading.functions))
        except EnvironmentException as error:
            print_mistakes(reading.reported, output)
            print_error(error, output)
            raise typer.Exit(NOT_CHECKED) from error
    application = application_or_exit(reading.with_more(class_mistakes(reading, file)), output)
    topology = build_topology(application)
    application_or_exit(reading.with_more(order_mistakes(topology)), output)
    _print_summary(application, topology, output)


def read_or_exit(file: Path, output: Output, beside: Beside = Beside.COMPARED) -> Reading:
    """What stands in the file, a topology in Python built (see read_file); ends the command when it can't be read."""
    try:
        return read_file(file, beside)
    except ConfigException as error:
        print_error(error, output)
        raise typer.Exit(NOT_CHECKED) from error


def application_or_exit(reading: Reading, output: Output) -> StreamsApplication:
    """The application that was read; lists its mistakes and ends the command when there are any."""
    if reading.application is None:
        print_mistakes(reading.reported, output)
        raise typer.Exit(INVALID)
    return reading.application


@contextmanager
def exits_reported(output: Output) -> Iterator[None]:
    """An error ends the command with its message: mistakes of the file with INVALID, all else with NOT_CHECKED."""
    with reported_errors(output, NOT_CHECKED):
        try:
            yield
        except InvalidApplicationException as error:
            print_mistakes(error.mistakes, output)
            raise typer.Exit(INVALID) from error


def refuse_secret(application: StreamsApplication, output: Output, in_a_cluster: str = "") -> None:
    """End the command of an application whose client properties stand in a Secret; `in_a_cluster`: what to do there."""
    secret = application.spec.kafka.secret_ref
    if secret is None:
        return
    mistake = Mistake(
        "spec.kafka.secretRef",
        f"names the Secret {secret.name}, and this command reads no Kubernetes Secrets",
        f"put its properties into spec.kafka.config of a copy of the file that stays on this machine{in_a_cluster}",
    )
    print_mistakes([mistake], output)
    raise typer.Exit(INVALID)


def print_mistakes(mistakes: Iterable[Mistake], output: Output) -> None:
    """One mistake a line."""
    for each in mistakes:
        if output is Output.JSON:
            print_json({"path": each.path, "found": each.found, "remedy": each.remedy})
        else:
            typer.echo(str(each))


def _client_property_mistakes(reading: Reading) -> tuple[Mistake, ...]:
    try:
        # Makes no connection; any address will do.
        client_properties("localhost:9092", reading.kafka.config if reading.kafka else {})
    except InvalidApplicationException as error:
        return error.mistakes
    return ()


def _print_summary(application: StreamsApplication, topology: Topology, output: Output) -> None:
    stores = [store.name for store in topology.stores]
    if output is Output.JSON:
        summary = {
            "valid": True,
            "name": application.name,
            "applicationId": application.application_id,
            "subtopologies": len(topology.subtopologies),
            "sourceTopics": topology.source_topics,
            "globalTopics": topology.global_topics,
            "sinkTopics": topology.sink_topics,
            "repartitionTopics": topology.repartition_topics,
            "stores": stores,
        }
        print_json(summary)
        return
    typer.echo(f"{application.name} is valid")
    lines = (
        ("reads", topology.source_topics),
        ("reads in every instance", topology.global_topics),
        ("repartitions through", topology.repartition_topics),
        ("keeps the stores", stores),
        ("writes", topology.sink_topics),
    )
    for what, names in lines:
        if names:
            typer.echo(f"  {what} {', '.join(names)}")
