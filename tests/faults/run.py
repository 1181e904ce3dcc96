"""`make faults SEED=… HOURS=…`: histories by seeds, one after the other, until the time is over.

Prints each history that fails, with its seed and its application, and goes on with a new application. The exit code is
1 if any did. `run.py --seed N --histories 1` begins with history N, of the application that it had.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

_HERE = Path(__file__).resolve()
sys.path[:0] = [str(_HERE.parent), str(_HERE.parents[1] / "support")]

from lives import Life, Peace  # noqa: E402 - tests' helpers are no packages
from short_jvms import compile_less  # noqa: E402

PER_LIFE = 50  # histories of one application
PER_TOPOLOGY = 10  # of one that is generated, of which every second PER_LIFE histories are: so that many are met


@dataclass(frozen=True)
class Kind:
    """What a history's seed says of the life that it belongs to."""

    first: int
    """The seed of the life's first history, which makes the application."""
    end: int
    once: bool
    instances: int
    generated: bool


def kind_of(seed: int) -> Kind:
    """The life of a history; a quarter of either kind is at least once."""
    generated = seed // PER_LIFE % 2 == 1
    length = PER_TOPOLOGY if generated else PER_LIFE
    number = seed // PER_TOPOLOGY if generated else seed // PER_LIFE // 2
    first = seed // length * length
    return Kind(first, first + length, number % 4 != 3, 1 + number % 2, generated)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first history's; the others follow it")
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--histories", type=int, default=sys.maxsize, help="at most so many")
    given = parser.parse_args()
    compile_less()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that processes and brokers end too
    end = time.monotonic() + given.hours * 3600
    seed, failed, longest = given.seed, [], Peace()
    last = given.seed + given.histories
    while time.monotonic() < end and seed < last:
        kind = kind_of(seed)
        with tempfile.TemporaryDirectory(prefix="streams-faults-") as folder:
            try:
                with Life(Path(folder), kind.first, kind.once, kind.instances, kind.generated) as life:
                    print(life, flush=True)
                    while seed < min(kind.end, last) and time.monotonic() < end:
                        began = time.monotonic()
                        what = life.live(seed)
                        took, peace = time.monotonic() - began, life.peace
                        print(f"seed {seed}: {took:.1f} s; {'; '.join(what)}; {peace}", flush=True)
                        longest = longest.or_longer(peace)
                        seed += 1
            except AssertionError:
                failed.append(seed)
                traceback.print_exc()
                kept = Path(tempfile.mkdtemp(prefix="streams-faults-failed-"))
                for log in Path(folder).rglob("*.log"):
                    (kept / log.name).write_bytes(log.read_bytes())
                print(f"FAILED: seed {seed}, logs in {kept}", flush=True)
                seed += 1
    print(f"{seed - given.seed} histories from seed {given.seed}, {len(failed)} failed {failed}; {longest} at most")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
