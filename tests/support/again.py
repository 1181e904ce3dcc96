"""`make again TEST=… TIMES=…`: a test as often as that, beside busy loops on all cores, and how often it failed.

TEST is whatever pytest takes: a file, a file::test, several in quotes. A test that fails one time in twenty on a loaded
machine fails on a quiet one too, some day.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

_BUSY = "while True: pass"


@contextmanager
def busy(loops: int) -> Iterator[None]:
    """So many processes that only compute, as long as the block lasts."""
    running = [subprocess.Popen([sys.executable, "-c", _BUSY]) for _ in range(loops)]
    try:
        yield
    finally:
        for each in running:
            each.kill()
            each.wait()


def again(tests: Sequence[str], times: int, loops: int, folder: Path) -> int:
    """Run the tests so often; returns how often some failed. What such a run printed is FOLDER/N.txt, its logs N/."""
    failed = 0
    for number in range(1, times + 1):
        began = time.monotonic()
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
        environment = {**os.environ, "STREAMSAPP_TEST_LOGS": str(folder / str(number))}
        with busy(loops):
            done = subprocess.run(
                command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
            )
        words = (done.stdout.strip().splitlines() or ["nothing"])[-1]
        print(f"{number}: {words} ({time.monotonic() - began:.0f} s in all)", flush=True)
        if done.returncode:
            failed += 1
            (folder / f"{number}.txt").write_text(done.stdout)
    return failed


def main() -> int:
    """The command; 1 where a run failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tests", help="what pytest is to run")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--loops", type=int, default=os.cpu_count(), help="processes that only compute beside it")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the loops end too
    folder = Path(tempfile.mkdtemp(prefix="streamsapp-again-"))
    failed = again(shlex.split(given.tests), given.times, given.loops, folder)
    print(
        f"failed {failed} times of {given.times}"
        + (f"; what those printed and logged is in {folder}" if failed else "")
    )
    if not failed:
        folder.rmdir()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
