"""An application on a real node that is reset: refused while it runs, rehearsed, carried out in order, begun afresh."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from clients import make_topics, read
from e2e_kit import PATIENCE, Application, watched
from e2e_orders import expect, orders, totals
from kube_kafka import KafkaInCluster
from kubectl_plugin import Plugin
from waiting import eventually

from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.types import TopicPartition

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1500, func_only=True)]

USERS = 300
SCALING = {"maxReplicas": 2, "targetCatchUp": "10s", "stabilization": "10s"}
CLAIM = "state-renewed-0"
SAID = "{.status.reset.state} {.status.reset.step} {.status.autoscaling.reason} {.status.autoscaling.replicas}"


@dataclass(frozen=True)
class Kept:
    """What an application has in the cluster and at the broker."""

    app: Application
    admin: Admin

    @property
    def partitions(self) -> list[TopicPartition]:
        return [TopicPartition(f"{self.app.namespace}-orders", number) for number in range(2)]

    def changelog(self) -> tuple[object, int]:
        """Its id, and the number of records."""
        topic = f"{self.app.namespace}-totals-changelog"
        ends = self.admin.end_offsets([TopicPartition(topic, number) for number in range(2)])
        return self.admin.topic_ids([topic])[topic], sum(ends.values())

    def offsets(self) -> int:
        """Records that are committed."""
        return sum(self.admin.committed_offsets(self.app.namespace, self.partitions).values())

    def claim(self) -> str | None:
        found = self.app.cluster.get("pvc", CLAIM, namespace=self.app.namespace)
        return None if found is None else str(found["metadata"]["uid"])

    def all(self) -> tuple[object, ...]:
        return (self.changelog(), self.offsets(), self.claim())


@pytest.fixture
def kept(application: Callable[[str], Application], kafka_in_cluster: KafkaInCluster) -> Iterator[Kept]:
    admin = Admin({"bootstrap.servers": kafka_in_cluster.outside})
    yield Kept(application("renewed"), admin)
    admin.close()


def test_a_reset_takes_topics_offsets_and_volumes_in_order_and_the_application_begins_afresh(
    kept: Kept, kafka_in_cluster: KafkaInCluster, tmp_path: Path
) -> None:
    app, address, namespace = kept.app, kafka_in_cluster.outside, kept.app.namespace
    sink = f"{namespace}-totals"
    make_topics(address, **{f"{namespace}-orders": 2, sink: 2})
    app.apply(document=totals("renewed", namespace, replicas=1, state={"storage": {"size": "1Gi"}}))
    app.reaches("RUNNING", "1/1")
    for total in (1, 2):
        orders(address, namespace, USERS, 1)
        expect(address, namespace, USERS, total)
    eventually(lambda: kept.offsets() == 2 * USERS, "all is committed")
    before = kept.all()

    plugin = Plugin(app.cluster, namespace)
    assert "a reset needs a suspended application" in plugin.run("reset", "renewed", "--to", "earliest", code=1).stderr
    app.merge(reset={"nonce": 1, "to": "earliest"})
    eventually(lambda: (app.status().get("reset") or {}).get("state") == "Refused", "a running one is not reset")
    assert app.condition("Ready")[0] == "True", "and runs on"
    rehearsed = plugin.run("reset", "renewed", "--to", "earliest", "--dry-run", "--wait").stdout
    assert "would delete and make anew 1 internal topic" in rehearsed
    assert f"{2 * USERS} records back" in rehearsed
    assert kept.all() == before

    with watched(app, "streamsapp/renewed", SAID, tmp_path) as said:
        nonce = app.status()["reset"]["nonce"] + 1
        app.merge(suspend=True, reset={"nonce": nonce, "dryRun": False}, autoscaling=SCALING)
        done = lambda: any(each.startswith("Done") for each in said())  # noqa: E731
        eventually(done, lambda: f"the reset is done: {said()}, {app.status()}", PATIENCE)
        steps = [each.split(" ") for each in said()]
    during = [each for each in steps if each[0] in ("Pending", "Running")]
    assert [each[1] for each in during if each[0] == "Running"] == ["Topics", "Offsets", "Volumes"]
    assert {tuple(each[2:]) for each in during} == {("Suspended", "1")}, "nothing is scaled meanwhile"
    changelog, records = kept.changelog()
    assert changelog != before[0][0]
    assert (records, kept.offsets(), kept.claim()) == (0, 0, None)

    end = len(read(address, sink, committed=True))
    plugin.run("resume", "renewed", "--wait")
    eventually(lambda: kept.offsets() == 2 * USERS, "all is read anew", PATIENCE)
    assert len(read(address, sink, committed=True)) >= end + USERS, "and each user's total written again"
    orders(address, namespace, USERS, 1)
    expect(address, namespace, USERS, 3)
    assert kept.claim() not in (None, before[2])
    scaled = app.status()["autoscaling"]
    assert (scaled["replicas"], "lastScaleTime" in scaled) == (1, False), "what a reset leaves to read is no load"
