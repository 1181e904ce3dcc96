"""`streamsapp run`: an application on this machine, from its file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from streams_runtime.cli.form import Output
from streams_runtime.cli.local.checks import accepted
from streams_runtime.cli.local.folders import RunFolders
from streams_runtime.cli.local.news import News, error_news
from streams_runtime.cli.local.outcome import INCOMPLETE
from streams_runtime.cli.local.output import Narrator, narrator
from streams_runtime.cli.local.session import Plan, Session
from streams_runtime.cli.local.signals import Interrupted, StopSignals
from streams_runtime.errors import ConfigException, InvalidApplicationException, StreamsException
from streams_runtime.states import EXIT_UNUSABLE


def run(  # noqa: PLR0913, PLR0917 - each is an option of the command line
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A StreamsApplication.", show_default=False)],
    instances: Annotated[int | None, typer.Option(min=1, help="How many instances. Default: spec.replicas.")] = None,
    bootstrap_servers: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            envvar="STREAMSAPP_BOOTSTRAP_SERVERS",
            help="The brokers. Default: an Apache Kafka of its own, which ends with the run.",
        ),
    ] = None,
    state_dir: Annotated[
        Path | None,
        typer.Option(help="Folder of stores, logs and the own broker, kept for the next run. Default: a new one."),
    ] = None,
    queries_token_file: Annotated[
        Path | None,
        typer.Option(
            envvar="STREAMSAPP_QUERIES_TOKEN_FILE",
            help="File with the token that queries have to present, in place of spec.queries.access.token's Secret.",
        ),
    ] = None,
    until_caught_up: Annotated[
        bool, typer.Option("--until-caught-up", help="End when all that waits in the sources now is processed.")
    ] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the folder of a run without --state-dir.")] = False,
    output: Annotated[
        Output, typer.Option(help="text: a live table, or lines where it is no terminal. json: one object a line.")
    ] = Output.TEXT,
    log_level: Annotated[str, typer.Option(help="Level of the instances' logs.")] = "INFO",
) -> None:
    """Run an application on this machine: each replica as a process, with its state shown live.

    A process that crashes is started again; one that ends in ERROR is not. Ctrl-C stops in order.

    Exit code 0: every instance closed in order. 64: the file has mistakes, which are listed, or can't be run here.
    70: an instance ended in ERROR. 1: something else kept the run from its end.
    """
    with StopSignals() as signals, narrator(output) as told:
        try:
            with signals.raising():
                application = accepted(file, instances, bootstrap_servers is None, queries_token_file)
        except Interrupted:
            raise typer.Exit(_exit(told, INCOMPLETE)) from None
        except ConfigException as error:
            _refuse(told, error)
            raise typer.Exit(_exit(told, EXIT_UNUSABLE)) from error
        except StreamsException as error:
            told.say(error_news(error))
            raise typer.Exit(_exit(told, INCOMPLETE)) from error
        elsewhere = application.spec.kafka.bootstrap_servers
        if bootstrap_servers is None and elsewhere is not None:
            text = (
                f"spec.kafka.bootstrapServers ({elsewhere}) is for a cluster, and this run starts a broker of its own."
                f" To use that one: --bootstrap-servers {elsewhere}"
            )
            told.say(News("note", text))
        count = instances or application.spec.replicas
        token = None if queries_token_file is None else queries_token_file.absolute()
        plan = Plan(file, application, count, bootstrap_servers, until_caught_up, log_level, token)
        raise typer.Exit(_exit(told, _run(plan, state_dir, keep, signals, told)))


def _run(plan: Plan, state_dir: Path | None, keep: bool, signals: StopSignals, told: Narrator) -> int:
    """The run with its folders; returns the exit code."""
    failed: tuple[str, ...] = ()
    folders: RunFolders | None = None
    try:
        folders = RunFolders(state_dir, plan.application.name)
        session = Session(plan, folders, signals, told)
        try:
            return session.run()
        finally:
            failed = session.failed
    except StreamsException as error:
        told.say(error_news(error))
        return INCOMPLETE
    finally:
        stays = folders.finish(keep, failed) if folders is not None else None
        if stays is not None:
            what = "the run's folder" if keep else "logs of what failed"
            told.say(News("kept", f"{what}: {stays}", {"folder": str(stays)}))


def _refuse(told: Narrator, error: ConfigException) -> None:
    """Every mistake by itself."""
    if not isinstance(error, InvalidApplicationException):
        told.say(error_news(error))
        return
    for each in error.mistakes:
        facts = {"path": each.path, "found": each.found, "remedy": each.remedy}
        told.say(News("mistake", str(each), facts, problem=True))


def _exit(told: Narrator, code: int) -> int:
    """Tell programs the exit code."""
    told.say(News("exit", facts={"code": code}))
    return code
