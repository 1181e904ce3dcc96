"""Spark's daemon of workers for `make coverage`: they end by SIGHUP, so each saves after a task what it passed."""

from __future__ import annotations

from typing import BinaryIO

import coverage
from pyspark import daemon

_work = daemon.worker_main


def _work_and_save(infile: BinaryIO, outfile: BinaryIO) -> None:
    try:
        _work(infile, outfile)
    finally:
        if (measuring := coverage.Coverage.current()) is not None:
            measuring.save()


daemon.worker_main = _work_and_save

if __name__ == "__main__":
    daemon.manager()
