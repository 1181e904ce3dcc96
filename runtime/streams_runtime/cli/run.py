"""`streamsapp run`: an application on this machine, from its file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from streams_runtime.cli.broker_option import bootstrap_option
from streams_runtime.cli.common.tag_options import parse_tags
from streams_runtime.cli.local.outcome import INCOMPLETE
from streams_runtime.cli.local.progress.run_events import RunEvent, error_event
from streams_runtime.cli.local.progress.run_output import RunReporter, reporter_for
from streams_runtime.cli.local.run_checks import accepted
from streams_runtime.cli.local.run_folders import RunFolders
from streams_runtime.cli.local.run_session import Plan, Session
from streams_runtime.cli.local.run_signals import Interrupted, StopSignals
from streams_runtime.cli.output_format import Output
from streams_runtime.errors import ConfigException, InvalidApplicationException, StreamsException
from streams_runtime.states import EXIT_UNUSABLE

File = Annotated[Path, typer.Argument(metavar="FILE", help="A StreamsApplication.", show_default=False)]
Instances = Annotated[int | None, typer.Option(min=1, help="How many instances. Default: spec.replicas.")]
BootstrapServers = Annotated[
    str | None,
    bootstrap_option("The brokers. Default: an Apache Kafka of its own, which ends with the run."),
]
StateDir = Annotated[
    Path | None,
    typer.Option(help="Folder of stores, logs and the own broker, kept for the next run. Default: a new one."),
]
QueriesTokenFile = Annotated[
    Path | None,
    typer.Option(
        envvar="STREAMSAPP_QUERIES_TOKEN_FILE",
        help="File with the token that queries have to present, in place of spec.queries.access.token's Secret.",
    ),
]
QueryPort = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=65535,
        help="Port of the first instance's queries; further instances take those behind. Default: free ones.",
    ),
]
BrokerPort = Annotated[int | None, typer.Option(min=1, max=65535, help="Port of the own broker. Default: a free one.")]
UntilCaughtUp = Annotated[
    bool, typer.Option("--until-caught-up", help="End when all that waits in the sources now is processed.")
]
OpenPage = Annotated[
    bool, typer.Option("--open", help="Show the first instance's page in a browser, once that instance answers.")
]
ClientTags = Annotated[
    list[str] | None,
    typer.Option(
        "--client-tag",
        metavar="KEY=VALUE[,VALUE…]",
        help="A tag of spec.processing.rackAwareAssignmentTags, and its values, which instances have in turn. May be"
        " given more than once.",
    ),
]
Keep = Annotated[bool, typer.Option("--keep", help="Keep the folder of a run without --state-dir.")]
Shown = Annotated[
    Output, typer.Option(help="text: a live table, or lines where it is no terminal. json: one object a line.")
]
LogLevel = Annotated[str, typer.Option(help="Level of the instances' logs.")]


def run(  # noqa: PLR0913, PLR0917 - each is an option of the command line
    file: File,
    instances: Instances = None,
    bootstrap_servers: BootstrapServers = None,
    state_dir: StateDir = None,
    port: QueryPort = None,
    broker_port: BrokerPort = None,
    queries_token_file: QueriesTokenFile = None,
    until_caught_up: UntilCaughtUp = False,
    open_page: OpenPage = False,
    client_tag: ClientTags = None,
    keep: Keep = False,
    output: Shown = Output.TEXT,
    log_level: LogLevel = "INFO",
) -> None:
    """Run an application on this machine: each replica as a process, with its state shown live.

    A process that crashes is started again; one that ends in ERROR is not. Ctrl-C stops in order.

    Exit code 0: every instance closed in order. 64: the file has mistakes, which are listed, or can't be run here.
    70: an instance ended in ERROR. 1: something else kept the run from its end.
    """
    if bootstrap_servers is not None and broker_port is not None:
        raise typer.BadParameter(
            "is the own broker's, and --bootstrap-servers names others", param_hint="--broker-port"
        )
    tags = parse_tags(client_tag or ())
    with StopSignals() as signals, reporter_for(output) as reporter:
        try:
            with signals.raising():
                application = accepted(file, instances, bootstrap_servers is None, queries_token_file)
        except Interrupted:
            raise typer.Exit(_exit(reporter, INCOMPLETE)) from None
        except ConfigException as error:
            _refuse(reporter, error)
            raise typer.Exit(_exit(reporter, EXIT_UNUSABLE)) from error
        except StreamsException as error:
            reporter.report(error_event(error))
            raise typer.Exit(_exit(reporter, INCOMPLETE)) from error
        elsewhere = application.spec.kafka.bootstrap_servers
        if bootstrap_servers is None and elsewhere is not None:
            text = (
                f"spec.kafka.bootstrapServers ({elsewhere}) is for a cluster, and this run starts a broker of its own."
                f" To use that one: --bootstrap-servers {elsewhere}"
            )
            reporter.report(RunEvent("note", text))
        count = instances or application.spec.replicas
        token = None if queries_token_file is None else queries_token_file.absolute()
        more = (token, port, broker_port, open_page, tags)
        plan = Plan(file, application, count, bootstrap_servers, until_caught_up, log_level, *more)
        raise typer.Exit(_exit(reporter, _run(plan, state_dir, keep, signals, reporter)))


def _run(plan: Plan, state_dir: Path | None, keep: bool, signals: StopSignals, reporter: RunReporter) -> int:
    """The run with its folders; returns the exit code."""
    failed: tuple[str, ...] = ()
    folders: RunFolders | None = None
    try:
        folders = RunFolders(state_dir, plan.application.name)
        session = Session(plan, folders, signals, reporter)
        try:
            return session.run()
        finally:
            failed = session.failed
    except StreamsException as error:
        reporter.report(error_event(error))
        return INCOMPLETE
    finally:
        stays = folders.finish(keep, failed) if folders is not None else None
        if stays is not None:
            what = "the run's folder" if keep else "logs of what failed"
            reporter.report(RunEvent("kept", f"{what}: {stays}", {"folder": str(stays)}))


def _refuse(reporter: RunReporter, error: ConfigException) -> None:
    """Every mistake by itself."""
    if not isinstance(error, InvalidApplicationException):
        reporter.report(error_event(error))
        return
    for each in error.mistakes:
        facts = {"path": each.path, "found": each.found, "remedy": each.remedy}
        reporter.report(RunEvent("mistake", str(each), facts, problem=True))


def _exit(reporter: RunReporter, code: int) -> int:
    """Tell programs the exit code."""
    reporter.report(RunEvent("exit", facts={"code": code}))
    return code
