"""A process that is killed while it writes: whatever is in the store then, data and offset agree."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from killed_writer import killed_while_writing
from state_kit import contents, memory_folder

from streams_runtime.kafka.types import TopicPartition
from streams_runtime.state.store import KeyValueStore

ROUNDS = 8
KEYS = 2000

# Writes batches for ever; all values of a batch name its offset, and so does the one key that is left out.
WRITER = """
import sys
from pathlib import Path
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.state.store import KeyValueStore, Updates
store = KeyValueStore("totals", TopicPartition("t", 0), Path(sys.argv[1]))
keys = [b"%04d" % number for number in range(2000)]
offset = store.offset() or 0
print("open", offset, flush=True)
while True:
    offset += 1
    gone = offset % len(keys)
    values = [None if at == gone else b"%d|" % offset + bytes(1000) for at in range(len(keys))]
    store.write(Updates(keys, values, [offset] * len(keys)), offset)
    print(offset, flush=True)
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    with memory_folder() as made:
        yield made / "totals"


def test_data_and_offset_agree_after_a_kill_in_the_middle_of_writes(folder: Path) -> None:
    for round_ in range(ROUNDS):
        reported = killed_while_writing(WRITER, folder, batches=10, moment=(round_ + 0.5) / ROUNDS)
        store = KeyValueStore("totals", TopicPartition("t", 0), folder)
        try:
            found, offset = contents(store), store.offset()
        finally:
            store.close()
        assert offset is not None
        # What was written is there, for the operating system had it; one more write may have been on its way.
        assert offset in (reported, reported + 1)
        assert {value.partition(b"|")[0] for value in found.values()} == {b"%d" % offset}
        assert len(found) == KEYS - 1
        assert b"%04d" % (offset % KEYS) not in found
