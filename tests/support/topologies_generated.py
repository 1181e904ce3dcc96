"""One application for each seed, of two to six steps of any kind behind each other, and portions of records for it."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steps_model.items import Given
from topologies_made import FORMATS, KINDS, REFUSED, STREAM, TABLE, Chain, end_of, made_of, record_of
from topologies_refused import refusals

from streams_runtime.kafka.producer.partitioner import partition_for

LETTERS = "letters"
STEPS = (2, 6)
_POLICIES: Sequence[Any] = ("continue", "continue", {"deadLetter": {"topic": LETTERS}}, "fail")
"""Where no policy lets records go that can't be read, there are none, and tables are those of source topics."""


# Few kinds may stand behind a table, and most of what is to be tried behind streams and topics in between.
_WEIGHTS: Mapping[str, float] = {"toStream": 4, "keyBy text": 2, "keyBy number": 2, "keyBy struct": 2}


@dataclass(frozen=True)
class Generated:
    """What a seed gives: a chain of kinds, and the application with it."""

    chain: Chain
    begins: str
    document: Mapping[str, Any]

    @property
    def has_bad_records(self) -> bool:
        """Whether some of its records can't be read."""
        return bool(self.document["spec"]["processing"]["onDeserializationError"] != "fail")

    @property
    def sources(self) -> Sequence[Mapping[str, Any]]:
        """Its sources; every one has a topic of its own."""
        sources: Sequence[Mapping[str, Any]] = self.document["spec"]["topology"]["sources"]
        return sources


def generated(seed: int) -> Generated:
    """The application of a seed: the same one each time. None that `streamsapp validate` refuses."""
    dice = random.Random(seed)
    while True:
        begins = dice.choice((STREAM, STREAM, TABLE))
        chain = _chain(dice, begins, dice.randint(*STEPS))
        document = made_of(chain, begins, dice.choice(FORMATS), dice.choice(_POLICIES))
        if len(chain) >= STEPS[0] and not refusals(document):
            return Generated(chain, begins, document)


def _chain(dice: random.Random, begins: str, length: int) -> Chain:
    chain: list[str] = []
    while len(chain) < length:
        before = end_of(chain, begins)
        place = (chain[-1], end_of(chain[:-1], begins)) if chain else None
        fitting = [name for name, kind in KINDS.items() if before in kind.takes and (place, name) not in REFUSED]
        chain.append(dice.choices(fitting, [_WEIGHTS.get(name, 1) for name in fitting])[0])
    return chain


def portion(
    source: Mapping[str, Any], dice: random.Random, count: int, first: int, partitions: int, bad: bool
) -> list[Given]:
    """Records of a source's topic from the time `first` (ms) on, out of order by up to four seconds, some at one time.

    Each names its partition; records of one key have the same.
    """
    found: list[Given] = []
    now = last = first
    for _ in range(count):
        now += 100 * dice.choice((0, 1, 3, 10, 30))
        time = last if dice.random() < 0.1 else now - (100 * dice.randrange(40) if dice.random() < 0.3 else 0)
        last = time
        given = record_of(source, time, dice, bad)
        place = dice.randrange(partitions) if given.key is None else partition_for(given.key, partitions)
        found.append(Given(given.topic, given.key, given.value, given.time, given.headers, place))
    return found
