"""Tables whose records may be left out: their own changelogs, and a change between these and their topics."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import Any, cast

import pytest
from pipeline_kit import json, topology_of
from refused_applications import ORDERS, USERS, application, step
from table_trees import Given, in_partitions, steps_of, table
from tables_played import OneTask, PlayedRunner, keyed

from streams_runtime.api import StreamsApplication, parse_application
from streams_runtime.batch.stage import StoreBatch
from streams_runtime.errors import ConfigException, TopologyException
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.types import TopicDescription, TopicPartition
from streams_runtime.processors.contract import Applied, ApplyContext
from streams_runtime.processors.tables import source_table
from streams_runtime.topics.table_changelogs import check_table_changelogs, former_changelogs, warn_of_former_changelogs
from streams_runtime.topology.changes.compare import changes
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.partition_counts import internal_topic_names, internal_topics
from streams_runtime.topology.plan import Topology

CHANGELOG = "shop-users-changelog"
JOINED = step(join={"table": "users", "type": "left", "select": {"tier": "users.tier"}})
LETTERS: Mapping[str, Any] = {"deadLetter": {"topic": "letters"}}


def parsed(policy: Any, *, table: Any = None, topic: str = "users", joined: Any = JOINED) -> StreamsApplication:
    users = {**USERS, "topic": topic, "table": {"store": "users", **(table or {})}}
    document = application(joined, sources=(ORDERS, users), processing={"onDeserializationError": policy})
    return parse_application(document)


def planned(policy: Any, **more: Any) -> Topology:
    return build_topology(parsed(policy, **more))


@pytest.mark.parametrize("policy", ["continue", LETTERS, {"python": "record_decisions:by_error"}])
def test_a_table_whose_records_may_be_left_out_has_a_changelog_of_its_own(policy: Any) -> None:
    (_, store) = planned(policy).store("users")
    assert (store.changelog_topic, store.source_changelog) == (CHANGELOG, False)
    assert internal_topic_names(planned(policy)) == (CHANGELOG,)
    (_, restored_from_its_topic) = planned("fail").store("users")
    assert (restored_from_its_topic.changelog_topic, restored_from_its_topic.source_changelog) == ("users", True)
    assert internal_topic_names(planned("fail")) == ()


def test_so_has_one_whose_rows_steps_may_fail_over() -> None:
    failing = {"onProcessingError": "continue"}
    looked_up = build_topology(parse_application(application(JOINED, processing=failing)))
    assert internal_topic_names(looked_up) == ()
    for steps in ([step(from_="users", where="tier = 'x'")], [step(from_="users", toStream={})]):
        made = build_topology(parse_application(application(*steps, processing=failing)))
        assert internal_topic_names(made) == (CHANGELOG,)
    written = application(sinks=[{"from": "users", "topic": "out"}], processing=failing)
    assert internal_topic_names(build_topology(parse_application(written))) == (CHANGELOG,)
    plans = {**USERS, "name": "plans", "topic": "plans", "table": {"store": "plans"}}
    both = step(from_="users", join={"table": "plans", "type": "left", "select": {"plan": "plans.tier"}})
    made = build_topology(parse_application(application(both, sources=(USERS, plans), processing=failing)))
    assert internal_topic_names(made) == (CHANGELOG, "shop-plans-changelog")


def test_its_changelog_has_as_many_partitions_as_its_topic_and_keeps_a_history() -> None:
    made = parsed("continue", table={"historyRetention": "1h"})
    (topic,) = internal_topics(build_topology(made), made.spec, {"orders": 3, "users": 3})
    assert (topic.name, topic.partitions, topic.kind) == (CHANGELOG, 3, "changelog")
    assert topic.config_dict["cleanup.policy"] == "compact"
    assert topic.config_dict["min.compaction.lag.ms"] == str((1 + 24) * 3_600_000)


def applied(policy: str) -> tuple[Applied, StoreBatch]:
    """What a batch of four records of `left`, of which three have keys, comes to."""
    made = steps_of({"filter": table("left")})
    topology = topology_of(made.sources, made.steps, made.sinks, processing={"onDeserializationError": policy})
    given = [Given("left", "a", 1, 5), Given("left", None, 1, 6), Given("left", "a", None, 7), Given("left", "b", 2, 8)]
    (sub,) = topology.subtopologies
    (batch,) = keyed(sub, in_partitions(given, ["left"], 1)).values()
    stores = {0: OneTask().stores}
    context = ApplyContext(PlayedRunner(), sub, stores, {}, {}, {}, {("left", 0): 4})  # type: ignore[arg-type]
    return source_table.apply(batch, context), batch


def test_what_its_store_will_have_goes_to_its_changelog() -> None:
    made, batch = applied("continue")
    ((_, updates),) = made.updates
    assert list(zip(updates.keys, updates.values, updates.timestamps, strict=True)) == [
        (b"a", None, 7),
        (b"b", json(v=2), 8),
    ]
    assert (made.source_updates, made.changes) == ([], batch)
    made, _ = applied("fail")
    ((_, updates, offset),) = made.source_updates
    assert (list(updates.keys), offset, made.updates) == ([b"a", b"b"], 4, [])


def test_a_global_table_is_rebuilt_from_its_topic_as_ever() -> None:
    joined = step(join={"table": "users", "key": "user", "type": "left", "select": {"tier": "users.tier"}})
    topology = planned("continue", table={"global": True}, joined=joined)
    assert internal_topic_names(topology) == ()
    assert former_changelogs(cast("Admin", Brokers({CHANGELOG})), topology) == {}


class Brokers:
    """The parts of Admin that are asked: topics, and where a group has come to in the partitions of `users`."""

    def __init__(
        self, topics: Collection[str] = (), committed: Mapping[int, int] | None = None, start: int = 0
    ) -> None:
        self.topics = set(topics)
        self.committed = committed or {}
        self.start = start
        self.forbidden = False

    def describe_topics(self, names: Collection[str], config: bool = True) -> dict[str, TopicDescription]:
        if self.forbidden and names:
            raise ConfigException("not allowed")
        return {name: TopicDescription(name, 1, 1) for name in names if name in self.topics}

    def committed_offsets(self, group: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        assert group == "shop"
        return {each: self.committed[each.partition] for each in partitions if each.partition in self.committed}

    def start_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, self.start)


def check(brokers: Brokers, topology: Topology, missing: Collection[str] = (CHANGELOG,)) -> None:
    check_table_changelogs(cast("Admin", brokers), topology, missing, {"orders": 2, "users": 2})


def test_a_changelog_that_would_lack_rows_is_refused_by_name() -> None:
    with pytest.raises(TopologyException) as raised:
        check(Brokers(committed={1: 5}), planned("continue"))
    text = str(raised.value)
    assert f"the changelog {CHANGELOG} of the table users (spec.topology.sources[1].table.store)" in text
    assert "streamsapp reset" in text


def test_one_that_lacks_nothing_is_made() -> None:
    topology = planned("continue")
    check(Brokers(), topology)
    check(Brokers(committed={0: 7, 1: 7}, start=7), topology)  # after a reset to the beginning
    check(Brokers(committed={1: 5}), topology, missing=())
    check(Brokers({CHANGELOG}, committed={1: 5}), topology)  # another instance was quicker
    check(Brokers(committed={1: 5}), planned("fail"))


def test_a_changelog_that_is_not_used_any_more_is_named_at_the_start(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "streams_runtime.topics")
    brokers = Brokers({CHANGELOG})
    warn_of_former_changelogs(cast("Admin", brokers), planned("continue"))
    warn_of_former_changelogs(cast("Admin", Brokers()), planned("fail"))
    assert not caplog.records
    warn_of_former_changelogs(cast("Admin", brokers), planned("fail"))
    (record,) = caplog.records
    assert CHANGELOG in record.getMessage()
    brokers.forbidden = True
    assert former_changelogs(cast("Admin", brokers), planned("fail")) == {}


def test_an_upgrade_says_what_becomes_of_the_table() -> None:
    (more,) = changes(planned("fail"), planned("continue")).incompatible
    assert more.where == "spec.topology.sources[1].table"
    assert f"{CHANGELOG} would begin empty" in more.consequence
    assert "streamsapp reset" in more.remedy
    (less,) = changes(planned(LETTERS), planned("fail")).incompatible
    assert "restored from users" in less.what
    assert "come back" in less.consequence
    assert changes(planned("continue"), planned(LETTERS)).items == ()


def test_another_store_or_topic_of_such_a_table_is_no_silent_loss() -> None:
    renamed = changes(planned("continue"), planned("continue", table={"store": "people"}))
    assert [
        (each.where, "does not start" in each.consequence) for each in renamed.incompatible if each.kind != "orphaned"
    ] == [("spec.topology.sources[1].table.store", True)]
    moved, *_ = changes(planned("continue"), planned("continue", topic="people")).incompatible
    assert (moved.where, moved.what) == (
        "spec.topology.sources[1].topic",
        "the table users was of users and is of people",
    )
    kept = [{"name": "kept", "from": "orders", "toTable": {"store": "users"}}]
    made = build_topology(
        parse_application(application(*kept, sources=(ORDERS,), processing={"onDeserializationError": "continue"}))
    )
    (other,) = [each for each in changes(made, planned("continue")).incompatible if "was that of" in each.what]
    assert other.what == "the store users was that of a toTable and is that of the table of users"
