"""Runs tests in as many processes as there are cores; each file is collected by the one process that runs its tests.

    python tests/support/side_by_side.py tests/unit tests/parts

xdist's workers collect all files each, and send five messages a test, which costs short tests more than they take
themselves. Here each process finds the files, takes the largest that no other has taken, runs it, and takes the next
one (pieces.py). The first process writes to the terminal; what the others have written follows when all are through.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

_NO_TESTS = 5  # pytest's exit code


def run(arguments: Sequence[str], processes: int) -> int:
    """Run pytest with these arguments in so many processes; the worst of their exit codes."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="streamsapp-test-pieces-") as name:
        folder = Path(name)
        command = [sys.executable, "-m", "pytest", "-p", "no:xdist", "-o", "console_output_style=classic"]
        command += [f"--pieces={name}", *arguments]
        outputs = [None, *((folder / f"output-{number}").open("w+b") for number in range(1, processes))]
        started = [
            subprocess.Popen(command, stdout=output, stderr=None if output is None else subprocess.STDOUT)
            for output in outputs
        ]
        # Here, and not before the processes start: it takes as long as their start does.
        from run_times import PIECES, Times, told

        codes = [_ended(each) for each in started]
        for output in filter(None, outputs):
            output.seek(0)
            sys.stdout.buffer.write(output.read())
            sys.stdout.buffer.flush()
            output.close()
        times = Times()
        for file in sorted(folder.glob(PIECES)):
            times.include(json.loads(file.read_text()))
    print(*told(times), sep="\n")
    # With more processes than files some have nothing to run. That none of them has is a mistake.
    worst = max((abs(code) for code in codes if code != _NO_TESTS), default=_NO_TESTS)
    print(f"{times.count} tests in {time.monotonic() - began:.0f} s, exit code {worst}")
    return worst


def _ended(process: subprocess.Popen[bytes]) -> int:
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue  # the process has been interrupted too, and says how far it came


if __name__ == "__main__":
    raise SystemExit(run(sys.argv[1:], os.cpu_count() or 1))
