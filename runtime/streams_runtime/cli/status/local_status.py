"""`streamsapp status`: what runs of this machine are doing, from another terminal."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import httpx
import typer

from streams_runtime.cli.local.progress.overview import CRASHED, weakest
from streams_runtime.cli.local.run_folders import InstanceFolder, instance_folders, temporary_runs
from streams_runtime.cli.output_format import Output, print_json, reported_errors
from streams_runtime.cli.status.status_tree import print_status
from streams_runtime.cli.status.status_values import (
    ApplicationStatus,
    InstanceStatus,
    Problem,
    error_of,
    of_description,
)
from streams_runtime.errors import ConfigException
from streams_runtime.query.client.client_http import QueryCredentials
from streams_runtime.states import ClientState

_SECONDS = 3.0  # for an answer; an instance that plans a batch on a busy machine is slow


def status(
    state_dir: Annotated[
        Path | None,
        typer.Option(help="The folder of a run, as given to `streamsapp run`. Default: all runs without one."),
    ] = None,
    queries_token_file: Annotated[
        Path | None,
        typer.Option(
            envvar="STREAMSAPP_QUERIES_TOKEN_FILE",
            help="File with the token of the run's queries, where it has one.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    output: Annotated[Output, typer.Option(help="json: one object a line.")] = Output.TEXT,
) -> None:
    """Show local runs as trees: problems, instances with their tasks, restorations and lag.

    Exit code 0: shown. 1: there is no run.
    """
    with reported_errors(output):
        headers = QueryCredentials(token_file=queries_token_file).headers()
        runs = temporary_runs() if state_dir is None else {state_dir: instance_folders(state_dir)}
        found = {root: run_status(instances, headers) for root, instances in runs.items() if instances}
        if not found:
            where = f"{state_dir} holds no run" if state_dir else f"no run is in {tempfile.gettempdir()}"
            raise ConfigException(f"{where}. Start one with `streamsapp run FILE`, or name its folder by --state-dir")
    for root, seen in found.items():
        if output is Output.JSON:
            print_json({"folder": str(root), **seen.document()})
        else:
            print_status(seen)


def run_status(folders: Mapping[str, InstanceFolder], headers: Mapping[str, str]) -> ApplicationStatus:
    """The status of one run by what its instances answer, and by what those left behind that have ended."""
    with httpx.Client(trust_env=False, timeout=_SECONDS, headers=headers) as http:
        seen = [_instance(name, folder, http) for name, folder in folders.items()]
    instances = tuple(instance for instance, _ in seen)
    lags = [each.lag for each in instances if each.lag is not None]
    return ApplicationStatus(
        name=next(iter(folders)).rpartition("-")[0],
        state=weakest([each.state for each in instances]),
        replicas=len(instances),
        instances=instances,
        tasks=sum(not task.standby for each in instances for task in each.tasks),
        lag=sum(lags) if lags else None,
        problems=tuple(problem for _, problem in seen if problem is not None),
    )


def _instance(name: str, folder: InstanceFolder, http: httpx.Client) -> tuple[InstanceStatus, Problem | None]:
    remedy = f"its log: {folder.last_log()}"
    url = folder.url
    if url is None:
        return _ended(name, folder, remedy)
    instance = InstanceStatus(name, CRASHED, ready=False, url=url)
    try:
        answer = http.get(f"{url}/state")
    except httpx.HTTPError as error:
        return instance, Problem(name, f"does not answer at {url}: {error}", remedy)
    if answer.status_code != httpx.codes.OK:
        problem = Problem(name, f"{url}/state answers {answer.status_code}", "give its token by --queries-token-file")
        return replace(instance, state=str(ClientState.CREATED)), problem
    described = answer.json()
    state = described["state"]
    instance = replace(instance, state=state, ready=state == ClientState.RUNNING)
    failure = error_of(described)
    return of_description(instance, described), None if failure is None else Problem(name, failure, remedy)


def _ended(name: str, folder: InstanceFolder, remedy: str) -> tuple[InstanceStatus, Problem | None]:
    """An instance that has no address: it starts, or has ended, or was killed."""
    last_words = folder.last_words()
    if last_words is None:
        return InstanceStatus(name, str(ClientState.CREATED), ready=False, note="starts, or was killed"), None
    error = last_words.get("class")
    problem = Problem(name, f"{error}: {last_words['message']}", remedy) if error else None
    state = str(ClientState.ERROR) if error else str(last_words["state"])
    return InstanceStatus(name, state, ready=False), problem
