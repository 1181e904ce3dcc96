"""What RocksDB tells of a database: its properties, and its statistics where they are kept."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from rocksdict import Rdict

OF_FAMILIES: Final = (
    "num-immutable-mem-table",
    "cur-size-active-mem-table",
    "cur-size-all-mem-tables",
    "size-all-mem-tables",
    "num-entries-active-mem-table",
    "num-deletes-active-mem-table",
    "num-entries-imm-mem-tables",
    "num-deletes-imm-mem-tables",
    "mem-table-flush-pending",
    "compaction-pending",
    "estimate-pending-compaction-bytes",
    "total-sst-files-size",
    "live-sst-files-size",
    "num-live-versions",
    "estimate-num-keys",
    "estimate-table-readers-mem",
)
"""Properties of each family, which are added up (KIP-607)."""
OF_DATABASES: Final = ("num-running-flushes", "num-running-compactions", "background-errors")
"""Properties of a database as a whole (KIP-607)."""
TICKERS: Final = (
    "bytes.written",
    "bytes.read",
    "flush.write.bytes",
    "memtable.hit",
    "memtable.miss",
    "block.cache.data.hit",
    "block.cache.data.miss",
    "block.cache.index.hit",
    "block.cache.index.miss",
    "block.cache.filter.hit",
    "block.cache.filter.miss",
    "stall.micros",
    "compact.read.bytes",
    "compact.write.bytes",
    "no.file.errors",
)
"""Statistics that count (KIP-471)."""
TIMES: Final = ("db.flush.micros", "compaction.times.micros")
"""Statistics that time something (KIP-471); `statistics_of` gives `.count` and `.sum` of each."""
_COUNT = re.compile(rf"^rocksdb\.({'|'.join(map(re.escape, TICKERS))}) COUNT : (\d+)$", re.MULTILINE)
_TIME = re.compile(rf"^rocksdb\.({'|'.join(map(re.escape, TIMES))}) P50 .* COUNT : (\d+) SUM : (\d+)$", re.MULTILINE)


def properties_of(database: Rdict, families: Iterable[Rdict]) -> dict[str, int]:
    """The properties of an open database, those of its families added up."""
    found: Counter[str] = Counter(dict.fromkeys((*OF_FAMILIES, *OF_DATABASES), 0))
    for family in families:
        for name in OF_FAMILIES:
            found[name] += family.property_int_value(f"rocksdb.{name}") or 0
    for name in OF_DATABASES:
        found[name] += database.property_int_value(f"rocksdb.{name}") or 0
    return dict(found)


def statistics_of(text: str | None) -> Mapping[str, int]:
    """Of RocksDB's own text of all statistics those that are shown; empty where none are kept."""
    found = {name: int(count) for name, count in _COUNT.findall(text or "")}
    for name, count, total in _TIME.findall(text or ""):
        found |= {f"{name}.count": int(count), f"{name}.sum": int(total)}
    return found
