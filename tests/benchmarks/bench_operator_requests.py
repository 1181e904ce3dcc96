"""The operator's requests, from the API server's audit log: its policy records this user's and nobody else's."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import orjson

Requests = Counter[tuple[str, str]]
"""How many there were by verb and resource (with `/status` behind it for that subresource)."""

_READS = frozenset({"get", "list", "watch"})


def policy(user: str) -> dict[str, Any]:
    """An audit policy."""
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived", "ResponseStarted", "Panic"],
        "rules": [{"level": "Metadata", "users": [user]}, {"level": "None"}],
    }


class AuditLog:
    """Counts what is new in the log at each look. A watch counts when it ends."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._offset = 0

    def new(self) -> Requests:
        """The requests that were answered after the last look, without those for the Lease."""
        found: Requests = Counter()
        if not self._file.exists():
            return found
        with self._file.open("rb") as log:
            log.seek(self._offset)
            for line in log:
                if not line.endswith(b"\n"):
                    break
                self._offset += len(line)
                event = orjson.loads(line)
                about = event.get("objectRef") or {}
                kind = "/".join(about[each] for each in ("resource", "subresource") if about.get(each))
                if kind and kind != "leases":
                    found[event["verb"], kind] += 1
        return found


def writes(requests: Requests) -> int:
    """Those that change something."""
    return sum(number for (verb, _), number in requests.items() if verb not in _READS)
