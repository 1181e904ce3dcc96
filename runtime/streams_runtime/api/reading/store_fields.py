"""Fields that a store does not have, and why: each is refused by name, with the nearest way."""

from __future__ import annotations

_TYPE = (
    "a store has no type: every one is RocksDB",
    (
        "leave it out; what a small store holds is in memory, in RocksDB's memtables and block cache"
        " (spec.state.rocksdb.memory)"
    ),
)
_TTL = (
    "a store has no ttl: rows would go on one instance alone, and come back from the changelog",
    (
        "leave it out; delete rows in a process step whose punctuator goes by stream time, in front of a toTable, or"
        " aggregate in windows, which have a retention"
    ),
)
REASONS: dict[str, tuple[str, str]] = {"type": _TYPE, "ttl": _TTL}
"""Field of a store → what is to be said of it, and what would do."""

STORE_FIELDS: dict[tuple[str, str], tuple[str, str]] = {
    **{
        (model, field): said
        for model in ("TableSpec", "ToTableSpec", "ProcessorStoreSpec")
        for field, said in REASONS.items()
    },
    **{(model, "ttl"): _TTL for model in ("StepSpec", "SourceSpec")},
}
"""The same by (model, field)."""
