"""`streamsapp topology --diff OLD NEW`: whether an upgrade keeps the state that is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from streams_runtime.api import Reading
from streams_runtime.builder.resolve_python import Beside
from streams_runtime.cli.common.given_file import INVALID, read_or_exit
from streams_runtime.cli.output_format import Output, print_json
from streams_runtime.topology.changes.change import Change, Owned, TopologyChanges
from streams_runtime.topology.changes.compare import changes
from streams_runtime.topology.declared.build_topology import build_topology

INCOMPATIBLE = 3
"""Exit code: the upgrade would lose or misread state."""

_HEADS = (
    ("orphaned", "Left behind"),
    ("changed", "Read as something else, or not found"),
    ("new", "New"),
)


def diff(old: Path, new: Path, output: Output) -> None:
    """Print what an upgrade does, and end the command: 0 compatible, 3 not, 1 and 2 as for one file."""
    # What stands in a file counts: the code that the old one was built from is rarely there any more.
    readings = (read_or_exit(old, output, Beside.TAKEN), read_or_exit(new, output, Beside.TAKEN))
    _exit_on_mistakes((old, readings[0]), (new, readings[1]), output=output)
    plans = [build_topology(each.application) for each in readings if each.application is not None]
    found = changes(*plans)
    if output is Output.JSON:
        print_json(as_json(found))
    else:
        typer.echo(as_text(found))
    if not found.compatible:
        raise typer.Exit(INCOMPATIBLE)


def as_text(found: TopologyChanges) -> str:
    """For people: the verdict, then each change with its consequence and its remedy."""
    lines = [_verdict(found)]
    for kind, head in _HEADS:
        items = [item for item in found.items if item.kind == kind]
        if items:
            lines += ["", f"{head}:"]
        for item in items:
            lines += [f"  {item.where}: {item.what}", f"    so: {item.consequence}", f"    do: {item.remedy}"]
    return "\n".join(lines)


def as_json(found: TopologyChanges) -> dict[str, Any]:
    """The same for programs."""
    return {
        "compatible": found.compatible,
        "orphaned": _owned(found.orphaned),
        "new": _owned(found.new),
        "changes": [_change(item) for item in found.items],
    }


def _verdict(found: TopologyChanges) -> str:
    if found.compatible:
        return "compatible: every store and internal topic goes on in the new topology"
    count = len(found.incompatible)
    changed = "1 change loses or misreads" if count == 1 else f"{count} changes lose or misread"
    # Another applicationId is refused by the definition itself.
    another = any(item.where == "spec.applicationId" for item in found.incompatible)
    until = "" if another else " until spec.topologyChange is allow"
    return f"not compatible: {changed} what is there. A cluster refuses it{until}"


def _exit_on_mistakes(*files: tuple[Path, Reading], output: Output) -> None:
    for file, reading in files:
        for each in reading.reported:
            if output is Output.JSON:
                print_json({"file": str(file), "path": each.path, "found": each.found, "remedy": each.remedy})
            else:
                typer.echo(f"{file}: {each}")
    if any(reading.application is None for _, reading in files):
        raise typer.Exit(INVALID)


def _change(item: Change) -> dict[str, str]:
    return {
        "kind": item.kind,
        "where": item.where,
        "what": item.what,
        "consequence": item.consequence,
        "remedy": item.remedy,
    }


def _owned(names: Owned) -> dict[str, list[str]]:
    return {"stores": list(names.stores), "topics": list(names.topics)}
