"""`streamsapp init`: checks and sets up the internal topics of a file's application (KIP-698)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated

import typer

from streams_runtime.cli.broker_option import bootstrap_option
from streams_runtime.cli.common.given_file import (
    INVALID,
    File,
    application_or_exit,
    exits_reported,
    read_or_exit,
    refuse_secret,
)
from streams_runtime.cli.output_format import Output, print_error, print_json
from streams_runtime.errors import (
    MisconfiguredInternalTopicException,
    MissingInternalTopicException,
    MissingSourceTopicException,
    StreamsException,
    TopologyException,
)
from streams_runtime.topics.application_topics import ApplicationTopics, InitOutcome
from streams_runtime.topics.setup_policy import InitParameters

_SECONDS = 30.0
_REFUSALS = (
    MissingSourceTopicException,
    MissingInternalTopicException,
    MisconfiguredInternalTopicException,
    TopologyException,
)
"""What the topics on the brokers do not allow."""
_IN_A_CLUSTER = "; in a cluster set spec.internalTopics.init, which the operator carries out"


def init(
    file: File,
    bootstrap_servers: Annotated[
        str | None, bootstrap_option("The brokers. Default: spec.kafka.bootstrapServers.")
    ] = None,
    repartition: Annotated[
        bool,
        typer.Option(
            "--setup-repartition-topics-if-incomplete",
            help="Make missing repartition topics also when other internal topics are there.",
        ),
    ] = False,
    changelog: Annotated[
        bool,
        typer.Option(
            "--setup-changelog-topics-if-incomplete",
            help="Make missing changelog topics also when other internal topics are there.",
        ),
    ] = False,
    internal: Annotated[bool, typer.Option("--setup-internal-topics-if-incomplete", help="Both of these.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Make nothing; say what would be done.")] = False,
    timeout: Annotated[
        float, typer.Option(help="Seconds for the brokers' answers, and until new topics are usable.", min=1.0)
    ] = _SECONDS,
    output: Annotated[Output, typer.Option(help="json: one object a line.")] = Output.TEXT,
) -> None:
    """Set up the internal topics of FILE's application: all of them, or nothing when they are there.

    When some are there and some are not, the missing ones were probably deleted, and what was in them is lost: then
    nothing is made unless an option allows it.

    Exit code 0: they are there (with --dry-run: they would be). 1: the file has mistakes, or the topics on the
    brokers do not allow it, and nothing was made. 2: it could not be done or found out.
    """
    application = application_or_exit(read_or_exit(file, output), output)
    refuse_secret(application, output, _IN_A_CLUSTER)
    parameters = InitParameters(repartition or internal, changelog or internal)
    with exits_reported(output):
        topics = ApplicationTopics(application, deadline=timeout, bootstrap_servers=bootstrap_servers)
        try:
            outcome = topics.rehearse(parameters) if dry_run else topics.init(parameters)
        except _REFUSALS as error:
            _print_refusal(topics, error, dry_run, output)
            raise typer.Exit(INVALID) from error
        finally:
            topics.close()
    _print_outcome(application.name, topics.address, outcome, dry_run, output)


def _print_refusal(topics: ApplicationTopics, error: StreamsException, dry_run: bool, output: Output) -> None:
    """Print the exception of init(), after the state of each topic where the brokers give it."""
    with suppress(StreamsException):
        report = topics.check()
        states = {**dict.fromkeys(report.existing, "exists"), **dict.fromkeys(report.missing, "missing")}
        if output is Output.TEXT:
            _print_topics(states)
        else:
            print_json({"topics": states})
    if dry_run and output is Output.TEXT:
        typer.echo(f"init would raise {type(error).__name__}, and make nothing")
    print_error(error, output)


def _print_outcome(name: str, address: str, outcome: InitOutcome, dry_run: bool, output: Output) -> None:
    made = "would be created" if dry_run else "created"
    states = {**dict.fromkeys(outcome.existing, "exists"), **dict.fromkeys(outcome.created, made)}
    if output is Output.JSON:
        print_json(
            {
                "name": name,
                "bootstrapServers": address,
                "dryRun": dry_run,
                "result": outcome.result,
                "created": outcome.created,
                "existing": outcome.existing,
                "tasks": outcome.tasks,
            }
        )
        return
    if not states:
        typer.echo(f"{name} needs no internal topics")
    elif not outcome.created:
        typer.echo(f"{name}: all internal topics are at {address} already")
    else:
        typer.echo(f"{name}: internal topics at {address}")
    _print_topics(states)


def _print_topics(states: Mapping[str, str]) -> None:
    for topic, state in sorted(states.items()):
        typer.echo(f"  {topic}: {state}")
