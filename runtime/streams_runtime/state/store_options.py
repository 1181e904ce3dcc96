"""From `spec.state.rocksdb` to the options of an instance's stores."""

from __future__ import annotations

from streams_runtime.api.spec.pod_spec import RocksDBSpec
from streams_runtime.api.spec.spec_values import quantity_value
from streams_runtime.state.database.rocksdb_options import WRITE_BUFFER, RocksDBOptions, RocksDBSettings, options_of


def store_options(spec: RocksDBSpec) -> RocksDBOptions:
    """The options, with the memory that the stores that are opened with them share: to be made once an instance."""
    return options_of(
        RocksDBSettings(
            memory=_bytes(spec.memory),
            write_buffer_size=_bytes(spec.write_buffer_size) or WRITE_BUFFER,
            block_size=int(quantity_value(spec.block_size)),
            bloom_filter_bits=spec.bloom_filter_bits,
            compression=spec.compression,
            compaction=spec.compaction,
            max_background_jobs=spec.max_background_jobs,
        )
    )


def _bytes(quantity: str | None) -> int | None:
    return None if quantity is None else int(quantity_value(quantity))
