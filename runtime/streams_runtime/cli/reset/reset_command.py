"""`streamsapp reset`: has a file's application read anew, as spec.reset does in a cluster (KIP-171, KIP-198)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from streams_runtime.api import StreamsApplication
from streams_runtime.api.checks.operations.reset_checks import reset_mistakes
from streams_runtime.api.spec.operations.reset_spec import ResetSpec
from streams_runtime.cli.broker_option import bootstrap_option
from streams_runtime.cli.common.given_file import (
    INVALID,
    File,
    application_or_exit,
    exits_reported,
    print_mistakes,
    read_or_exit,
    refuse_secret,
)
from streams_runtime.cli.local.run_folders import RunFolders
from streams_runtime.cli.local.run_stores import delete_stores, held_stores
from streams_runtime.cli.output_format import Output
from streams_runtime.cli.reset.reset_options import InternalTopics, Source, To, target_of
from streams_runtime.cli.reset.reset_output import print_plan, print_refusals
from streams_runtime.errors import ConfigException, LockException, Mistake
from streams_runtime.kafka.broker.embedded_broker import EmbeddedBroker
from streams_runtime.state.state_directory import StateDirectory
from streams_runtime.topics.application_topics import ApplicationTopics
from streams_runtime.topics.reset.reset_plan import ResetOutlook, ResetPlan
from streams_runtime.topics.reset.reset_steps import has_members

_SECONDS = 30.0  # for one answer of the brokers, the making of topics included
_TICK = 1.0  # seconds between two looks at the group's members
_IN_A_CLUSTER = "; in a cluster set spec.reset, which the operator carries out"


def reset(  # noqa: PLR0913, PLR0917 - each is an option of the command line
    file: File,
    to: To,
    source: Source = None,
    internal_topics: Annotated[
        InternalTopics,
        typer.Option(help="delete: they are made anew, empty, and stores in --state-dir go. keep: both stay."),
    ] = InternalTopics.DELETE,
    bootstrap_servers: Annotated[
        str | None,
        bootstrap_option(
            "The brokers. Default: the broker of the runs in --state-dir, or else spec.kafka.bootstrapServers."
        ),
    ] = None,
    state_dir: Annotated[
        Path | None, typer.Option(help="The --state-dir of streamsapp run, with stores and its own broker.")
    ] = None,
    wait: Annotated[
        float, typer.Option(min=0, help="Seconds to wait for instances that have stopped to leave the group.")
    ] = 60.0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing; say what would go.")] = False,
    output: Annotated[Output, typer.Option(help="json: one object.")] = Output.TEXT,
) -> None:
    """Have FILE's application read anew: internal topics, offsets, stores, in this order, all or nothing.

    Refused while an instance runs or is in the group. One that was broken off is done again by the same command.

    Exit code 0: it is done (with --dry-run: it would be). 1: it is refused, and nothing was changed. 2: the brokers
    do not answer, or it could not be done to its end.
    """
    application = application_or_exit(read_or_exit(file, output), output)
    refuse_secret(application, output, _IN_A_CLUSTER)
    asked = _asked(application, to, source or [], internal_topics, output)
    with (
        exits_reported(output),
        _stores(application, asked, state_dir, output) as stores,
        _topics(application, bootstrap_servers, state_dir) as topics,
    ):
        plan = _plan(application, topics, asked, 0 if dry_run else wait, output)
        if not dry_run:
            _carry_out(topics, asked, plan, stores)
        print_plan(application.name, topics.address, plan, [each.root for each in stores], dry_run, output)


def _asked(
    application: StreamsApplication,
    to: Sequence[str],
    sources: Sequence[str],
    internal_topics: InternalTopics,
    output: Output,
) -> ResetSpec:
    """What the options ask for. Ends the command where they make no sense, or no sense in this application."""
    document: dict[str, Any] = {"nonce": 0, "to": target_of(to), "sources": list(sources)}
    document["internalTopics"] = internal_topics.value.capitalize()
    try:
        asked = ResetSpec.model_validate(document)
    except ValidationError as error:
        raise typer.BadParameter(str(error.errors()[0]["msg"]), param_hint="--to") from None
    mistakes = [
        Mistake("--source" if ".sources" in each.path else "--to", each.found, each.remedy)
        for each in reset_mistakes(asked, application.spec.topology.sources or ())
    ]
    if mistakes:
        print_mistakes(mistakes, output)
        raise typer.Exit(INVALID)
    return asked


@contextmanager
def _stores(
    application: StreamsApplication, asked: ResetSpec, state_dir: Path | None, output: Output
) -> Iterator[tuple[StateDirectory, ...]]:
    """The stores that go, locked; none where they stay, or nobody says where they are.

    Ends the command where an instance runs that has one of them.
    """
    if state_dir is None:
        yield ()
        return
    if not state_dir.is_dir():
        raise ConfigException(f"there is no folder {state_dir}; give the one that streamsapp run had as --state-dir")
    with ExitStack() as locks:
        try:
            held = locks.enter_context(held_stores(state_dir.absolute(), application))
        except LockException as error:
            print_refusals([str(error)], output)
            raise typer.Exit(INVALID) from error
        yield held if asked.internal_topics == "Delete" else ()


@contextmanager
def _topics(
    application: StreamsApplication, bootstrap_servers: str | None, state_dir: Path | None
) -> Iterator[ApplicationTopics]:
    """The application's topics, at the given brokers or at that of the runs in the state folder."""
    own = RunFolders(state_dir, application.name).broker if state_dir is not None else None
    if bootstrap_servers is None and own is not None and own.is_dir():
        with EmbeddedBroker(own) as broker, _topics(application, broker.bootstrap_servers, None) as topics:
            yield topics
        return
    topics = ApplicationTopics(application, deadline=_SECONDS, bootstrap_servers=bootstrap_servers)
    try:
        yield topics
    finally:
        topics.close()


def _plan(
    application: StreamsApplication, topics: ApplicationTopics, asked: ResetSpec, wait: float, output: Output
) -> ResetPlan:
    """What it does. Ends the command where that is refused, or the group still has members after `wait` seconds."""
    outlook = _without_members(lambda: topics.rehearse_reset(asked, time.time()), application.application_id, wait)
    refusals = list(outlook.refusals)
    if outlook.members:
        refusals.append(has_members(application.application_id, outlook.members))
    if refusals or outlook.plan is None:
        print_refusals(refusals, output)
        raise typer.Exit(INVALID)
    return outlook.plan


def _without_members(look: Callable[[], ResetOutlook], group: str, wait: float) -> ResetOutlook:
    """The outlook once nobody is in the group, or when the seconds are over. A refused one waits for nothing."""
    end, said = time.monotonic() + wait, False
    while True:
        outlook = look()
        if outlook.refusals or not outlook.members or time.monotonic() >= end:
            return outlook
        if not said:
            typer.echo(f"waiting: {has_members(group, outlook.members)}", err=True)
            said = True
        time.sleep(_TICK)


def _carry_out(topics: ApplicationTopics, asked: ResetSpec, plan: ResetPlan, stores: Sequence[StateDirectory]) -> None:
    """In the order in which a step that is missing does the least harm: empty topics first, stores last."""
    if asked.internal_topics == "Delete":
        topics.reset_topics()
    topics.reset_offsets(plan.moves)
    for each in stores:
        delete_stores(each)
