"""A store's partition on disk: RocksDB behind a narrow adapter, segments of time, damage told from full disks."""
