"""The options that the databases of an instance are opened with, and the memory that they share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rocksdict import BlockBasedOptions, Cache, DBCompactionStyle, DBCompressionType, Options, WriteBufferManager

from streams_runtime.state.database.memtable_budget import MemtableBudget, Spilling

_MIB = 1024 * 1024
WRITE_BUFFER: Final = 16 * _MIB
"""Bytes of a memtable, as in Kafka Streams."""
# A family that is seldom written, as the offsets' is, keeps every log since its last flush; without a limit 256 MiB.
_LOG_BYTES = 64 * _MIB
_BLOCK_CACHE_BYTES = 50 * _MIB
_OPEN_FILES = 256
# RocksDB takes a memtable's memory in blocks of a MiB, also for the few bytes of a store that is seldom written.
_ARENA_BYTES = 64 * 1024
_ARENA_PART = 8  # of a memtable is RocksDB's own choice where that is less
COMPRESSIONS: Final = {
    "none": DBCompressionType.none,
    "snappy": DBCompressionType.snappy,
    "lz4": DBCompressionType.lz4,
    "zstd": DBCompressionType.zstd,
}
"""Those that the library was built with; one that it lacks is left out by RocksDB without a word."""
COMPACTIONS: Final = {"level": DBCompactionStyle.level, "universal": DBCompactionStyle.universal}


@dataclass(frozen=True, slots=True)
class RocksDBSettings:
    """What may be chosen; sizes in bytes. A value without a database: it goes to other processes as JSON.

    `memory` is for all databases together, None: each store has memtables of its own, and all share a cache of 50 MiB.
    """

    memory: int | None = None
    write_buffer_size: int = WRITE_BUFFER
    block_size: int = 4096
    bloom_filter_bits: int = 10  # of each key; 0: no filter
    compression: str = "snappy"
    compaction: str = "level"
    max_background_jobs: int = 2


class RocksDBOptions:
    """Options for the databases of an instance, which share one block cache. Safe to use from any thread.

    With `memory` the cache counts what the memtables of all databases hold, and the index and filter blocks of their
    files, so that it gives up other blocks for them. Memtables have half of it, and are written to files before they
    take more. One write is never parted: what a single batch writes may go beyond that half until it is in a file.
    """

    def __init__(self, settings: RocksDBSettings | None = None) -> None:
        """Open nothing; absent settings are the runtime's own."""
        self.settings = RocksDBSettings() if settings is None else settings
        self._capacity = self.settings.memory or _BLOCK_CACHE_BYTES
        self._cache = Cache(self._capacity)
        self._memtables: WriteBufferManager | None = None
        self._budget: MemtableBudget | None = None
        if self.settings.memory is not None:
            # Without stalls: a write would wait for memtables of other stores that nobody writes, and so for ever.
            share = self.settings.memory // 2
            self._memtables = WriteBufferManager.new_write_buffer_manager_with_cache(share, False, self._cache)
            self._budget = MemtableBudget(share, self._memtables.get_usage)

    def options(self) -> Options:
        """Options of a database and of each of its families."""
        settings = self.settings
        options = Options(raw_mode=True)
        options.create_if_missing(True)
        options.create_missing_column_families(True)
        options.set_write_buffer_size(settings.write_buffer_size)
        options.set_max_total_wal_size(_LOG_BYTES)
        options.set_keep_log_file_num(1)
        options.set_max_open_files(_OPEN_FILES)
        options.set_max_background_jobs(settings.max_background_jobs)
        options.set_compression_type(COMPRESSIONS[settings.compression]())
        options.set_compaction_style(COMPACTIONS[settings.compaction]())
        if self._memtables is not None:
            options.set_write_buffer_manager(self._memtables)
            options.set_arena_block_size(min(_ARENA_BYTES, settings.write_buffer_size // _ARENA_PART))
        options.set_block_based_table_factory(self._table())
        return options

    def _table(self) -> BlockBasedOptions:
        table = BlockBasedOptions()
        table.set_block_cache(self._cache)
        table.set_block_size(self.settings.block_size)
        table.set_cache_index_and_filter_blocks(self.settings.memory is not None)
        if self.settings.bloom_filter_bits:
            table.set_bloom_filter(self.settings.bloom_filter_bits, False)
        return table

    def opened(self, database: Spilling) -> None:
        """The database has these options, and is open."""
        if self._budget is not None:
            self._budget.add(database)

    def closing(self, database: Spilling) -> None:
        """It is to be closed, or was never open."""
        if self._budget is not None:
            self._budget.remove(database)

    def written(self) -> None:
        """A database was written; to be called without a lock of its own, since another one may have to spill."""
        if self._budget is not None:
            self._budget.keep()

    def memory_figures(self) -> dict[str, int]:
        """Bytes of the block cache: its capacity, what is in it, what of that is in use. With `memory` the memtables
        are in it too, and in use.
        """
        return {
            "block-cache-capacity": self._capacity,
            "block-cache-usage": self._cache.get_usage(),
            "block-cache-pinned-usage": self._cache.get_pinned_usage(),
        }


DEFAULT_OPTIONS: Final = RocksDBOptions()
"""The runtime's own: one block cache for all stores of the process, however many clients and partitions it has."""


def options_of(settings: RocksDBSettings) -> RocksDBOptions:
    """Options for these settings, with memory of their own unless they are the runtime's own."""
    return DEFAULT_OPTIONS if settings == DEFAULT_OPTIONS.settings else RocksDBOptions(settings)
