"""`make faults SEED=… HOURS=…`: histories by seeds, one after the other, until the time is over.

Prints each history that fails, with its seed, and goes on with a new application. The exit code is 1 if any did.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

_HERE = Path(__file__).resolve()
sys.path[:0] = [str(_HERE.parent), str(_HERE.parents[1] / "support")]

from lives import Life  # noqa: E402 - tests' helpers are no packages

PER_LIFE = 50  # histories of one application


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first history's; the others follow it")
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--histories", type=int, default=sys.maxsize, help="at most so many")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that processes and brokers end too
    end = time.monotonic() + given.hours * 3600
    first, seed, failed, longest = given.seed, given.seed, [], 0.0
    while time.monotonic() < end and seed - first < given.histories:
        once = seed // PER_LIFE % 4 != 3  # a quarter of the lives is at least once
        with tempfile.TemporaryDirectory(prefix="streams-faults-") as folder:
            try:
                with Life(Path(folder), seed, once, instances=1 + seed // PER_LIFE % 2) as life:
                    for _ in range(PER_LIFE - seed % PER_LIFE):
                        if time.monotonic() > end or seed - first >= given.histories:
                            break
                        seed += 1
                        began = time.monotonic()
                        what = life.live(seed)
                        print(f"seed {seed}: {time.monotonic() - began:.1f} s; {'; '.join(what)}", flush=True)
                    longest = max(longest, life.longest_peace)
            except AssertionError:
                failed.append(seed)
                traceback.print_exc()
                kept = Path(tempfile.mkdtemp(prefix="streams-faults-failed-"))
                for log in Path(folder).rglob("*.log"):
                    (kept / log.name).write_bytes(log.read_bytes())
                print(f"FAILED: seed {seed}, logs in {kept}", flush=True)
                seed += 1
    print(
        f"{seed - first} histories from seed {first}, {len(failed)} failed {failed}; at most {longest:.1f} s from the"
        " last fault to RUNNING with all processed"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
