"""A process that writes batches into a store until it is killed."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path


def killed_while_writing(writer: str, folder: Path, batches: int, moment: float) -> int:
    """Let a process write so many batches, kill it at a moment of the next (0 to 1); the last offset it reported.

    `writer` is a program that takes the folder as its argument, prints `open` and the offset that it finds, then the
    offset of each batch once it is written.
    """
    with subprocess.Popen([sys.executable, "-c", writer, str(folder)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            reported = int(process.stdout.readline().split()[1])
            since = time.monotonic()
            for _ in range(batches):
                reported = int(process.stdout.readline())
            a_batch = (time.monotonic() - since) / batches
            time.sleep(moment * a_batch)  # not a wait: the moment of the next batch at which the blow falls
        finally:
            process.kill()
        rest = [line for line in process.stdout if line.endswith("\n")]
    return int(rest[-1]) if rest else reported
