"""Input for the oracle's applications: few keys and many records, out of order, some too late, some of them deletions.

Every run has the same records, with the same places in their windows; only the hour that they begin at moves, since
brokers delete from a windowed changelog what is older than a day.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from streams_runtime.kafka.producer.batch_producer import BatchProducer
from streams_runtime.state.serdes import key_serde, value_serde
from streams_runtime.topology.nodes.source_and_sink_nodes import Format

MINUTE = 60_000
HOUR = 60 * MINUTE
_BEGINS_HOURS_AGO = 12
_SPAN = 3 * HOUR  # three times the longest retention: the first windows are gone at the end
WORDS = ("a", "aa", "a\x00", "b", "ba", "ü", "hello", "kafka", "z")
"""Some begin like others, and go on with bytes that a window's start begins with."""
NUMBERS = (0, 1, -1, 255, 256, 2**62, -(2**63))


@dataclass(frozen=True, slots=True)
class Input:
    """One record; `time` in ms since 1970."""

    key: str | int
    value: int | str | None
    time: int


def events(count: int = 900) -> list[Input]:
    """Words with an amount."""
    source = random.Random(5)
    return [Input(source.choice(WORDS), source.randrange(-50, 500), at) for at in _times(source, count)]


def readings(count: int = 400) -> list[Input]:
    """Numbers with a text; one in seven is a deletion."""
    source = random.Random(6)
    return [
        Input(source.choice(NUMBERS), None if source.random() < 1 / 7 else "x" * source.randrange(9), at)
        for at in _times(source, count)
    ]


def orders(count: int, seed: int) -> list[Input]:
    """Words with a JSON document that has an amount."""
    source = random.Random(seed)
    return [
        Input(source.choice(WORDS), f'{{"amount":{source.randrange(-50, 500)}}}', at) for at in _times(source, count)
    ]


def _times(source: random.Random, count: int) -> Iterator[int]:
    """Bursts with pauses between them, so that sessions end; a third comes late, by up to 20 minutes."""
    hour = int(time.time() * 1000) // HOUR - _BEGINS_HOURS_AGO
    now = hour * HOUR
    step = 2 * _SPAN // count
    for _ in range(count):
        now += source.randrange(step) if source.random() < 0.8 else source.randrange(3 * step)
        late = source.randrange(20 * MINUTE) if source.random() < 1 / 3 else 0
        yield max(now - late, hour * HOUR)


def write_input(bootstrap: str, topic: str, records: Sequence[Input], key: str, value: str) -> None:
    """Write records to a topic, keys and values in these formats; the keys decide on the partitions."""
    keys, values = key_serde(Format(key)), value_serde(Format(value))
    producer = BatchProducer({"bootstrap.servers": bootstrap}, "oracle-input")
    producer.send(
        topic,
        [keys.encode(each.key) for each in records],
        [None if each.value is None else values.encode(each.value) for each in records],
        [each.time for each in records],
    )
    producer.flush()
    producer.close()
