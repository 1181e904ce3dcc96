"""The verification: what the application says beside what it should say, key by key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from demo_parts.figures import Figures, Row, different
from demo_parts.second_opinion import Range, SecondOpinion
from demo_parts.twice import Batch, Verdict, judge, read_again

from streams_runtime.kafka.types import TopicPartition

_NOTHING = Figures(0, 0, 0, None, None, None, None, None)


@dataclass(frozen=True, slots=True)
class Checked:
    """A store's rows beside DuckDB's, with the verdict on each key."""

    ours: Mapping[str, Row]
    theirs: Mapping[str, Figures]
    verdicts: Mapping[str, Verdict]

    @property
    def twice(self) -> int:
        """Flights that the store counts a second time."""
        return sum(each.twice for each in self.verdicts.values())

    @property
    def unexplained(self) -> list[str]:
        """Keys with a difference that no flights processed twice account for."""
        return [key for key, verdict in self.verdicts.items() if verdict.unexplained]


def check_carriers(opinion: SecondOpinion, ours: Mapping[str, Row], again: Sequence[Sequence[Range]]) -> Checked:
    """The store that reads the topic of the flights: its batches that were read `again` may be in it twice."""
    candidates = [opinion.of_batch(ranges) for ranges in again]
    return _checked(ours, opinion.by("carrier"), {}, candidates)


def check_origins(opinion: SecondOpinion, ours: Mapping[str, Row], again: Sequence[Sequence[Range]]) -> Checked:
    """The store behind the repartition topic: what that topic has too many is in it twice for certain, and batches of
    the topic itself that were read `again` may be.
    """
    candidates = [opinion.of_repartitioned(ranges) for ranges in again]
    return _checked(ours, opinion.by("origin"), opinion.excess(), candidates)


def check_once(opinion: SecondOpinion, column: str, ours: Mapping[str, Row]) -> Checked:
    """The figures by `column` of a run in which nothing was killed: each flight is in them once."""
    return _checked(ours, opinion.by(column), {}, ())


def reads_again(found: Sequence[Batch], topic: str) -> list[list[Range]]:
    """The ranges of each batch of `topic` that was read again."""
    batches = []
    for batch in read_again(found):
        places = [(TopicPartition.parse(name), start, end) for name, (start, end) in batch.ranges.items()]
        ranges = [(where.partition, start, end) for where, start, end in places if where.topic == topic]
        if ranges:
            batches.append(ranges)
    return batches


def differing_keys(one: Mapping[str, Row], other: Mapping[str, Row]) -> list[str]:
    """The keys whose rows differ, or that only one of the two has."""
    return sorted(key for key in {*one, *other} if different(one.get(key, {}), other.get(key, {})))


def _checked(
    ours: Mapping[str, Row],
    theirs: Mapping[str, Figures],
    excess: Mapping[str, Figures],
    candidates: Sequence[Mapping[str, Figures]],
) -> Checked:
    verdicts = {}
    for key in {*ours, *theirs}:
        plain = theirs.get(key, _NOTHING)
        extra = excess.get(key, _NOTHING)
        verdict = judge(ours.get(key, {}), plain + extra, [each[key] for each in candidates if key in each])
        verdicts[key] = Verdict(verdict.twice + extra.flights, verdict.unexplained)
    return Checked(ours, theirs, verdicts)
