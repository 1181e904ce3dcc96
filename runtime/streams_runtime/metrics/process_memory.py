"""The processes of an instance and their resident memory, from /proc."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal

ProcessKind = Literal["client", "jvm", "worker"]
_PROC = Path("/proc")


def processes_of(root: int, proc: Path = _PROC) -> Mapping[ProcessKind, tuple[int, int]]:
    """Number and resident bytes of the process `root` and of all that it has started, by kind; empty without /proc.

    A process that ends meanwhile is left out.
    """
    children: defaultdict[int, list[int]] = defaultdict(list)
    found: dict[int, tuple[str, int]] = {}
    page = os.sysconf("SC_PAGE_SIZE")
    for folder in proc.glob("[0-9]*") if proc.is_dir() else ():
        # A process may have gone since it was listed.
        with suppress(OSError, ValueError, IndexError):
            head, _, rest = (folder / "stat").read_text(errors="replace").rpartition(")")
            fields = rest.split()
            number = int(folder.name)
            children[int(fields[1])].append(number)
            found[number] = (head.partition("(")[2], int(fields[21]) * page)
    totals: dict[ProcessKind, tuple[int, int]] = {}
    waiting = [root]
    while waiting:
        number = waiting.pop()
        waiting += children[number]
        if number in found:
            name, size = found[number]
            kind: ProcessKind = "client" if number == root else "jvm" if name == "java" else "worker"
            count, before = totals.get(kind, (0, 0))
            totals[kind] = (count + 1, before + size)
    return totals
