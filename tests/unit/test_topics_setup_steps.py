"""Setting up topics against brokers that misbehave: all or nothing, whatever happens."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import cast

import pytest

from streams_runtime.api import StreamsApplication, parse_application
from streams_runtime.errors import (
    BrokerNotAvailableException,
    ConfigException,
    MisconfiguredInternalTopicException,
    MissingInternalTopicException,
    MissingSourceTopicException,
    StreamsException,
)
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.types import CreatedTopics, TopicDescription, TopicPartition, TopicSpec
from streams_runtime.topics.setup_policy import InitParameters, SetupPolicy, explicit, manual
from streams_runtime.topics.topic_manager import InternalTopicManager
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.plan import InternalTopic

APPLICATION: StreamsApplication = parse_application(
    {
        "apiVersion": "streamsoperator.io/v1alpha1",
        "kind": "StreamsApplication",
        "metadata": {"name": "app"},
        "spec": {
            "topology": {
                "sources": [
                    {
                        "name": "orders",
                        "topic": "orders",
                        "value": {"format": "json", "schema": "user STRING, amount DOUBLE"},
                    }
                ],
                "steps": [
                    {"name": "by-user", "from": "orders", "keyBy": "user"},
                    {"name": "totals", "from": "by-user", "aggregate": {"n": "count(*)"}, "store": "totals"},
                ],
                "sinks": [{"from": "totals", "topic": "user-totals", "value": {"format": "json"}}],
            }
        },
    }
)
TOPOLOGY = build_topology(APPLICATION)
CHANGELOG, REPARTITION = "app-totals-changelog", "app-by-user-repartition"
USERS = {"orders": 3, "user-totals": 1}


class FakeBrokers:
    """Topics in memory, with the parts of Admin that set-up uses."""

    address = "kafka:9092"

    def __init__(self) -> None:
        self.topics = {name: TopicDescription(name, count, 1) for name, count in USERS.items()}
        self.ends: dict[TopicPartition, int] = {}
        self.refused: dict[str, StreamsException] = {}
        self.refuses_when_asked = True
        self.hidden_looks = 0
        self.before_create: Callable[[], None] = lambda: None
        self.after_create: Callable[[], None] = lambda: None
        self.creations = 0

    def describe_topics(self, names: Collection[str], config: bool = True) -> dict[str, TopicDescription]:
        if self.creations and self.hidden_looks > 0:
            self.hidden_looks -= 1
            return {}
        return {name: self.topics[name] for name in names if name in self.topics}

    def create_topics(self, topics: Sequence[TopicSpec], validate_only: bool = False) -> CreatedTopics:
        if not validate_only:
            self.before_create()
            self.creations += 1
        existed = {topic.name for topic in topics if topic.name in self.topics}
        refused = self.refused if self.refuses_when_asked or not validate_only else {}
        made = [topic for topic in topics if topic.name not in existed | refused.keys()]
        if not validate_only:
            for topic in made:
                self.make(topic.name, topic.partitions, topic.config)
            self.after_create()
        return CreatedTopics(frozenset(topic.name for topic in made), frozenset(existed), refused)

    def make(self, name: str, partitions: int, config: Mapping[str, str]) -> None:
        defaults = {"cleanup.policy": "delete", "retention.ms": "604800000", "retention.bytes": "-1"}
        self.topics[name] = TopicDescription(name, partitions, 1, {**defaults, **config})

    def delete_topics(self, names: Collection[str]) -> None:
        for name in names:
            self.topics.pop(name, None)

    def end_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return {each: self.ends.get(each, 0) for each in partitions if each.topic in self.topics}


@pytest.fixture
def brokers() -> FakeBrokers:
    return FakeBrokers()


@pytest.fixture
def manager(brokers: FakeBrokers) -> InternalTopicManager:
    ticks = iter(range(10_000))
    return InternalTopicManager(
        cast("Admin", brokers), timeout=50, clock=lambda: next(ticks), pause=lambda _seconds: None
    )


def make_ready(manager: InternalTopicManager) -> Mapping[str, int]:
    return manager.make_ready(TOPOLOGY, APPLICATION.spec)


def test_missing_internal_topics_are_made_and_all_counts_returned(
    manager: InternalTopicManager, brokers: FakeBrokers
) -> None:
    assert make_ready(manager) == {**USERS, REPARTITION: 3, CHANGELOG: 3}
    assert brokers.topics[CHANGELOG].config["cleanup.policy"] == "compact"
    assert brokers.topics[REPARTITION].config["retention.ms"] == "-1"


def test_a_second_call_makes_nothing(manager: InternalTopicManager, brokers: FakeBrokers) -> None:
    first = make_ready(manager)
    assert make_ready(manager) == first
    assert brokers.creations == 1


def test_only_what_is_missing_is_made(manager: InternalTopicManager, brokers: FakeBrokers) -> None:
    make_ready(manager)
    brokers.delete_topics([CHANGELOG])
    kept = brokers.topics[REPARTITION]
    make_ready(manager)
    assert brokers.topics[REPARTITION] is kept
    assert CHANGELOG in brokers.topics


def test_source_topics_are_checked_before_anything_is_made(manager: InternalTopicManager, brokers: FakeBrokers) -> None:
    brokers.delete_topics(["orders"])
    with pytest.raises(MissingSourceTopicException, match="orders"):
        make_ready(manager)
    assert brokers.creations == 0


def test_misconfigured_topics_are_reported_before_missing_ones_are_made(
    manager: InternalTopicManager, brokers: FakeBrokers
) -> None:
    brokers.make(CHANGELOG, 2, {"cleanup.policy": "compact"})
    with pytest.raises(MisconfiguredInternalTopicException, match="has 2 partitions and needs 3"):
        make_ready(manager)
    assert REPARTITION not in brokers.topics


@pytest.mark.parametrize("when_asked", [True, False])
def test_when_one_topic_is_refused_none_is_left(
    manager: InternalTopicManager, brokers: FakeBrokers, when_asked: bool
) -> None:
    brokers.refused = {CHANGELOG: ConfigException("no such property")}
    brokers.refuses_when_asked = when_asked
    with pytest.raises(ConfigException, match="no such property"):
        make_ready(manager)
    assert brokers.topics.keys() == USERS.keys()
    assert brokers.creations == (0 if when_asked else 1)


def test_what_was_made_is_removed_when_an_unexpected_exception_comes_later(
    manager: InternalTopicManager, brokers: FakeBrokers
) -> None:
    def fail(_partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        del brokers.end_offsets  # type: ignore[attr-defined]
        raise RuntimeError("unexpected")

    brokers.end_offsets = fail  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="unexpected"):
        make_ready(manager)
    assert brokers.topics.keys() == USERS.keys()


def test_a_topic_that_another_client_has_written_to_is_not_removed(
    manager: InternalTopicManager, brokers: FakeBrokers
) -> None:
    def fail(_partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        del brokers.end_offsets  # type: ignore[attr-defined]
        brokers.ends[TopicPartition(REPARTITION, 1)] = 5
        raise RuntimeError("unexpected")

    brokers.end_offsets = fail  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="unexpected"):
        make_ready(manager)
    assert brokers.topics.keys() == {*USERS, REPARTITION}


def test_topics_that_another_client_makes_at_the_same_moment_are_used(
    manager: InternalTopicManager, brokers: FakeBrokers
) -> None:
    brokers.before_create = lambda: brokers.make(CHANGELOG, 3, {"cleanup.policy": "compact"})
    assert make_ready(manager)[CHANGELOG] == 3
    assert REPARTITION in brokers.topics


def test_topics_that_another_client_makes_otherwise_are_reported_and_ours_removed(
    manager: InternalTopicManager, brokers: FakeBrokers
) -> None:
    brokers.before_create = lambda: brokers.make(CHANGELOG, 9, {"cleanup.policy": "compact"})
    with pytest.raises(MisconfiguredInternalTopicException, match="has 9 partitions"):
        make_ready(manager)
    assert REPARTITION not in brokers.topics
    assert CHANGELOG in brokers.topics


def test_new_topics_that_are_not_to_be_seen_at_once_are_waited_for_and_made_once(
    manager: InternalTopicManager, brokers: FakeBrokers
) -> None:
    brokers.hidden_looks = 4
    assert make_ready(manager)[CHANGELOG] == 3
    assert brokers.creations == 1


def test_new_topics_that_never_appear_are_an_error_that_names_them(
    manager: InternalTopicManager, brokers: FakeBrokers
) -> None:
    brokers.hidden_looks = 1000
    with pytest.raises(BrokerNotAvailableException, match=f"{CHANGELOG}.*within 50 s"):
        make_ready(manager)


def test_a_policy_that_refuses_leaves_the_brokers_untouched(
    manager: InternalTopicManager, brokers: FakeBrokers
) -> None:
    def refuse(expected: Sequence[InternalTopic], missing: Sequence[InternalTopic]) -> Sequence[InternalTopic]:
        assert {topic.name for topic in expected} == {topic.name for topic in missing}
        raise MissingInternalTopicException("not allowed")

    with pytest.raises(MissingInternalTopicException):
        manager.make_ready(TOPOLOGY, APPLICATION.spec, refuse)
    assert brokers.topics.keys() == USERS.keys()


def test_what_was_made_is_told_and_a_second_call_made_nothing(
    manager: InternalTopicManager, brokers: FakeBrokers
) -> None:
    assert manager.set_up(TOPOLOGY, APPLICATION.spec).created == (REPARTITION, CHANGELOG)
    assert manager.set_up(TOPOLOGY, APPLICATION.spec).created == ()


@pytest.mark.parametrize(("timeout", "told"), [(None, "within 50 s"), (7.0, "within 7 s")])
def test_topics_that_do_not_become_usable_end_the_call_after_its_timeout(
    manager: InternalTopicManager, brokers: FakeBrokers, timeout: float | None, told: str
) -> None:
    brokers.end_offsets = lambda _partitions: {}  # type: ignore[method-assign]
    with pytest.raises(BrokerNotAvailableException, match=told):
        manager.set_up(TOPOLOGY, APPLICATION.spec, timeout=timeout)


def test_a_look_changes_nothing_and_tells_what_is_there(manager: InternalTopicManager, brokers: FakeBrokers) -> None:
    brokers.make(CHANGELOG, 3, {"cleanup.policy": "compact"})
    survey = manager.look(TOPOLOGY, APPLICATION.spec)
    assert [topic.name for topic in survey.missing] == [REPARTITION]
    assert [topic.name for topic in survey.existing] == [CHANGELOG]
    assert survey.partitions == {**USERS, REPARTITION: 3, CHANGELOG: 3}
    assert brokers.creations == 0


def test_a_rehearsal_makes_nothing_and_raises_what_the_broker_would_refuse(
    manager: InternalTopicManager, brokers: FakeBrokers
) -> None:
    survey = manager.rehearse(TOPOLOGY, APPLICATION.spec, explicit(InitParameters()))
    assert [topic.name for topic in survey.missing] == [REPARTITION, CHANGELOG]
    brokers.refused = {CHANGELOG: ConfigException("no such property")}
    with pytest.raises(ConfigException, match="no such property"):
        manager.rehearse(TOPOLOGY, APPLICATION.spec, explicit(InitParameters()))
    brokers.refused = {}
    brokers.make(REPARTITION, 3, {"retention.ms": "-1"})
    with pytest.raises(MissingInternalTopicException, match=CHANGELOG):
        manager.rehearse(TOPOLOGY, APPLICATION.spec, explicit(InitParameters()))
    assert brokers.topics.keys() == {*USERS, REPARTITION}
    assert brokers.creations == 0


@pytest.mark.parametrize("policy", [manual, explicit(InitParameters())])
def test_topics_that_another_client_is_about_to_make_are_not_believed_to_be_missing(
    brokers: FakeBrokers, policy: SetupPolicy
) -> None:
    """The first three looks, a tenth of a second apart, show one of the two."""
    ticks = iter(range(10_000))
    manager = InternalTopicManager(
        cast("Admin", brokers), timeout=50, clock=lambda: next(ticks) / 10, pause=lambda _seconds: None
    )
    brokers.make(REPARTITION, 3, {"retention.ms": "-1"})
    looks = 0
    describe = brokers.describe_topics

    def appear(names: Collection[str], config: bool = True) -> dict[str, TopicDescription]:
        nonlocal looks
        looks += REPARTITION in names
        if looks == 4:
            brokers.make(CHANGELOG, 3, {"cleanup.policy": "compact"})
        return describe(names, config)

    brokers.describe_topics = appear  # type: ignore[method-assign]
    assert manager.set_up(TOPOLOGY, APPLICATION.spec, policy).created == ()
    assert brokers.creations == 0


def test_an_init_that_another_client_is_faster_than_succeeds_also_while_the_topics_appear_one_by_one(
    manager: InternalTopicManager, brokers: FakeBrokers
) -> None:
    """Both found none; all requests of this one say that the topics exist."""
    shown: list[set[str]] = [set(), {REPARTITION}, {REPARTITION}, {REPARTITION}, {REPARTITION, CHANGELOG}]

    def other() -> None:
        for name, config in ((REPARTITION, {"retention.ms": "-1"}), (CHANGELOG, {"cleanup.policy": "compact"})):
            brokers.make(name, 3, config)

    describe = brokers.describe_topics

    def bit_by_bit(names: Collection[str], config: bool = True) -> dict[str, TopicDescription]:
        found = describe(names, config)
        if CHANGELOG not in names:
            return found
        visible = shown.pop(0) if len(shown) > 1 else shown[0]
        return {name: topic for name, topic in found.items() if name in visible}

    brokers.describe_topics = bit_by_bit  # type: ignore[method-assign]
    brokers.before_create = other
    assert manager.set_up(TOPOLOGY, APPLICATION.spec, explicit(InitParameters())).created == ()
