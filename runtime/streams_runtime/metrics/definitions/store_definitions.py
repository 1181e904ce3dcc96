"""Metrics of stores, over their partitions here, and of RocksDB."""

from __future__ import annotations

from streams_runtime.metrics.metric_definition import Kind, Level, Metric

_STORE = ("store",)


def _store(name: str, kind: Kind, unit: str, meaning: str, kafka: str = "", level: Level = Level.DEBUG) -> Metric:
    theirs = f"stream-state-metrics: {kafka}" if kafka else ""
    return Metric(f"kafka_streams_store_{name}", kind, unit, meaning, _STORE, theirs, level)


WRITTEN = _store(
    "written_records", "counter", "records", "Updates that batches have written into the store.", level=Level.INFO
)
PUT_RATE = _store("put_all_rate", "gauge", "writes/s", "Atomic writes: one a batch and partition.", "put-all-rate")
PUT_TOTAL = _store("put_all", "counter", "writes", "The same in all.")
PUT_AVG = _store("put_all_latency_avg", "gauge", "ms", "Of one of these writes.", "put-all-latency-avg")
PUT_MAX = _store("put_all_latency_max", "gauge", "ms", "The longest of them.", "put-all-latency-max")
GET_RATE = _store("get_rate", "gauge", "reads/s", "Reads of keys, many at once, by batches and queries.", "get-rate")
GET_TOTAL = _store("get", "counter", "reads", "The same in all.")
GET_AVG = _store("get_latency_avg", "gauge", "ms", "Of one of these reads.", "get-latency-avg")
GET_MAX = _store("get_latency_max", "gauge", "ms", "The longest of them.", "get-latency-max")
READ_KEYS = _store("read_keys", "counter", "keys", "Keys that these reads have asked for.")


def _buffer(unit: str, meaning: str, kafka: str) -> Metric:
    theirs = f"stream-state-metrics: {kafka}-avg"
    return Metric(f"kafka_streams_suppression_buffer_{unit}", "gauge", unit, meaning, _STORE, theirs)


BUFFERS = {
    name: _buffer(unit, meaning, name)
    for name, unit, meaning in (
        ("suppression-buffer-count", "keys", "Of which a change waits in a `toStream` with `suppress`."),
        ("suppression-buffer-size", "bytes", "That these changes count for in `buffer.bytes`."),
    )
}
"""By the names that a SuppressStore gives them; its partitions that a batch has come to are added up."""


def _rocksdb(name: str, unit: str, meaning: str) -> Metric:
    theirs = f"stream-state-metrics: {name} (KIP-607)"
    return Metric(f"kafka_streams_rocksdb_{name.replace('-', '_')}", "gauge", unit, meaning, _STORE, theirs)


PROPERTIES = {
    name: _rocksdb(name, unit, meaning)
    for name, unit, meaning in (
        ("num-immutable-mem-table", "memtables", "Memtables that wait to be flushed."),
        ("cur-size-active-mem-table", "bytes", "Of the memtables that are written to."),
        ("cur-size-all-mem-tables", "bytes", "Of these and of those that are not flushed yet."),
        ("size-all-mem-tables", "bytes", "Of these and of pinned ones."),
        ("num-entries-active-mem-table", "entries", "In the memtables that are written to."),
        ("num-deletes-active-mem-table", "entries", "Deletions among them."),
        ("num-entries-imm-mem-tables", "entries", "In the memtables that wait to be flushed."),
        ("num-deletes-imm-mem-tables", "entries", "Deletions among them."),
        ("mem-table-flush-pending", "families", "With a flush that is due."),
        ("num-running-flushes", "flushes", "That go on."),
        ("compaction-pending", "families", "With a compaction that is due."),
        ("num-running-compactions", "compactions", "That go on."),
        ("estimate-pending-compaction-bytes", "bytes", "That compactions have to rewrite, by estimate."),
        ("total-sst-files-size", "bytes", "Of all files."),
        ("live-sst-files-size", "bytes", "Of the files of the newest version."),
        ("num-live-versions", "versions", "That files are kept for; many are held by open walks."),
        ("estimate-num-keys", "keys", "By RocksDB's estimate."),
        ("estimate-table-readers-mem", "bytes", "For reading files, beside the block cache."),
        ("background-errors", "errors", "Of flushes and compactions since the opening."),
    )
}
"""By RocksDB's names; the partitions of a store that are open here, standbys included, are added up."""


