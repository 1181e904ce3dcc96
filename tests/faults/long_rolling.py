"""A whole application under exactly once on three brokers that fail and are restarted while records keep coming.

`make test` restarts them in turn once; STREAMSAPP_TEST_ROLLS says how often `make faults` does, and how long it waits.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from broker_faults import Cluster
from instances import Instance, write_application
from orders import make_order_topics, topology
from orders_fed import PATIENCE, Feed, check_that_each_counted_once, is_running, stalls
from waiting import eventually

from streams_runtime.kafka.admin.kafka_admin import Admin

pytestmark = [pytest.mark.integration, pytest.mark.timeout(3600)]

ROLLS = int(os.environ.get("STREAMSAPP_TEST_ROLLS", "1"))
APPLICATION = "rolled"
# Records have the time at which brokers append them, by which it is known when processing stood still.
BY_BROKERS = {"message.timestamp.type": "LogAppendTime"}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path / "brokers") as running:
        yield running


def test_brokers_restarted_in_turn_and_a_controller_that_is_killed_lose_double_and_tear_nothing(
    cluster: Cluster, tmp_path: Path
) -> None:
    bootstrap, n = cluster.bootstrap_servers, APPLICATION
    make_order_topics(bootstrap, n, config=BY_BROKERS)
    file = tmp_path / "app.yaml"
    write_application(file, n, topology(n), processing={"guarantee": "exactly_once_v2"})
    one = Instance(file, bootstrap, "one", tmp_path)
    with closing(Admin({"bootstrap.servers": bootstrap})) as admin:
        one.start()
        try:
            eventually(lambda: is_running(one), "the instance runs", PATIENCE, 0.2)
            with Feed(bootstrap, f"{n}-orders") as fed:
                for _ in range(ROLLS):
                    cluster.rolling_restart()
                print(f"longest stalls of {ROLLS} rolling restarts (ms, time): {stalls(bootstrap, n)}", flush=True)
                cluster.kill(cluster.controller)
                killed_at = fed.count
                eventually(lambda: fed.count > killed_at, "records come in without the killed broker", PATIENCE)
            check_that_each_counted_once(admin, n, [one], fed.count)
        finally:
            one.stop()
        print(f"and with the killed controller: {stalls(bootstrap, n)}")
        described = one.log
        assert "Traceback" not in described, described[-4000:]
