"""A process that is killed while its segments come and go: stream time, offset and all live windows agree then."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from killed_writer import killed_while_writing
from state_kit import memory_folder

from streams_runtime.kafka.types import TopicPartition
from streams_runtime.state.window_keys import LATEST, split_window_key
from streams_runtime.state.window_store import WindowStore

ROUNDS = 6
KEYS, STEP, RETENTION, INTERVAL = 500, 10, 100, 20

# Writes batches for ever. Each is one window of every key, named by the batch's offset; every other one opens a segment
# and drops another.
WRITER = f"""
import sys
from pathlib import Path
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.state.store import Updates
from streams_runtime.state.window_keys import window_key
from streams_runtime.state.window_store import WindowStore
store = WindowStore("w", TopicPartition("t", 0), Path(sys.argv[1]), {RETENTION}, {INTERVAL})
offset = store.offset() or 0
print("open", offset, flush=True)
while True:
    offset += 1
    keys = [window_key(b"%04d" % at, offset * {STEP}) for at in range({KEYS})]
    store.write(Updates(keys, [b"%d|" % offset + bytes(1000)] * len(keys), [offset] * len(keys)), offset)
    print(offset, flush=True)
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    with memory_folder() as made:
        yield made / "windows"


def test_a_kill_in_the_middle_of_writes_and_drops_leaves_what_was_written_and_nothing_else(folder: Path) -> None:
    for round_ in range(ROUNDS):
        reported = killed_while_writing(WRITER, folder, batches=12, moment=(round_ + 0.5) / ROUNDS)
        store = WindowStore("w", TopicPartition("t", 0), folder, RETENTION, INTERVAL)
        try:
            offset, stream_time, segments = store.offset(), store.stream_time, store.segments
            found = Counter(
                (split_window_key(key)[1], value.partition(b"|")[0])
                for key, value in store.fetch(None, None, 0, LATEST)
            )
        finally:
            store.close()
        assert offset in (reported, reported + 1)
        assert stream_time == offset * STEP
        live = range(max(offset - RETENTION // STEP, 0) + 1, offset + 1)
        assert found == {(each * STEP, b"%d" % each): KEYS for each in live}
        assert segments[0] == max(stream_time - RETENTION, 0) // INTERVAL
