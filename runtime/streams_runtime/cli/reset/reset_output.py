"""What `streamsapp reset` prints: what goes, has gone or would go, or why not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from streams_runtime.cli.output_format import Output, print_json
from streams_runtime.topics.reset.reset_plan import ResetPlan


def print_plan(name: str, address: str, plan: ResetPlan, stores: Sequence[Path], dry_run: bool, output: Output) -> None:
    """Each topic, offset and folder."""
    offsets = [
        {"topic": move.topic, "partition": number, "before": dict(move.before).get(number), "after": offset}
        for move in plan.moves
        for number, offset in move.after
    ]
    if output is Output.JSON:
        print_json(
            {
                "name": name,
                "bootstrapServers": address,
                "dryRun": dry_run,
                "topics": plan.topics,
                "offsets": offsets,
                "stores": [str(each) for each in stores],
            }
        )
        return
    typer.echo(f"{name} at {address}: {'would be reset; nothing was changed' if dry_run else 'reset'}")
    for topic in plan.topics:
        typer.echo(f"  topic {topic}: {'would be ' * dry_run}deleted and made anew")
    for each in offsets:
        before = "none" if each["before"] is None else each["before"]
        typer.echo(f"  offset of {each['topic']}-{each['partition']}: {before} → {each['after']}")
    for folder in stores:
        typer.echo(f"  stores in {folder}: {'would be ' * dry_run}deleted")


def print_refusals(refusals: Sequence[str], output: Output) -> None:
    """Why nothing was changed."""
    if output is Output.JSON:
        print_json({"error": "Refused", "refusals": list(refusals)})
        return
    for each in refusals:
        typer.echo(f"refused: {each}", err=True)
    typer.echo("nothing was changed", err=True)
