"""Which topic each record of a sink with `topicBy` goes to, and which records go nowhere (TopicNameExtractor)."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import islice
from typing import Protocol

from streams_runtime.api.reading.legal_names import topic_problem
from streams_runtime.batch.stage import ChosenTopics, Emission
from streams_runtime.errors import ConfigException
from streams_runtime.processing.failures.refused_records import Refusal
from streams_runtime.topology.own_topics import OwnTopics

_ASK_AGAIN = 10.0  # seconds after which a topic that was not there is looked for once more
_AT_ONCE = 1000  # topics of one request
_ABSENT_AT_MOST = 10_000  # names that are remembered as absent: data may give any number of them
_INVALID, _UNKNOWN = "InvalidTopicException", "UnknownTopicOrPartitionException"
_NOT_ALLOWED = "TopicAuthorizationException"


class TopicLookup(Protocol):
    """Who knows which topics there are (Admin). Asking makes none, also where brokers make topics by themselves."""

    def partition_counts(self, names: Collection[str]) -> Mapping[str, int]:
        """How many partitions those of the topics have that are there."""


@dataclass(frozen=True, slots=True)
class Routed:
    """The records of a sink by topic, in their order, and the rows of those that have none, with what for."""

    emissions: Sequence[Emission]
    refused: Mapping[int, Refusal]


class TopicRouting:
    """Remembers which topics are there. Used by one thread.

    A topic that was there counts as there until somebody says `look_again`; one that was not is looked for again at the
    next record for it, ten seconds later at the earliest.
    """

    def __init__(
        self,
        topics: TopicLookup,
        own: OwnTopics,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """No record may go to those that are `own`. `clock` gives seconds."""
        self._topics = topics
        self._own = own
        self._clock = clock
        self._present: set[str] = set()
        self._certain: set[str] = set()
        """Those of the present ones that need not be looked for."""
        self._absent: dict[str, tuple[float, Refusal]] = {}
        """When each was looked for, and what came of it."""

    @property
    def present(self) -> AbstractSet[str]:
        """The topics that records have gone to, but for those that were found to be gone."""
        return self._present

    def look_again(self) -> None:
        """Topics may not be there any more."""
        self._certain = set()

    def route(self, emission: Emission) -> Routed:
        """The records by topic. Raises BrokerNotAvailableException: nobody says which topics there are."""
        chosen = emission.chosen
        assert chosen is not None
        rows: dict[str | None, list[int]] = {}
        for row, name in enumerate(chosen.names):
            rows.setdefault(name, []).append(row)
        problems = self._problems(chosen, rows)
        given = replace(emission, chosen=None, sink=chosen.sink.name)
        emissions = [
            replace(given, topic=name).take(where)
            for name, where in rows.items()
            if name is not None and name not in problems
        ]
        refused = {row: problem for name, problem in problems.items() for row in rows[name]}
        return Routed(emissions, dict(sorted(refused.items())))

    def _problems(self, chosen: ChosenTopics, names: Collection[str | None]) -> dict[str | None, Refusal]:
        found: dict[str | None, Refusal] = {}
        unknown: list[str] = []
        for name in names:
            problem = self._wrong_by_itself(chosen, name) or self._known_absent(name)
            if problem is not None:
                found[name] = problem
            elif name is not None and name not in self._certain:
                unknown.append(name)
        found.update(self._look_for(unknown))
        return found

    def _wrong_by_itself(self, chosen: ChosenTopics, name: str | None) -> Refusal | None:
        if name is None:
            return Refusal(_INVALID, "topicBy gives null for it")
        if (problem := topic_problem(name)) is not None:
            return Refusal(_INVALID, f"topicBy gives no topic for it: {problem[0]}")
        if (what := self._own.what_is(name)) is not None:
            return Refusal(_INVALID, f"topicBy gives {name} for it, which {what}")
        if chosen.sink.topics is not None and name not in chosen.sink.topics:
            return Refusal(_INVALID, f"topicBy gives {name} for it, which is not among the sink's topics")
        return None

    def _known_absent(self, name: str | None) -> Refusal | None:
        asked, problem = self._absent.get(name or "", (float("-inf"), None))
        return problem if self._clock() - asked <= _ASK_AGAIN else None

    def _look_for(self, names: Sequence[str]) -> dict[str, Refusal]:
        """Those that are not there."""
        absent: dict[str, Refusal] = {}
        for first in range(0, len(names), _AT_ONCE):
            for name, problem in self._looked_for(names[first : first + _AT_ONCE]):
                self._absent.pop(name, None)
                if problem is None:
                    self._present.add(name)
                    self._certain.add(name)
                else:
                    self._present.discard(name)
                    absent[name] = problem
        now = self._clock()
        if len(self._absent) + len(absent) > _ABSENT_AT_MOST:
            self._absent = {}
        self._absent |= {name: (now, problem) for name, problem in islice(absent.items(), _ABSENT_AT_MOST)}
        return absent

    def _looked_for(self, names: Sequence[str]) -> Iterator[tuple[str, Refusal | None]]:
        """Each topic with what is wrong with it. One that this user may not see does not hide the others."""
        try:
            present = self._topics.partition_counts(names)
        except ConfigException as error:
            if len(names) == 1:
                yield names[0], Refusal(_NOT_ALLOWED, f"topicBy gives {names[0]} for it: {error}")
            else:
                half = len(names) // 2
                yield from self._looked_for(names[:half])
                yield from self._looked_for(names[half:])
            return
        for name in names:
            absent = Refusal(_UNKNOWN, f"topicBy gives {name} for it, and the brokers have no such topic")
            yield name, None if name in present else absent
