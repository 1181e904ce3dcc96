"""`streamsapp snapshots`: lists, verifies and prunes the snapshots that a file's application has in its bucket."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Annotated

import typer

from streams_runtime.api import StreamsApplication
from streams_runtime.api.spec.snapshots_spec import SnapshotsSpec
from streams_runtime.cli.common.given_file import (
    INVALID,
    File,
    application_or_exit,
    exits_reported,
    print_mistakes,
    read_or_exit,
)
from streams_runtime.cli.output_format import Output
from streams_runtime.cli.snapshots.snapshot_credentials import credential_mistakes
from streams_runtime.cli.snapshots.snapshots_output import print_findings, print_list, print_pruned
from streams_runtime.errors import Mistake
from streams_runtime.snapshots.bucket import Bucket, open_bucket
from streams_runtime.snapshots.manifest_chain import garbage, read_chain
from streams_runtime.snapshots.snapshot_catalogue import Pruned, list_snapshots, stores_of
from streams_runtime.snapshots.snapshot_catalogue import prune as prune_snapshots
from streams_runtime.snapshots.snapshot_catalogue import verify as verify_snapshots

DAMAGED = 1
"""Exit code: a snapshot is not whole. Mistakes of the file end with the same."""
_HELP = "Look after an application's snapshots in its bucket; credentials come from the environment."

app = typer.Typer(help=_HELP, no_args_is_help=True)
_Output = Annotated[Output, typer.Option(help="json: one object a line.")]


@app.command("list")
def list_(file: File, output: _Output = Output.TEXT) -> None:
    """List the snapshots of FILE's application, of each store's partition the newest first, and whether all is there.

    Manifests and sizes are looked at; no file is read (see verify).

    Exit code 0: they are listed. 1: the file has mistakes, or no snapshots. 2: the bucket can't be read.
    """
    application, bucket = _opened(file, output)
    with exits_reported(output):
        found = list_snapshots(bucket, application.application_id)
        findings = verify_snapshots(bucket, application.application_id, read_files=False)
    print_list(bucket.url, found, findings, datetime.now(UTC), output)


@app.command()
def verify(
    file: File,
    full: Annotated[
        bool, typer.Option("--full", help="Read every file and compare its checksum; downloads all of them.")
    ] = False,
    output: _Output = Output.TEXT,
) -> None:
    """Name each damaged object of the snapshots of FILE's application: manifests by checksum, files by size.

    Exit code 0: all are whole. 1: some are not, or the file has mistakes. 2: the bucket can't be read.
    """
    application, bucket = _opened(file, output)
    with exits_reported(output):
        count = len(list_snapshots(bucket, application.application_id))
        findings = verify_snapshots(bucket, application.application_id, read_files=full)
    print_findings(bucket.url, count, findings, output)
    if findings:
        raise typer.Exit(DAMAGED)


@app.command()
def prune(
    file: File,
    keep: Annotated[
        int | None, typer.Option(min=1, help="Snapshots that stay of each store. Default: spec.state.snapshots.keep.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Delete nothing; say what would go.")] = False,
    output: Annotated[Output, typer.Option(help="json: one object.")] = Output.TEXT,
) -> None:
    """Delete all but the newest snapshots of FILE's application, and files that none names. Instances may run.

    Exit code 0: it is done (with --dry-run: it would be). 1: the file has mistakes, or no snapshots. 2: the bucket
    does not answer; what is left goes the next time.
    """
    application, bucket = _opened(file, output)
    kept = _snapshots(application, output).keep if keep is None else keep
    with exits_reported(output):
        if dry_run:
            gone = _would_go(bucket, application.application_id, kept)
        else:
            gone = prune_snapshots(bucket, application.application_id, kept)
    print_pruned(bucket.url, kept, gone, dry_run, output)


def _opened(file: File, output: Output) -> tuple[StreamsApplication, Bucket]:
    """The application and its bucket; ends the command of a file with mistakes, or without snapshots."""
    application = application_or_exit(read_or_exit(file, output), output)
    snapshots = _snapshots(application, output)
    mistakes = list(credential_mistakes(snapshots, os.environ))
    if mistakes:
        print_mistakes(mistakes, output)
        raise typer.Exit(INVALID)
    with exits_reported(output):
        return application, open_bucket(snapshots.url, os.environ)


def _snapshots(application: StreamsApplication, output: Output) -> SnapshotsSpec:
    snapshots = application.spec.state.snapshots
    if snapshots is None:
        remedy = "give the url of the bucket that they are in"
        print_mistakes([Mistake("spec.state.snapshots", "is missing, so there are no snapshots", remedy)], output)
        raise typer.Exit(INVALID)
    return snapshots


def _would_go(bucket: Bucket, application: str, keep: int) -> Pruned:
    """What `prune` would delete now. Raises BucketException."""
    found = [
        garbage(read_chain(bucket, key, keep), key, bucket.sizes(key.files), keep)
        for key in stores_of(bucket, application)
    ]
    return Pruned(sum(len(each.manifests) for each in found), sum(len(each.files) for each in found))