def _cache(name: str, meaning: str) -> Metric:
    theirs = f"stream-state-metrics: {name} (KIP-607)"
    return Metric(f"kafka_streams_rocksdb_{name.replace('-', '_')}", "gauge", "bytes", meaning, (), theirs)


CACHE = {
    name: _cache(name, meaning)
    for name, meaning in (
        ("block-cache-capacity", "Of the one block cache that all stores share: `state.rocksdb.memory`, or 50 MiB."),
        ("block-cache-usage", "That lie in it; with `state.rocksdb.memory` memtables, indexes and filters too."),
        ("block-cache-pinned-usage", "That are in use, and can't be given up; with that, memtables too."),
    )
}


def _statistic(name: str, kind: Kind, unit: str, meaning: str, kafka: str) -> Metric:
    theirs = f"stream-state-metrics: {kafka} (KIP-471)"
    return Metric(f"kafka_streams_rocksdb_{name}", kind, unit, meaning, _STORE, theirs, Level.DEBUG)


COUNTS = {
    ticker: _statistic(name, "counter", unit, meaning, kafka)
    for ticker, name, unit, meaning, kafka in (
        ("bytes.written", "bytes_written", "bytes", "Written.", "bytes-written-total"),
        ("bytes.read", "bytes_read", "bytes", "Read.", "bytes-read-total"),
        (
            "flush.write.bytes",
            "memtable_bytes_flushed",
            "bytes",
            "Flushed from memtables.",
            "memtable-bytes-flushed-total",
        ),
        ("memtable.hit", "memtable_hits", "reads", "That a memtable answered.", "memtable-hit-ratio"),
        ("memtable.miss", "memtable_misses", "reads", "That no memtable answered.", "memtable-hit-ratio"),
        (
            "block.cache.data.hit",
            "block_cache_data_hits",
            "reads",
            "Of blocks with data.",
            "block-cache-data-hit-ratio",
        ),
        (
            "block.cache.data.miss",
            "block_cache_data_misses",
            "reads",
            "Of such blocks from files.",
            "block-cache-data-hit-ratio",
        ),
        ("block.cache.index.hit", "block_cache_index_hits", "reads", "Of index blocks.", "block-cache-index-hit-ratio"),
        (
            "block.cache.index.miss",
            "block_cache_index_misses",
            "reads",
            "Of such blocks from files.",
            "block-cache-index-hit-ratio",
        ),
        (
            "block.cache.filter.hit",
            "block_cache_filter_hits",
            "reads",
            "Of filter blocks.",
            "block-cache-filter-hit-ratio",
        ),
        (
            "block.cache.filter.miss",
            "block_cache_filter_misses",
            "reads",
            "Of such blocks from files.",
            "block-cache-filter-hit-ratio",
        ),
        ("stall.micros", "write_stall_duration", "µs", "In which writes were held up.", "write-stall-duration-total"),
        ("compact.read.bytes", "bytes_read_compaction", "bytes", "Read by compactions.", "bytes-read-compaction-rate"),
        (
            "compact.write.bytes",
            "bytes_written_compaction",
            "bytes",
            "Written by compactions.",
            "bytes-written-compaction-rate",
        ),
        ("no.file.errors", "number_file_errors", "errors", "At opening files.", "number-file-errors-total"),
    )
}
"""RocksDB's statistics by their names there."""
TIMED = {
    "db.flush.micros": _statistic(
        "memtable_flush_time", "summary", "µs", "Flushes of memtables, and their time.", "memtable-flush-time-avg"
    ),
    "compaction.times.micros": _statistic(
        "compaction_time", "summary", "µs", "Compactions, and their time.", "compaction-time-avg"
    ),
}
STORES = (
    WRITTEN,
    PUT_RATE,
    PUT_TOTAL,
    PUT_AVG,
    PUT_MAX,
    GET_RATE,
    GET_TOTAL,
    GET_AVG,
    GET_MAX,
    READ_KEYS,
    *BUFFERS.values(),
)
ROCKSDB = (*PROPERTIES.values(), *CACHE.values(), *COUNTS.values(), *TIMED.values())
