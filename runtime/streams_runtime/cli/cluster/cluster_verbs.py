"""The verbs of `kubectl streamsapp`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from streams_runtime.cli.cluster import changes
from streams_runtime.cli.cluster.changes import Change
from streams_runtime.cli.cluster.cluster_status import pod_asker, status_of, topology_of
from streams_runtime.cli.cluster.errors_found import errors_of
from streams_runtime.cli.cluster.kubectl import Kubectl
from streams_runtime.cli.option_groups import with_option_groups
from streams_runtime.cli.output_format import FAILED, Output, print_json, reported_errors
from streams_runtime.cli.reset.reset_options import InternalTopics, Source, To, target_of
from streams_runtime.cli.status.status_tree import print_status
from streams_runtime.cli.topology.topology_command import Drawing, give, shown

_TICK = 1.0
NOT_REACHED = 3
"""Exit code: what --wait waits for has not come in time."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """The options by which kubectl finds the cluster."""

    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", help="Default: the one of the kubeconfig's context.")
    ] = None
    context: Annotated[str | None, typer.Option(help="A context of the kubeconfig.")] = None
    kubeconfig: Annotated[Path | None, typer.Option(help="Default: as for kubectl.")] = None

    @property
    def kubectl(self) -> Kubectl:
        """kubectl with these options."""
        return Kubectl(self.namespace, self.context, None if self.kubeconfig is None else str(self.kubeconfig))


Name = Annotated[str, typer.Argument(metavar="NAME", help="The StreamsApplication.", show_default=False)]
Shown = Annotated[Output, typer.Option("--output", "-o", help="json: one object a line.")]


@dataclass(frozen=True, slots=True)
class Waiting:
    """Whether a verb returns when the change is there, and how long it waits for that."""

    wait: Annotated[bool, typer.Option("--wait", help="Return when it has come to that.")] = False
    timeout: Annotated[float, typer.Option(min=0.0, help="Seconds that --wait waits. Exit code 3 after that.")] = 600.0


@with_option_groups
def status(
    cluster: Cluster,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Default: all of the namespace.", show_default=False)
    ] = None,
    everywhere: Annotated[bool, typer.Option("--all-namespaces", "-A", help="Those of all namespaces.")] = False,
    output: Shown = Output.TEXT,
) -> None:
    """Show applications as trees: problems and what to do, instances, tasks with their stores, restorations, lag.

    Pods are asked through the API server, for which this user needs the right `get pods/proxy`; without it the tree
    has what the resource's status says.
    """
    if name is not None and everywhere:
        raise typer.BadParameter("goes without a NAME", param_hint="--all-namespaces")
    with reported_errors(output):
        kubectl = cluster.kubectl
        found = kubectl.applications(everywhere) if name is None else [kubectl.application(name)]
        for resource in found:
            seen = status_of(resource, pod_asker(kubectl, resource))
            if output is Output.JSON:
                print_json({"namespace": resource["metadata"]["namespace"], **seen.document()})
            else:
                print_status(seen)
        if not found and output is Output.TEXT:
            typer.echo("there are no StreamsApplications here", err=True)


@with_option_groups
def errors(cluster: Cluster, name: Name, output: Shown = Output.TEXT) -> None:
    """List what is wrong, the worst first, with what to do: conditions, instances, and the ten latest warnings."""
    with reported_errors(output):
        resource = cluster.kubectl.application(name)
        warnings = cluster.kubectl.warnings(name, resource["metadata"]["namespace"])
        found = errors_of(status_of(resource), warnings)
    for problem in found:
        if output is Output.JSON:
            print_json({"where": problem.where, "what": problem.what, "remedy": problem.remedy})
        else:
            typer.echo(f"{problem.where}: {problem.what}" + (f"\n  {problem.remedy}" if problem.remedy else ""))
    if not found and output is Output.TEXT:
        typer.echo(f"{name}: nothing is wrong")


@with_option_groups
def topology(
    cluster: Cluster,
    name: Name,
    output: Annotated[Drawing, typer.Option("--output", "-o", help="The form.")] = Drawing.TEXT,
    to: Annotated[Path | None, typer.Option(metavar="FILE", help="Write it there.", show_default=False)] = None,
) -> None:
    """Show the sub-topologies that the resource declares, as `streamsapp topology` does."""
    with reported_errors(Output.JSON if output is Drawing.JSON else Output.TEXT):
        give(shown(topology_of(cluster.kubectl.application(name)), output), to)


@with_option_groups
def restart(cluster: Cluster, name: Name, waiting: Waiting, output: Shown = Output.TEXT) -> None:
    """Replace every pod once: those in ERROR at once, running ones one by one, each when the last is restored."""
    _change(cluster.kubectl, name, changes.restart, waiting, output)


@with_option_groups
def suspend(cluster: Cluster, name: Name, waiting: Waiting, output: Shown = Output.TEXT) -> None:
    """Close all pods. Volumes, topics and committed offsets stay."""
    _change(cluster.kubectl, name, changes.suspend, waiting, output)


@with_option_groups
def pause(cluster: Cluster, name: Name, waiting: Waiting, output: Shown = Output.TEXT) -> None:
    """Let pods stay and answer queries, and process nothing (KIP-834)."""
    _change(cluster.kubectl, name, changes.pause, waiting, output)


@with_option_groups
def resume(cluster: Cluster, name: Name, waiting: Waiting, output: Shown = Output.TEXT) -> None:
    """Go on after `suspend` or `pause`."""
    _change(cluster.kubectl, name, changes.resume, waiting, output)


@with_option_groups
def scale(
    cluster: Cluster,
    name: Name,
    replicas: Annotated[int, typer.Argument(min=0, help="Instances.", show_default=False)],
    waiting: Waiting,
    output: Shown = Output.TEXT,
) -> None:
    """Run so many instances."""
    _change(cluster.kubectl, name, lambda resource: changes.scale(resource, replicas), waiting, output)


@with_option_groups
def reset(
    cluster: Cluster,
    name: Name,
    to: To,
    waiting: Waiting,
    source: Source = None,
    internal_topics: Annotated[
        InternalTopics, typer.Option(help="delete: they are made anew, empty, and volumes go. keep: both stay.")
    ] = InternalTopics.DELETE,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing; the operator says what would go.")
    ] = False,
    output: Shown = Output.TEXT,
) -> None:
    """Have a suspended application read anew: internal topics, offsets, volumes, in this order, all or nothing.

    With --wait: exit code 1 where the reset is refused.
    """
    target, keeps = target_of(to), internal_topics is InternalTopics.KEEP
    resource = _change(
        cluster.kubectl, name, lambda found: changes.reset(found, target, source or (), keeps, dry_run), waiting, output
    )
    ended = changes.reset_status(resource)
    if not waiting.wait:
        return
    if output is Output.JSON:
        print_json({"state": ended.get("state"), "message": ended.get("message")})
    else:
        typer.echo(f"{ended.get('state')}: {ended.get('message')}")
    if ended.get("state") == "Refused":
        raise typer.Exit(FAILED)


def _change(
    kubectl: Kubectl, name: str, decide: Callable[[changes.Resource], Change], waiting: Waiting, output: Output
) -> dict[str, Any]:
    """Write what is decided; returns the resource as it was seen last."""
    with reported_errors(output):
        resource = kubectl.application(name)
        change = decide(resource)
        if change.spec is not None:
            resource = kubectl.patch(name, change.patch(resource))
        reached = None
        if waiting.wait:
            resource = _wait(kubectl, name, resource, change, waiting)
            reached = change.goal.is_reached(resource)
    if output is Output.JSON:
        print_json({"name": name, "spec": change.spec, "text": change.text, "reached": reached})
    else:
        typer.echo(f"{name}: {change.text}")
    if reached is False:
        typer.echo(f"it has not come to that within {waiting.timeout:g} s: kubectl streamsapp status {name}", err=True)
        raise typer.Exit(NOT_REACHED)
    return resource


def _wait(kubectl: Kubectl, name: str, resource: dict[str, Any], change: Change, waiting: Waiting) -> dict[str, Any]:
    deadline = time.monotonic() + waiting.timeout
    while not change.goal.is_reached(resource) and time.monotonic() < deadline:
        time.sleep(_TICK)
        resource = kubectl.application(name)
    return resource
