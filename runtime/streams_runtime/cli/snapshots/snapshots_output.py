"""What `streamsapp snapshots` prints."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta

import typer

from streams_runtime.api.spec.spec_values import format_duration
from streams_runtime.cli.output_format import Output, print_json
from streams_runtime.snapshots.snapshot_catalogue import Finding, Pruned, Snapshot

_COLUMNS = ("TASK", "STORE", "NUMBER", "AGE", "OFFSET", "FILES", "SIZE", "STATE")
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_WHOLE, _DAMAGED, _UNREADABLE = "whole", "damaged", "unreadable"
_Place = tuple[str, int, int]


def print_list(
    url: str, snapshots: Sequence[Snapshot], findings: Sequence[Finding], now: datetime, output: Output
) -> None:
    """One snapshot a line; those that can't be read stand behind the others."""
    reasons: dict[_Place, list[str]] = defaultdict(list)
    for finding in findings:
        reasons[finding.store, finding.partition, finding.number].append(f"{finding.path}: {finding.reason}")
    listed = {(each.store, each.partition, each.number): each for each in snapshots}
    unreadable = sorted(place for place in reasons if place not in listed)
    if output is Output.JSON:
        for place, each in listed.items():
            print_json(_fields(each, now) | {"state": _state(place, reasons), "reasons": reasons.get(place, [])})
        for store, partition, number in unreadable:
            place = (store, partition, number)
            fields = {"store": store, "partition": partition, "number": number}
            print_json(fields | {"state": _UNREADABLE, "reasons": reasons[place]})
        return
    if not listed and not unreadable:
        typer.echo(f"no snapshots in {url}")
        return
    rows = [_row(each, now, _state(place, reasons)) for place, each in listed.items()]
    rows += [
        ("?", f"{store}-{partition}", str(number), *"?" * 4, _UNREADABLE) for store, partition, number in unreadable
    ]
    widths = [max(map(len, column)) for column in zip(_COLUMNS, *rows, strict=True)]
    for row in (_COLUMNS, *rows):
        typer.echo("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())


def print_findings(url: str, count: int, findings: Sequence[Finding], output: Output) -> None:
    """Each object that is not as it should be, and what becomes of its snapshot."""
    damaged = {(each.store, each.partition, each.number) for each in findings}
    if output is Output.JSON:
        for each in findings:
            print_json(
                {
                    "store": each.store,
                    "partition": each.partition,
                    "number": each.number,
                    "path": each.path,
                    "reason": each.reason,
                }
            )
        print_json({"url": url, "snapshots": count, "damaged": len(damaged)})
        return
    for each in findings:
        typer.echo(f"{each.path}: {each.reason} (snapshot {each.number} of {each.store}-{each.partition})")
    if damaged:
        typer.echo(
            f"{len(damaged)} snapshots are not whole: none of them is used, and restorations read more of changelogs"
            " until instances have made newer ones"
        )
    else:
        typer.echo(f"{count} snapshots in {url} are whole")


def print_pruned(url: str, keep: int, gone: Pruned, dry_run: bool, output: Output) -> None:
    """How much went, or would go."""
    if output is Output.JSON:
        counts = {"manifests": gone.manifests, "files": gone.files}
        print_json({"url": url, "keep": keep, "dryRun": dry_run, **counts})
        return
    verb = "would be deleted; nothing was changed" if dry_run else "deleted"
    typer.echo(
        f"{gone.manifests} snapshots and {gone.files} files in {url} {verb}; the newest {keep} of each store stay"
    )


def _state(place: _Place, reasons: dict[_Place, list[str]]) -> str:
    return _DAMAGED if place in reasons else _WHOLE


def _row(each: Snapshot, now: datetime, state: str) -> tuple[str, ...]:
    return (
        each.task,
        f"{each.store}-{each.partition}",
        str(each.number),
        _age(now - each.created),
        str(each.offset),
        str(each.files),
        _bytes(each.size),
        state,
    )


def _fields(each: Snapshot, now: datetime) -> dict[str, object]:
    return {
        "task": each.task,
        "store": each.store,
        "partition": each.partition,
        "number": each.number,
        "created": each.created.isoformat(),
        "ageSeconds": round((now - each.created).total_seconds()),
        "changelog": each.changelog,
        "topicId": each.topic_id,
        "offset": each.offset,
        "files": each.files,
        "bytes": each.size,
        "writer": each.writer,
    }


def _age(age: timedelta) -> str:
    """In whole seconds, and of hours and more without the seconds; a clock that is behind gives 0."""
    seconds = max(0, round(age.total_seconds()))
    return format_duration(timedelta(seconds=seconds - seconds % 60 if seconds >= 3600 else seconds)).replace(
        "0ms", "0s"
    )


def _bytes(size: int) -> str:
    amount, unit = float(size), 0
    while amount >= 1024 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{amount:.{1 if unit and amount < 100 else 0}f} {_UNITS[unit]}"
