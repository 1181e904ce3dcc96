"""The status of an application as a tree for a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from streams_runtime.cli.local.progress.live_table import count, duration, state_text
from streams_runtime.cli.status.status_values import (
    ApplicationStatus,
    InstanceStatus,
    RestoringStore,
    TaskStatus,
    is_settled,
)

_UNWRAPPED = 100_000


def print_status(application: ApplicationStatus) -> None:
    """Print its tree. Lines are wrapped only where a terminal has no room for them: programs read whole ones."""
    is_terminal = Console().is_terminal
    Console(width=None if is_terminal else _UNWRAPPED).print(tree_of(application))


def tree_of(application: ApplicationStatus) -> Tree:
    """Application, problems first, then instances with their tasks and restorations."""
    tree = Tree(_application(application))
    for problem in application.problems:
        branch = tree.add(Text.assemble((problem.where, "red"), f": {problem.what}"))
        if problem.remedy:
            branch.add(Text(problem.remedy, style="bold"))
    for instance in application.instances:
        branch = tree.add(_instance(instance))
        for line in _inside(instance):
            branch.add(line)
    return tree


def _application(application: ApplicationStatus) -> Text:
    facts = [f"{application.ready} of {application.replicas} ready"]
    if application.tasks is not None:
        facts.append(f"tasks {application.tasks}")
    if application.restoring:
        facts.append(f"{count(application.restoring)} records to restore")
    facts.append(f"lag {count(application.lag)}")
    if application.setup:
        facts.append(f"internal topics {application.setup}")
    return Text.assemble(application.name, " ", state_text(application.state), "  ", ", ".join(facts))


def _instance(instance: InstanceStatus) -> Text:
    facts = [f"lag {count(instance.lag)}"]
    if instance.restoring:
        facts.append(f"{count(instance.restoring)} records to restore")
    if instance.restarts:
        facts.append(f"crashes in a row: {instance.restarts}")
    facts += [f"{key}={value}" for key, value in instance.tags.items()]
    if instance.url:
        facts.append(instance.url)
    return Text.assemble(instance.name, " ", state_text(instance.state), "  ", ", ".join(facts))


def _inside(instance: InstanceStatus) -> Iterable[Text]:
    if instance.note:
        yield Text(instance.note, style="yellow")
    settled = [task for task in instance.tasks if is_settled(task) and not task.standby]
    # Tasks that have the same stores and are well share a line: an instance may have hundreds.
    for stores in dict.fromkeys(task.stores for task in settled):
        named = " ".join(task.id for task in settled if task.stores == stores)
        yield Text.assemble(("tasks ", "dim"), named, _stores(stores))
    for task in instance.tasks:
        if not is_settled(task) and not task.standby:
            yield Text.assemble(("task ", "dim"), task.id, " ", state_text(str(task.state)), _stores(task.stores))
    for task in instance.tasks:
        if task.standby:
            yield _standby(task)
    for store in instance.restorations:
        yield _restoring(store)
    if instance.warming is not None:
        text = f" until its tasks can move here: {count(instance.warming)} records"
        yield Text.assemble(("warms up", "yellow"), text)


def _standby(task: TaskStatus) -> Text:
    behind = "" if task.lag is None else f", {count(task.lag)} behind"
    return Text.assemble(("standby ", "dim"), task.id, _stores(task.stores), behind)


def _stores(stores: tuple[str, ...]) -> Text:
    return Text(f" with {', '.join(stores)}" if stores else "")


def _restoring(store: RestoringStore) -> Text:
    left = "" if store.eta_seconds is None else f", {duration(store.eta_seconds)} left"
    text = f" {store.store}, partition {store.partition}: {count(store.left)} records{left}"
    return Text.assemble(("restores", "yellow"), text)
