"""A reset on a real broker: what it would do, its steps more than once, and what the application makes of it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from clients import DEADLINE, client, delete_records, last_values, make_topics, run_until_done, send
from confluent_kafka import Consumer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from topic_apps import TopicApp
from waiting import eventually

from streams_runtime.api.spec.operations.reset_spec import ResetSpec
from streams_runtime.errors import IllegalStateException
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.broker.embedded_broker import EmbeddedBroker
from streams_runtime.kafka.client.client_properties import client_properties
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.topics.application_topics import ApplicationTopics
from streams_runtime.topics.reset.reset_plan import ResetOutlook, ResetPlan

pytestmark = pytest.mark.integration

SENT_AT = 1_700_000_000  # seconds since 1970; clients.send
USERS = [f"u{number}" for number in range(20)]


@pytest.fixture
def admin(broker: Any) -> Iterator[Admin]:
    found = Admin(client_properties(broker.bootstrap_servers, {}))
    yield found
    found.close()


@pytest.fixture
def app(broker: Any, namespace: str, admin: Admin) -> TopicApp:
    made = TopicApp(namespace, broker.bootstrap_servers)
    made.make_users_topics(admin, partitions=2)
    return made


@pytest.fixture
def topics(app: TopicApp) -> Iterator[ApplicationTopics]:
    opened = ApplicationTopics(app.resource)
    yield opened
    opened.close()


def asked(to: Any = "earliest", **more: Any) -> ResetSpec:
    return ResetSpec.model_validate({"nonce": 1, "to": to, **more})


def orders(app: TopicApp, admin: Admin, count: int, partition: int) -> None:
    send(admin.address, app.source, [(None, {"user": USERS[n % 20], "amount": 1.0}) for n in range(count)], partition)


def committed(app: TopicApp, admin: Admin) -> dict[int, int]:
    found = admin.committed_offsets(app.resource.application_id, [TopicPartition(app.source, n) for n in range(2)])
    return {partition.partition: offset for partition, offset in found.items()}


def counts(app: TopicApp, admin: Admin, each: int, early: int) -> None:
    """Wait until the last count of each user is this one, and everything is committed; `early`: that of EARLY."""
    wanted = {user: {"n": each} for user in USERS} | ({"early": {"n": early}} if early else {})
    eventually(lambda: last_values(admin.address, app.sink, committed=True) == wanted, f"{each} of each user", DEADLINE)
    eventually(lambda: committed(app, admin) == {0: 207, 1: 200}, "all is committed", DEADLINE)


def planned(outlook: ResetOutlook) -> ResetPlan:
    assert outlook.refusals == ()
    assert outlook.plan is not None
    return outlook.plan


def test_offsets_are_set_as_asked_with_the_ids_of_their_topics_and_again(
    app: TopicApp, admin: Admin, topics: ApplicationTopics
) -> None:
    orders(app, admin, 30, 0)
    orders(app, admin, 10, 1)
    delete_records(admin, {TopicPartition(app.source, 0): 4})
    now = time.time()
    wanted: list[tuple[Any, Mapping[int, int]]] = [
        ("latest", {0: 30, 1: 10}),
        ("earliest", {0: 4, 1: 0}),
        ("2023-11-14T22:13:20Z", {0: 4, 1: 0}),  # the time of all records
        ("2023-11-14T22:13:21Z", {0: 30, 1: 10}),  # a second later
        ({"offsets": {"orders": {"1": 7}}}, {0: 30, 1: 7}),
    ]
    for to, offsets in wanted:
        plan = planned(topics.rehearse_reset(asked(to), now))
        before = committed(app, admin)
        (move,) = plan.moves
        assert dict(move.before) == {number: before[number] for number, _ in move.after if number in before}
        for _ in range(2):
            topics.reset_offsets(plan.moves)
            assert committed(app, admin) == offsets, to
    delete = [app.source]
    admin.delete_topics(delete)
    eventually(lambda: not admin.describe_topics(delete, config=False), "the topic is gone")
    make_topics(admin.address, **{app.source: 2})
    assert committed(app, admin) == {}, "they were offsets of the topic that was there"


def test_what_the_brokers_do_not_have_is_refused_and_nothing_is_changed(
    app: TopicApp, admin: Admin, topics: ApplicationTopics
) -> None:
    orders(app, admin, 3, 0)
    outlook = topics.rehearse_reset(asked({"offsets": {"orders": {"0": 4, "2": 0}}}), time.time())
    assert outlook.plan is None
    assert outlook.refusals == (
        f"orders: {app.source}-0 has the offsets 0 to 3, and not 4: give one of these",
        f"orders: the topic {app.source} has 2 partitions, and no partition 2",
    )
    later = topics.rehearse_reset(asked("2023-11-14T22:13:21Z"), SENT_AT)
    assert "is in the future" in later.refusals[0]
    admin.delete_topics([app.source])
    eventually(lambda: not admin.describe_topics([app.source], config=False), "the topic is gone")
    (missing,) = topics.rehearse_reset(asked(), time.time()).refusals
    assert app.source in missing
    assert committed(app, admin) == {}


def test_internal_topics_that_somebody_else_reads_are_not_deleted(
    app: TopicApp, admin: Admin, topics: ApplicationTopics
) -> None:
    topics.setup()
    group = f"{app.source}-audit"
    consumer = Consumer({"bootstrap.servers": admin.address, "group.id": group})
    consumer.subscribe([app.changelog])

    def refusals() -> tuple[str, ...]:
        consumer.poll(0.1)
        return topics.rehearse_reset(asked(), time.time()).refusals

    try:
        eventually(refusals, "the reader is found")
        (refusal,) = refusals()
        assert refusal.startswith(f"the internal topic {app.changelog} is read by the group {group} too: stop")
        assert topics.rehearse_reset(asked(internalTopics="Keep"), time.time()).refusals == ()
    finally:
        consumer.close()


def test_internal_topics_that_this_login_may_not_delete_are_told_before_anything_is_changed(tmp_path: Path) -> None:
    config = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    with EmbeddedBroker(tmp_path, config=config) as broker, closing(Admin(properties(broker))) as admin:
        app = TopicApp("app", broker.bootstrap_servers)
        app.make_users_topics(admin)
        with closing(ApplicationTopics(app.resource)) as topics:
            topics.setup()
            rules = [(AclOperation.ALL, AclPermissionType.ALLOW), (AclOperation.DELETE, AclPermissionType.DENY)]
            client_of_rules = AdminClient(properties(broker))
            for made in client_of_rules.create_acls([acl(app.changelog, *rule) for rule in rules]).values():
                made.result()
            eventually(lambda: topics.rehearse_reset(asked(), time.time()).refusals, "the right is missed")
            (refusal,) = topics.rehearse_reset(asked(), time.time()).refusals
            assert refusal.startswith(f"the brokers do not let this login delete {app.changelog}: grant it")
            assert topics.rehearse_reset(asked(internalTopics="Keep"), time.time()).refusals == ()


def properties(broker: EmbeddedBroker) -> dict[str, str]:
    return {"bootstrap.servers": broker.bootstrap_servers}


def acl(topic: str, operation: AclOperation, permission: AclPermissionType) -> AclBinding:
    return AclBinding(ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, "User:*", "*", operation, permission)


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_after_a_reset_the_application_processes_everything_anew_as_a_new_one_would(
    guarantee: str, app: TopicApp, admin: Admin, topics: ApplicationTopics, tmp_path: Path, namespace: str
) -> None:
    text = yaml.safe_dump(app.topology_spec)
    settings = {"processing": {"guarantee": guarantee}}
    send(admin.address, app.source, [(None, {"user": "early", "amount": 1.0})] * 7, 0)
    # Of an application that has never run: it begins behind what is there.
    topics.reset_offsets(planned(topics.rehearse_reset(asked("latest"), time.time())).moves)
    for partition in range(2):
        orders(app, admin, 200, partition)
    with client(admin.address, namespace, text, tmp_path / "before", **settings) as made:
        run_until_done(made, [app.source, app.repartition])
        outlook = topics.rehearse_reset(asked(), time.time())
        assert len(outlook.members) == 1
        with pytest.raises(IllegalStateException, match=f"the group {namespace} has members"):
            topics.reset_topics()
        with pytest.raises(IllegalStateException, match=f"the group {namespace} has members"):
            topics.reset_offsets(planned(outlook).moves)
        counts(app, admin, 20, early=0)
        assert made.close(DEADLINE, leave_group=True)
    eventually(lambda: not admin.group_members(namespace), "the group is empty")
    assert committed(app, admin) == {0: 207, 1: 200}
    plan = planned(topics.rehearse_reset(asked(), time.time()))
    assert set(plan.topics) == set(app.internal)
    ids = admin.topic_ids(app.internal)
    # Each step twice, as whoever crashes behind one begins with it again.
    for _ in range(2):
        assert set(topics.reset_topics().existing) == set(app.internal)
        fresh = admin.topic_ids(app.internal)
        assert not set(ids.values()) & set(fresh.values())
    for _ in range(2):
        topics.reset_offsets(plan.moves)
    # With the folder that has the stores of before: they are of topics that were made anew, and are given up.
    with client(admin.address, namespace, text, tmp_path / "before", **settings) as made:
        run_until_done(made, [app.source, app.repartition])
        counts(app, admin, 20, early=7)
        assert made.close(DEADLINE, leave_group=True)
    eventually(lambda: not admin.group_members(namespace), "the group is empty")
    kept = planned(topics.rehearse_reset(asked(internalTopics="Keep"), time.time()))
    assert kept.topics == ()
    topics.reset_offsets(kept.moves)
    with client(admin.address, namespace, text, tmp_path / "another", **settings) as made:
        run_until_done(made, [app.source, app.repartition])
        counts(app, admin, 40, early=14)
