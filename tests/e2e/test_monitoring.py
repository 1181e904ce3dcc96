"""A real Prometheus over the operator and an application: dashboards have data, and alerts fire by their reasons."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from clients import make_topics, send
from e2e_kit import PATIENCE, Application
from e2e_orders import expect, orders, totals
from kube_kafka import KafkaInCluster
from prometheus import dashboard_queries, prometheus
from waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1500, func_only=True)]


def test_every_query_of_every_dashboard_has_data_and_only_the_alert_fires_that_has_a_reason(
    application: Callable[[str], Application], kafka_in_cluster: KafkaInCluster, node_namespace: str, tmp_path: Path
) -> None:
    address, users = kafka_in_cluster.outside, 500
    make_topics(address, **{f"{node_namespace}-orders": 2, f"{node_namespace}-totals": 2})
    app = application("watched")
    processing = {
        "standbyReplicas": 1,
        "metricsRecordingLevel": "DEBUG",
        "onDeserializationError": "continue",
        "warmUpTimeout": "0ms",  # else a pod that comes back after its session has its stores before its tasks
    }
    app.apply(document=totals("watched", node_namespace, replicas=2, processing=processing))
    with prometheus(app.cluster, node_namespace, tmp_path / "prometheus") as seen:
        app.reaches("RUNNING", "2/2")
        orders(address, node_namespace, users, 1)
        expect(address, node_namespace, users, 1)
        # A pod that comes back has its stores restored, and the other one's standbys meanwhile.
        uid = app.uid("watched-1")
        app.kubectl("delete", "pod", "watched-1", "--wait=false")
        eventually(lambda: app.uid("watched-1") not in (uid, None), "the pod is made again", PATIENCE)
        app.reaches("RUNNING", "2/2")
        assert seen.firing() == set()
        send(address, f"{node_namespace}-orders", [("u1", "no object"), ("u2", 17)])

        lacking = dict(dashboard_queries())

        def all_have_data() -> bool:
            orders(address, node_namespace, users, 1)
            for panel, expression in list(lacking.items()):
                if seen.query(expression):
                    del lacking[panel]
            return not lacking

        try:
            eventually(all_have_data, "every panel has data", PATIENCE, every=2.0)
        except AssertionError as error:
            raise AssertionError(f"{error}; without data: {json.dumps(lacking, indent=1)}") from None
        eventually(lambda: seen.firing() == {"StreamsRecordsUnreadable"}, "records that can't be read are told of")
        assert seen.ever_fired(3600) == {"StreamsRecordsUnreadable"}
        assert seen.unhealthy_rules() == {}
