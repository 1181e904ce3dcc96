"""`streamsapp validate`: every mistake of a file, before anything is started."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from streams_runtime.api import Reading, StreamsApplication
from streams_runtime.api.checks.function_checks import taken_names
from streams_runtime.api.sql.spark_functions import SPARK_FUNCTIONS, missing_functions
from streams_runtime.cli.common.given_file import NOT_CHECKED, File, application_or_exit, print_mistakes, read_or_exit
from streams_runtime.cli.output_format import Output, print_error, print_json
from streams_runtime.cli.user_classes import class_mistakes
from streams_runtime.errors import EnvironmentException, InvalidApplicationException, Mistake
from streams_runtime.topology.aggregate_order import order_mistakes
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.nodes.source_and_sink_nodes import SinkNode
from streams_runtime.topology.partitioners import partitioner_mistakes
from streams_runtime.topology.plan import Topology


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
    else:
        reading = reading.with_more(_function_mistakes(reading))
    application = application_or_exit(reading.with_more(class_mistakes(reading, file)), output)
    topology = build_topology(application)
    application_or_exit(reading.with_more((*order_mistakes(topology), *partitioner_mistakes(topology))), output)
    _print_summary(application, topology, output)


def _function_mistakes(reading: Reading) -> Iterator[Mistake]:
    """What Spark's parser would say of functions' names, by the list of them that is here."""
    yield from taken_names(reading.functions, SPARK_FUNCTIONS)
    for field in reading.sql:
        yield from missing_functions(field, reading.functions)


def _client_property_mistakes(reading: Reading) -> tuple[Mistake, ...]:
    if reading.kafka is None or not reading.kafka.config:
        return ()
    # Only here: it loads the Kafka client, which knows what its properties may be.
    from streams_runtime.kafka.client.client_properties import client_properties

    try:
        # Makes no connection; any address will do.
        client_properties("localhost:9092", reading.kafka.config)
    except InvalidApplicationException as error:
        return error.mistakes
    return ()


def _print_summary(application: StreamsApplication, topology: Topology, output: Output) -> None:
    stores = [store.name for store in topology.stores]
    topics_by = [each.topic_by for each in topology.nodes if isinstance(each, SinkNode) and each.topic_by is not None]
    if output is Output.JSON:
        summary = {
            "valid": True,
            "name": application.name,
            "applicationId": application.application_id,
            "subtopologies": len(topology.subtopologies),
            "sourceTopics": topology.source_topics,
            "sourcePatterns": topology.source_patterns,
            "globalTopics": topology.global_topics,
            "sinkTopics": topology.sink_topics,
            "sinkTopicsBy": topics_by,
            "repartitionTopics": topology.repartition_topics,
            "stores": stores,
        }
        print_json(summary)
        return
    typer.echo(f"{application.name} is valid")
    lines = (
        ("reads", topology.source_topics),
        ("reads all that fit", topology.source_patterns),
        ("reads in every instance", topology.global_topics),
        ("repartitions through", topology.repartition_topics),
        ("keeps the stores", stores),
        ("writes", topology.sink_topics),
        ("names topics by", topics_by),
    )
    for what, names in lines:
        if names:
            typer.echo(f"  {what} {', '.join(names)}")
