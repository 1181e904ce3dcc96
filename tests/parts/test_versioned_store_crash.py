"""A process that is killed while a history grows and is dropped: rows, versions, stream time and offset agree then."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from killed_writer import killed_while_writing
from state_kit import memory_folder

from streams_runtime.kafka.types import TopicPartition
from streams_runtime.state.versioned_store import Version, VersionedStore

ROUNDS = 6
KEYS, STEP, RETENTION = 300, 50_000, 200_000

# Writes batches for ever. Each is one version of every key, valid from a time that goes by the batch's offset; segments
# are of about a minute, so that nearly every batch opens one and drops another. Every third batch deletes.
WRITER = f"""
import sys
from pathlib import Path
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.state.store import Updates
from streams_runtime.state.versioned_store import VersionedStore
store = VersionedStore("v", TopicPartition("t", 0), Path(sys.argv[1]), {RETENTION})
offset = store.offset() or 0
print("open", offset, flush=True)
while True:
    offset += 1
    value = None if offset % 3 == 0 else b"%d|" % offset + bytes(1000)
    keys = [b"%04d" % at for at in range({KEYS})]
    store.write(Updates(keys, [value] * len(keys), [offset * {STEP}] * len(keys)), offset)
    print(offset, flush=True)
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    with memory_folder() as made:
        yield made / "versions"


def test_a_kill_in_the_middle_of_writes_and_drops_leaves_every_version_that_was_written(folder: Path) -> None:
    for round_ in range(ROUNDS):
        reported = killed_while_writing(WRITER, folder, batches=12, moment=(round_ + 0.5) / ROUNDS)
        store = VersionedStore("v", TopicPartition("t", 0), folder, RETENTION)
        try:
            offset, stream_time = store.offset(), store.stream_time
            assert offset in (reported, reported + 1)
            assert stream_time == offset * STEP
            for number in range(offset - RETENTION // STEP, offset + 1):
                expected = None if number % 3 == 0 else (b"%d" % number, number * STEP)
                found = {_shown(store.as_of(b"%04d" % at, number * STEP + 1)) for at in range(KEYS)}
                if number * STEP + 1 >= stream_time - RETENTION:
                    assert found == {expected}, number
            assert store.segments[0] == (stream_time - RETENTION) // store.segment_interval
        finally:
            store.close()


def _shown(version: Version | None) -> tuple[bytes, int] | None:
    if version is None or version.value is None:
        return None
    return version.value.partition(b"|")[0], version.valid_from
