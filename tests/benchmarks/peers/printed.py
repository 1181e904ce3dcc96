"""What a peer in Python prints: a JSON line ten times a second, as peers/kafka-streams/Serve.java does."""

from __future__ import annotations

import json
import sys
import threading
import time

LOOK_S = 0.1


class Printed:
    """Counts and moments of this process; moments in milliseconds since the epoch."""

    def __init__(self) -> None:
        self.processed = 0
        self.moments: dict[str, int] = {}
        self._lock = threading.Lock()

    def start(self) -> None:
        """Print from now on, in a thread of its own."""
        threading.Thread(target=self._print_on, name="printed", daemon=True).start()

    def mark(self, moment: str) -> None:
        """Now, unless it has been already."""
        self.moments.setdefault(moment, int(time.time() * 1000))

    def seen(self) -> None:
        """One more record was processed."""
        self.processed += 1
        if self.processed == 1:
            self.mark("first_record")
        self.moments["last_record"] = int(time.time() * 1000)

    def line(self) -> None:
        """Print once."""
        with self._lock:
            said = {"processed": self.processed, "restored": 0, "moments": dict(self.moments)}
            sys.stdout.write(json.dumps(said, separators=(",", ":")) + "\n")
            sys.stdout.flush()

    def _print_on(self) -> None:
        while "closed" not in self.moments:
            self.line()
            time.sleep(LOOK_S)
