"""`streamsapp topics`: makes the topics that a file's application reads and writes, and that are not there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer

from streams_runtime.api import StreamsApplication
from streams_runtime.cli.broker_option import LOCAL_BROKER, bootstrap_option, wait_for_broker
from streams_runtime.cli.common.given_file import (
    File,
    application_or_exit,
    exits_reported,
    read_or_exit,
    refuse_secret,
)
from streams_runtime.cli.output_format import Output, print_json
from streams_runtime.cli.users_topics import make_topics, missing_topics
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.client.client_properties import client_properties
from streams_runtime.kafka.types import TopicSpec
from streams_runtime.topics.external_topics import sink_topics, source_topics
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.plan import Topology


def topics(
    file: File,
    bootstrap_servers: Annotated[
        str | None, bootstrap_option(f"The brokers. Default: spec.kafka.bootstrapServers, or else {LOCAL_BROKER}.")
    ] = None,
    partitions: Annotated[
        int | None,
        typer.Option(min=1, help="Of each that is made. Default: as the widest source that is there, or else 4."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Make nothing; say what would be made.")] = False,
    output: Annotated[Output, typer.Option(help="json: one object.")] = Output.TEXT,
) -> None:
    """Make the topics that FILE's application reads and writes, where they are missing.

    Those that are there stay as they are. Internal topics are made by the application itself, or by streamsapp init.
    Brokers give a topic that is made here their default number of replicas.

    Exit code 0: all are there (with --dry-run: they would be). 1: the file has mistakes. 2: the brokers do not
    answer, or refuse.
    """
    application = application_or_exit(read_or_exit(file, output), output)
    refuse_secret(application, output)
    spec, topology = application.spec, build_topology(application)
    roles = _roles(topology, application)
    address = bootstrap_servers or spec.kafka.bootstrap_servers or LOCAL_BROKER
    with exits_reported(output):
        admin = Admin(client_properties(address, spec.kafka.config))
        try:
            wait_for_broker(admin)
            present = admin.partition_counts(roles)
            missing = missing_topics(topology, spec, present, partitions)
            if not dry_run:
                make_topics(admin, missing)
        finally:
            admin.close()
    _print(roles, present, missing, dry_run, output)


def _roles(topology: Topology, application: StreamsApplication) -> Mapping[str, str]:
    """What each of the users' topics is to the application."""
    sinks = dict.fromkeys(sink_topics(topology, application.spec), "sink")
    return {**sinks, **dict.fromkeys(source_topics(topology), "source")}


def _print(
    roles: Mapping[str, str], present: Mapping[str, int], missing: tuple[TopicSpec, ...], dry_run: bool, output: Output
) -> None:
    new = {topic.name: topic.partitions for topic in missing}
    if output is Output.JSON:
        rows = [
            {"topic": name, "role": role, "partitions": new.get(name, present.get(name)), "made": name in new}
            for name, role in sorted(roles.items())
        ]
        print_json({"dryRun": dry_run, "topics": rows})
        return
    for name, role in sorted(roles.items()):
        became = ("would be made" if dry_run else "made") if name in new else "exists"
        typer.echo(f"{name}: {role}, partitions: {new.get(name, present.get(name))}, {became}")
