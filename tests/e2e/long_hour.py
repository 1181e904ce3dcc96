"""An hour of normal life under a real Prometheus: no alert fires. `make test-hour` runs it, `make test` does not.

Orders come in all the time. Pods are restarted, a spec is changed, instances come and go, work is paused and suspended,
and the operator is restarted, one after the other and again, with a rest after each. At the end a made-up reason makes
an alert fire, so the watch over all of it was awake.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count, cycle
from pathlib import Path
from threading import Event, Thread

import pytest
from clients import last_values, make_topics, send
from e2e_kit import OPERATOR_NAMESPACE, PATIENCE, Application
from e2e_orders import totals
from kube_kafka import KafkaInCluster
from kubectl_plugin import Plugin
from prometheus import Prometheus, prometheus
from waiting import eventually

from streams_runtime.kafka.producer.batch_producer import BatchProducer

SECONDS = 60.0 * float(os.environ.get("STREAMSAPP_TEST_MINUTES", "60"))
REST = min(60.0, SECONDS / 20)
"""Seconds of steady work after each event, and how long a pause lasts."""
AT_ONCE, EVERY = 50, 0.5  # orders, and seconds between two such handfuls
USERS = 1000
MINUTES = {
    "name": "minutes",
    "from": "orders",
    "window": {"tumbling": {"size": "1m", "grace": "10s"}},
    "aggregate": {"orders": "count(*)"},
    "store": "minutes",
}

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(SECONDS + 3 * PATIENCE)]


class Life:
    """The application, what is seen of it, and what may happen to it on any day."""

    def __init__(self, app: Application, seen: Prometheus) -> None:
        self._app, self._seen = app, seen
        self._plugin = Plugin(app.cluster, app.namespace)
        self._begun = time.monotonic()

    @property
    def seconds(self) -> int:
        """How long it has been watched, rounded up."""
        return int(time.monotonic() - self._begun) + 1

    def events(self) -> tuple[Callable[[], None], ...]:
        return (
            self.a_pod_is_deleted,
            self.a_rolling_change,
            self.scaled_up,
            self.scaled_down,
            self.paused,
            self.the_operator_is_restarted,
            self.suspended,
        )

    def rest(self) -> None:
        """Steady work, under which nothing fires, and which is done as it comes in."""
        self._nothing_fires_for(REST)
        eventually(self._keeps_up, lambda: f"what comes in is processed: {self._app.status()}", PATIENCE)

    def a_pod_is_deleted(self) -> None:
        uid = self._app.uid("lived-1")
        self._app.kubectl("delete", "pod", "lived-1", "--wait=false")
        eventually(lambda: self._app.uid("lived-1") not in (uid, None), "it is made again", PATIENCE)
        self._app.reaches("RUNNING", "2/2")

    def a_rolling_change(self) -> None:
        before = [self._app.uid(f"lived-{number}") for number in range(2)]
        self._plugin.run("restart", "lived", "--wait")
        assert not set(before) & {self._app.uid(f"lived-{number}") for number in range(2)}

    def scaled_up(self) -> None:
        self._plugin.run("scale", "lived", "3", "--wait")

    def scaled_down(self) -> None:
        self._plugin.run("scale", "lived", "2", "--wait")
        assert self._app.uid("lived-2") is None

    def paused(self) -> None:
        self._plugin.run("pause", "lived", "--wait")
        self._nothing_fires_for(REST)
        self._plugin.run("resume", "lived", "--wait")

    def suspended(self) -> None:
        self._plugin.run("suspend", "lived", "--wait")
        self._nothing_fires_for(REST)
        self._plugin.run("resume", "lived", "--wait")

    def the_operator_is_restarted(self) -> None:
        where = f"--namespace={OPERATOR_NAMESPACE}"
        self._app.cluster.kubectl("rollout", "restart", "deployment", where)
        self._app.cluster.kubectl("rollout", "status", "deployment", where, "--timeout=300s", timeout=320)

    def _keeps_up(self) -> bool:
        self._nothing_fired()
        return (self._app.status().get("lag") or 0) < 40 * AT_ONCE

    def _nothing_fires_for(self, seconds: float) -> None:
        begun = time.monotonic()

        def over() -> bool:
            self._nothing_fired()
            return time.monotonic() - begun > seconds

        eventually(over, "the time is over", seconds + PATIENCE, every=2.0)

    def _nothing_fired(self) -> None:
        fired = self._seen.longest("firing", self.seconds)
        assert not fired, (fired, self._app.status())


@contextmanager
def steady_orders(address: str, topic: str) -> Iterator[Counter[str]]:
    """Orders come in, with the present time, while the block runs; what each user has ordered."""
    sent: Counter[str] = Counter()
    enough = Event()

    def feed() -> None:
        producer = BatchProducer({"bootstrap.servers": address}, "orders")
        for number in count():
            if enough.wait(EVERY):
                break
            users = [f"u{(number * AT_ONCE + each) % USERS}" for each in range(AT_ONCE)]
            now = time.time_ns() // 1_000_000
            keys, values = [each.encode() for each in users], [b'{"amount": 1}'] * AT_ONCE
            producer.send(topic, keys, values, [now] * AT_ONCE)
            producer.flush()
            sent.update(users)
        producer.close()

    feeding = Thread(target=feed, name="orders", daemon=True)
    feeding.start()
    try:
        yield sent
        assert feeding.is_alive(), "orders came in all the time"
    finally:
        enough.set()
        feeding.join(PATIENCE)


def test_no_alert_fires_in_an_hour_of_restarts_changes_rescaling_and_pauses(
    application: Callable[[str], Application], kafka_in_cluster: KafkaInCluster, node_namespace: str, tmp_path: Path
) -> None:
    address, topic, sink = kafka_in_cluster.outside, f"{node_namespace}-orders", f"{node_namespace}-totals"
    make_topics(address, **{topic: 4, sink: 4})
    app = application("lived")
    processing = {"standbyReplicas": 1, "onDeserializationError": "continue"}
    document = totals("lived", node_namespace, processing=processing, state={"storage": {"size": "1Gi"}})
    document["spec"]["topology"]["steps"].append(MINUTES)
    app.apply(document=document)
    with prometheus(app.cluster, node_namespace, tmp_path / "prometheus") as seen:
        app.reaches("RUNNING", "2/2")
        life = Life(app, seen)
        with steady_orders(address, topic) as sent:
            for number, event in enumerate(cycle(life.events())):
                event()
                life.rest()
                pending = seen.longest("pending", life.seconds)
                print(f"{life.seconds:5} s: {event.__name__}; seconds that alerts were pending: {pending}")
                if life.seconds > SECONDS and number + 1 >= len(life.events()):
                    break
        wanted = {user: {"total": total} for user, total in sent.items()}
        eventually(lambda: last_values(address, sink, committed=True) == wanted, "all is counted once", PATIENCE)
        assert seen.unhealthy_rules() == {}
        send(address, topic, [("u1", "no object")])
        eventually(lambda: seen.firing() == {"StreamsRecordsUnreadable"}, "an alert with a reason fires")
        assert seen.ever_fired(life.seconds) == {"StreamsRecordsUnreadable"}
