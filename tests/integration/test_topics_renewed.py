"""Topics that are deleted and made anew when leader epochs have moved on: librdkafka alone never reads them again.

A new topic begins with leader epoch 0, and librdkafka takes brokers that say so for outdated when it knows a higher one
of the old topic (librdkafka #4898). Epochs move on whenever a broker comes back.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from clients import client, last_values, make_topics, run_until_done, send
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as ConfluentTopicPartition
from topic_apps import delete
from waiting import eventually

from streams_runtime.client import StreamsClient
from streams_runtime.errors import InvalidStateStorePartitionException, StreamsRebalancingException
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.broker.embedded_broker import EmbeddedBroker
from streams_runtime.kafka.client.client_properties import client_properties
from streams_runtime.kafka.types import TopicSpec
from streams_runtime.query.stores.key_value_handle import StoreQueryParameters
from streams_runtime.states import ClientState

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]

NAME, SOURCE, SINK = "renewed", "orders", "user-totals"
REPARTITION, CHANGELOG = f"{NAME}-by-user-repartition", f"{NAME}-totals-changelog"
PARTITIONS = {SOURCE: 2, SINK: 1, REPARTITION: 2, CHANGELOG: 2}
# A rebalance may look at a topic before the application has noticed it: it has to fit.
SETTINGS = {REPARTITION: {"retention.ms": "-1"}, CHANGELOG: {"cleanup.policy": "compact"}}
TOPOLOGY = f"""
sources: [{{name: orders, topic: {SOURCE}, value: {{format: json, schema: "user STRING"}}}}]
steps:
  - {{name: by-user, from: orders, keyBy: user}}
  - {{name: totals, from: by-user, aggregate: {{n: count(*)}}, store: totals}}
sinks: [{{from: totals, topic: {SINK}}}]
"""
ADA, BOB = ["ada", "bob", "ada"], ["bob", "cid", "bob"]


@pytest.fixture
def own(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(tmp_path / "broker", config=getattr(request, "param", None)) as running:
        make_topics(running.bootstrap_servers, **{SOURCE: 2, SINK: 1})
        yield running


@pytest.fixture
def admin(own: EmbeddedBroker) -> Iterator[Admin]:
    made = Admin(client_properties(own.bootstrap_servers, {}))
    yield made
    made.close()


def order(admin: Admin, users: list[str]) -> None:
    send(admin.address, SOURCE, [(None, {"user": user}) for user in users])


def counted(made: StreamsClient, stale: bool = False) -> dict[str, int]:
    """The store's counts; none while it can't be asked."""
    assert made.state is not ClientState.ERROR, made.error
    if made.state is not ClientState.RUNNING:
        return {}
    try:
        with made.store(StoreQueryParameters("totals", stale=stale)).all() as entries:
            return {user: value["n"] for user, value in entries}
    except (StreamsRebalancingException, InvalidStateStorePartitionException):
        return {}


def tasks(made: StreamsClient) -> int:
    return sum(len(thread.tasks.tasks) for thread in made.threads)


def make_anew(own: EmbeddedBroker, admin: Admin, topic: str) -> None:
    """Let leader epochs move on, then replace the topic by another one under its name."""
    own.stop()
    own.start()
    admin.wait_for_broker(timeout=60)
    delete(admin, [topic])
    new = TopicSpec(topic, PARTITIONS[topic], config=SETTINGS.get(topic, {}))
    eventually(lambda: admin.create_topics([new]).created or present(admin, topic))


def present(admin: Admin, topic: str) -> bool:
    return topic in admin.describe_topics([topic], config=False)


@pytest.mark.parametrize("topic", list(PARTITIONS))
def test_an_application_goes_on_with_the_topic_that_it_has_now(
    own: EmbeddedBroker, admin: Admin, tmp_path: Path, topic: str
) -> None:
    with client(admin.address, NAME, TOPOLOGY, tmp_path / "state") as made:
        made.start()
        order(admin, ADA)
        eventually(lambda: counted(made) == {"ada": 2, "bob": 1}, "the first orders are counted")
        make_anew(own, admin, topic)
        order(admin, BOB)
        eventually(lambda: counted(made) == {"ada": 2, "bob": 3, "cid": 1}, lambda: f"all are counted: {counted(made)}")
        eventually(lambda: last_values(admin.address, SINK).get("cid") == {"n": 1}, "the sink has what came last")
        assert made.close(60)
    assert last_values(admin.address, CHANGELOG).keys() >= {"bob", "cid"}


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_what_was_committed_for_an_earlier_topic_of_the_name_skips_nothing_of_the_new_one(
    broker: Any, namespace: str, tmp_path: Path, guarantee: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The brokers may take a last commit for the old topic when the new one is there already."""
    source, bootstrap = f"{namespace}-orders", broker.bootstrap_servers
    make_topics(bootstrap, **{source: 1, f"{namespace}-totals": 1})
    send(bootstrap, source, [(None, {"user": user}) for user in ADA])
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": namespace, "enable.auto.commit": False})
    first = ConfluentTopicPartition(source, 0)
    consumer.commit(offsets=[ConfluentTopicPartition(source, 0, 2, "topic-id=of-the-old")], asynchronous=False)
    topology = TOPOLOGY.replace(f"topic: {SOURCE}", f"topic: {source}").replace(SINK, f"{namespace}-totals")
    processing = {"guarantee": guarantee}
    with client(bootstrap, namespace, topology, tmp_path / "state", processing=processing) as made:
        run_until_done(made, [source])
        eventually(lambda: counted(made) == {"ada": 2, "bob": 1}, lambda: f"all are counted: {counted(made)}")
        (present,) = made.context.admin.topic_ids([source]).values()
    (committed,) = consumer.committed([first], timeout=30)
    consumer.close()
    # Under exactly once a transaction's marker follows the records.
    assert (committed.offset >= 3, committed.metadata) == (True, f"topic-id={present}")
    assert f"{source} was deleted and made anew since offset 2" in caplog.text


# On a loaded machine a member may be silent for the few seconds that sessions last by default, and its tasks go to the
# one whose standbys have just lost their changelog.
@pytest.mark.parametrize("own", [{"group.consumer.session.timeout.ms": "45000"}], indirect=True, ids=["patient"])
def test_a_standby_follows_the_changelog_that_there_is_now(own: EmbeddedBroker, admin: Admin, tmp_path: Path) -> None:
    spec = {"processing": {"standbyReplicas": 1}}
    with (
        client(admin.address, NAME, TOPOLOGY, tmp_path / "0", "i-0", **spec) as first,
        client(admin.address, NAME, TOPOLOGY, tmp_path / "1", "i-1", **spec) as second,
    ):
        both = [first, second]
        for made in both:
            made.start()
        order(admin, ADA)
        everything = {"ada": 2, "bob": 1}
        # With their halves: a task that moves when its changelog is new begins with nothing.
        eventually(lambda: all(tasks(made) == 2 for made in both), "each has its half of the tasks")
        eventually(lambda: all(counted(made, stale=True) == everything for made in both), "both have everything")
        make_anew(own, admin, CHANGELOG)
        order(admin, [*ADA, *BOB])
        everything = {"ada": 4, "bob": 4, "cid": 1}
        eventually(
            lambda: all(counted(made, stale=True) == everything for made in both),
            lambda: f"both have everything: {[counted(made, stale=True) for made in both]}",
        )
