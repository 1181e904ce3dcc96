"""Internal topics that are set up on a real broker."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from streams_runtime.api import StreamsApplication, parse_application
from streams_runtime.errors import (
    ConfigException,
    MisconfiguredInternalTopicException,
    MissingSourceTopicException,
    TopologyException,
)
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.client.client_properties import client_properties
from streams_runtime.kafka.types import TopicPartition, TopicSpec
from streams_runtime.topics.topic_manager import InternalTopicManager
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.plan import Topology

pytestmark = pytest.mark.integration


class App:
    """An application whose id and topics begin with the test's own prefix."""

    def __init__(self, prefix: str, **internal_topics: Any) -> None:
        self.source, self.sink = f"{prefix}-orders", f"{prefix}-user-totals"
        self.changelog = f"{prefix}-totals-changelog"
        self.repartition = f"{prefix}-by-user-repartition"
        self.resource: StreamsApplication = parse_application(
            {
                "apiVersion": "streamsoperator.io/v1alpha1",
                "kind": "StreamsApplication",
                "metadata": {"name": "app"},
                "spec": {
                    "applicationId": prefix,
                    "internalTopics": internal_topics,
                    "topology": {
                        "sources": [
                            {
                                "name": "orders",
                                "topic": self.source,
                                "value": {"format": "json", "schema": "user STRING, amount DOUBLE"},
                            }
                        ],
                        "steps": [
                            {"name": "by-user", "from": "orders", "keyBy": "user"},
                            {
                                "name": "totals",
                                "from": "by-user",
                                "aggregate": {"n": "count(*)"},
                                "store": "totals",
                            },
                        ],
                        "sinks": [{"from": "totals", "topic": self.sink, "value": {"format": "json"}}],
                    },
                },
            }
        )
        self.topology: Topology = build_topology(self.resource)

    def make_ready(self, admin: Admin) -> dict[str, int]:
        return dict(InternalTopicManager(admin).make_ready(self.topology, self.resource.spec))

    def internal(self, admin: Admin) -> set[str]:
        return set(admin.describe_topics([self.changelog, self.repartition]))


@pytest.fixture
def admin(broker: Any) -> Iterator[Admin]:
    found = Admin(client_properties(broker.bootstrap_servers, {}))
    yield found
    found.close()


def make_users_topics(admin: Admin, app: App, partitions: int = 3) -> None:
    assert not admin.create_topics([TopicSpec(app.source, partitions), TopicSpec(app.sink, 1)]).refused


def test_internal_topics_have_the_names_counts_and_settings_of_the_plan(admin: Admin, namespace: str) -> None:
    app = App(namespace, config={"segment.bytes": "2000000"}, overrides={"totals-changelog": {"segment.ms": "7200000"}})
    make_users_topics(admin, app)
    counts = app.make_ready(admin)
    assert counts == {app.source: 3, app.sink: 1, app.repartition: 3, app.changelog: 3}
    found = admin.describe_topics(counts)
    assert {name: topic.partitions for name, topic in found.items()} == counts
    changelog, repartition = found[app.changelog].config, found[app.repartition].config
    assert (changelog["cleanup.policy"], changelog["message.timestamp.type"]) == ("compact", "CreateTime")
    assert {each["message.timestamp.after.max.ms"] for each in (changelog, repartition)} == {str(2**63 - 1)}
    assert (changelog["segment.bytes"], changelog["segment.ms"]) == ("2000000", "7200000")
    assert (repartition["cleanup.policy"], repartition["retention.ms"]) == ("delete", "-1")
    partitions = [TopicPartition(name, number) for name, count in counts.items() for number in range(count)]
    assert admin.end_offsets(partitions) == dict.fromkeys(partitions, 0)


def test_setting_up_again_changes_nothing(admin: Admin, namespace: str) -> None:
    app = App(namespace)
    make_users_topics(admin, app)
    assert app.make_ready(admin) == app.make_ready(admin)


def test_a_topic_that_was_deleted_is_made_again(admin: Admin, namespace: str) -> None:
    app = App(namespace)
    make_users_topics(admin, app)
    app.make_ready(admin)
    admin.delete_topics([app.changelog])
    app.make_ready(admin)
    assert app.internal(admin) == {app.changelog, app.repartition}


def test_several_clients_at_once_all_succeed_with_the_same_counts(broker: Any, namespace: str) -> None:
    app = App(namespace)
    admins = [Admin(client_properties(broker.bootstrap_servers, {})) for _ in range(4)]
    make_users_topics(admins[0], app)
    with ThreadPoolExecutor(len(admins)) as clients:
        results = list(clients.map(app.make_ready, admins))
    assert all(result == results[0] for result in results)
    assert app.internal(admins[0]) == {app.changelog, app.repartition}


def test_a_missing_source_topic_is_named_and_nothing_is_made(admin: Admin, namespace: str) -> None:
    app = App(namespace)
    with pytest.raises(MissingSourceTopicException, match=rf"{app.source} \(spec\.topology\.sources\[0\]\.topic\)"):
        app.make_ready(admin)
    assert app.internal(admin) == set()


def test_a_missing_sink_topic_is_named_and_nothing_is_made(admin: Admin, namespace: str) -> None:
    app = App(namespace)
    admin.create_topics([TopicSpec(app.source, 2)])
    with pytest.raises(TopologyException, match=rf"{app.sink} \(spec\.topology\.sinks\[0\]\.topic\)"):
        app.make_ready(admin)
    assert app.internal(admin) == set()


def test_settings_that_the_broker_refuses_are_an_error_and_leave_no_topic(admin: Admin, namespace: str) -> None:
    app = App(namespace, overrides={"totals-changelog": {"segment.bytes": 1}})
    make_users_topics(admin, app)
    with pytest.raises(ConfigException, match=rf"{app.changelog}.*segment\.bytes.*spec\.internalTopics"):
        app.make_ready(admin)
    assert app.internal(admin) == set()


def test_more_replicas_than_brokers_are_an_error_and_leave_no_topic(admin: Admin, namespace: str) -> None:
    app = App(namespace, replicationFactor=3)
    make_users_topics(admin, app)
    with pytest.raises(ConfigException, match="replication factor"):
        app.make_ready(admin)
    assert app.internal(admin) == set()


def test_an_existing_topic_with_another_partition_count_is_an_error(admin: Admin, namespace: str) -> None:
    app = App(namespace)
    make_users_topics(admin, app)
    admin.create_topics([TopicSpec(app.changelog, 2, -1, {"cleanup.policy": "compact"})])
    with pytest.raises(MisconfiguredInternalTopicException, match=f"{app.changelog} has 2 partitions and needs 3"):
        app.make_ready(admin)
    assert app.internal(admin) == {app.changelog}


def test_an_existing_topic_that_would_lose_data_is_an_error(admin: Admin, namespace: str) -> None:
    app = App(namespace)
    make_users_topics(admin, app)
    deleting = {"cleanup.policy": "delete", "retention.ms": "3600000"}
    admin.create_topics([TopicSpec(name, 3, -1, deleting) for name in (app.changelog, app.repartition)])
    with pytest.raises(MisconfiguredInternalTopicException) as caught:
        app.make_ready(admin)
    assert f"{app.changelog} has cleanup.policy=delete" in str(caught.value)
    assert f"{app.repartition} has retention.ms=3600000" in str(caught.value)
