"""What a reset does, from what was asked for and what the brokers have; pure.

Kafka's own tool (kafka-streams-application-reset.sh, KIP-171 and KIP-198) is the model. Here everything that can be
refused is refused before the first step, and an offset that a log does not have is refused where that tool clips it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from streams_runtime.api.spec.operations.reset_spec import ResetSpec
from streams_runtime.topology.nodes.source_and_sink_nodes import SourceNode, TableSourceNode
from streams_runtime.topology.nodes.step_nodes import TransformNode
from streams_runtime.topology.plan import Topology


@dataclass(frozen=True, slots=True)
class PartitionLog:
    """One partition of a source. `end` is what a consumer of this application would call the end.

    `committed`: the group's offset; None: it has none. `at_time`: the first offset of the time that was asked for, or
    `end` where there is none as late; None: no time was asked for.
    """

    start: int
    end: int
    committed: int | None = None
    at_time: int | None = None


@dataclass(frozen=True, slots=True)
class TopicLog:
    """A source's topic, with its id and partitions."""

    topic_id: str
    partitions: Mapping[int, PartitionLog]


@dataclass(frozen=True, slots=True)
class ResetSurvey:
    """What the brokers have. `internal` are the internal topics that exist; `members` the client ids in the group.

    `readers` are other groups with live members that read internal topics, by topic; `undeletable` are those that this
    login may not delete. `problems` keep an application like this from running at all.
    """

    logs: Mapping[str, TopicLog] = field(default_factory=dict)
    internal: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    readers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    undeletable: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OffsetMove:
    """The partitions of one topic with the offsets that come next, (partition, offset), in order.

    `before` has those of partitions in which the group has committed. `topic_id` is the topic that they are offsets of.
    """

    topic: str
    topic_id: str
    before: tuple[tuple[int, int], ...]
    after: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class ResetPlan:
    """All that a reset does at the brokers: the internal topics that are emptied, and the offsets that are set."""

    topics: tuple[str, ...]
    moves: tuple[OffsetMove, ...]

    @property
    def partitions(self) -> int:
        """How many partitions' offsets are set."""
        return sum(len(move.after) for move in self.moves)


@dataclass(frozen=True, slots=True)
class ResetOutlook:
    """What a reset would do, or why not. `members` have to go first; `refusals` speak against it as it was asked for.

    `plan` is None exactly when there are refusals.
    """

    plan: ResetPlan | None
    refusals: tuple[str, ...] = ()
    members: tuple[str, ...] = ()


def plan_reset(reset: ResetSpec, topology: Topology, survey: ResetSurvey, now: float) -> ResetOutlook:
    """What the reset does. `now` is in seconds since 1970.

    The application's file says nothing wrong of it (api.checks.operations.reset_checks). Raises nothing.
    """
    topology = topology.resolved(survey.logs)
    topics = reset_topics_of(reset, topology)
    refusals = [*survey.problems, *_unknown(reset, topology), *_time_refusals(reset, now), *_readers(survey)]
    moves = []
    for source, topic in topics:
        log = survey.logs.get(topic)
        if log is None:
            if not survey.problems:
                refusals.append(f"the source {source} reads the topic {topic}, which is not there: create it")
            continue
        asked = None if reset.to.offsets is None else reset.to.offsets[source]
        refusals += _offset_refusals(source, topic, asked, log)
        moves.append(_move(reset, topic, asked, log))
    plan = None if refusals else ResetPlan(survey.internal, tuple(moves))
    return ResetOutlook(plan, tuple(dict.fromkeys(refusals)), survey.members)


def reset_topics_of(reset: ResetSpec, topology: Topology) -> Sequence[tuple[str, str]]:
    """The sources whose offsets are set, each with a topic that it reads, in the order of the topology.

    Those of a pattern are known once the topology is `resolved`.
    """
    topics = topology.source_topics
    nodes = [node for node in topology.nodes if isinstance(node, SourceNode | TableSourceNode)]
    read = {node.name: [topic for topic in topics if node.reads(topic)] for node in nodes}
    named = _named(reset)
    if named:
        again = (node for node in topology.nodes if isinstance(node, TransformNode) and node.is_source)
        read |= {node.name: read[node.input] for node in again}
    return [(name, topic) for name, each in read.items() if not named or name in named for topic in each]


def _named(reset: ResetSpec) -> Collection[str]:
    """The sources that are named; empty: all are meant."""
    return reset.to.offsets if reset.to.offsets is not None else reset.sources


def _unknown(reset: ResetSpec, topology: Topology) -> Iterator[str]:
    """A topology that is in force need not be the one of the file: a change may be refused, or rolled back."""
    known = {
        node.name
        for node in topology.nodes
        if (isinstance(node, SourceNode | TableSourceNode) and node.topic not in topology.global_topics)
        or (isinstance(node, TransformNode) and node.is_source)
    }
    if missing := [source for source in _named(reset) if source not in known]:
        yield (
            f"the topology in force has no source {listed(missing)} with offsets of a group: name others, or let the"
            " topology that has them be deployed first"
        )


def counted(number: int, one: str) -> str:
    """A number of things: `1 topic`, `2 topics`."""
    return f"{number} {one}" if number == 1 else f"{number} {one}s"


def _move(reset: ResetSpec, topic: str, asked: Mapping[str, int] | None, log: TopicLog) -> OffsetMove:
    if asked is not None:
        after = {int(partition): offset for partition, offset in asked.items()}
    else:
        after = {number: _target(reset, each) for number, each in log.partitions.items()}
    before = {
        number: each.committed
        for number, each in log.partitions.items()
        if number in after and each.committed is not None
    }
    return OffsetMove(topic, log.topic_id, tuple(sorted(before.items())), tuple(sorted(after.items())))


def _target(reset: ResetSpec, log: PartitionLog) -> int:
    match reset.to.moment:
        case "earliest":
            return log.start
        case "latest":
            return log.end
        case _:
            return log.end if log.at_time is None else log.at_time


def _time_refusals(reset: ResetSpec, now: float) -> Iterator[str]:
    time = reset.to.time
    if time is not None and time.timestamp() > now:
        present = datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds")
        yield f"{reset.to.moment} is in the future, as it is {present}: give a time that has passed, or latest"


def _offset_refusals(source: str, topic: str, asked: Mapping[str, int] | None, log: TopicLog) -> Iterator[str]:
    for partition, offset in (asked or {}).items():
        there = log.partitions.get(int(partition))
        if there is None:
            count = counted(len(log.partitions), "partition")
            yield f"{source}: the topic {topic} has {count}, and no partition {partition}"
        elif not there.start <= offset <= there.end:
            yield (
                f"{source}: {topic}-{partition} has the offsets {there.start} to {there.end}, and not {offset}:"
                " give one of these"
            )


def _readers(survey: ResetSurvey) -> Iterator[str]:
    for topic, groups in survey.readers.items():
        yield (
            f"the internal topic {topic} is read by the group {listed(groups)} too: stop whatever reads it, or keep"
            " internal topics"
        )
    if survey.undeletable:
        yield (
            f"the brokers do not let this login delete {listed(survey.undeletable)}: grant it to the user of"
            " spec.kafka.config, or keep internal topics"
        )


def listed(names: Iterable[str], most: int = 10) -> str:
    """Names joined by commas, the first ten of them."""
    found = list(names)
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return ", ".join(found[:most]) + more
