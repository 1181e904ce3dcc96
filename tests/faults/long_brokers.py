"""Everything that can happen to one of three brokers, under load and exactly once; `make faults` runs it.

While a fault lasts an application may stand still. Within a minute after it the instance runs and goes on, and in the
end every order counts once.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from broker_faults import Cluster
from instances import Instance, write_application
from orders import make_order_topics, topology
from orders_fed import PATIENCE, Feed, check_that_each_counted_once, committed, is_running
from relays import Link
from waiting import eventually

from streams_runtime.kafka.admin.kafka_admin import Admin

pytestmark = [pytest.mark.integration, pytest.mark.timeout(3600)]

APPLICATION = "bereft"
SEED = int(os.environ.get("STREAMSAPP_TEST_SEED") or random.randrange(10**6))
LASTS = 12.0  # seconds; three times the session that a broker has with the controllers
BACK = 60.0  # seconds in which an instance has to run again

Fault = Callable[[Cluster, int], object]
FAULTS: dict[str, Fault] = {
    "killed": Cluster.kill,
    "standing still": Cluster.pause,
    "stopped": Cluster.stop,
    "the controller is killed": lambda cluster, _: cluster.kill(cluster.controller),
    "the controller is cut off": lambda cluster, _: cluster.isolate(cluster.controller),
    "cut off from the others": Cluster.isolate,
    "cut off from all": lambda cluster, number: cluster.isolate(number, clients=True),
    "refused by all": lambda cluster, number: cluster.isolate(number, clients=True, state=Link.REFUSED),
    "other leaders": lambda cluster, _: [
        cluster.move_leaders(f"{APPLICATION}{each}") for each in ("-orders", "-totals", "-totals-changelog")
    ],
}


def test_whatever_happens_to_one_broker_every_order_counts_once(tmp_path: Path) -> None:
    print(f"STREAMSAPP_TEST_SEED={SEED}")  # shown when the test fails
    dice, n = random.Random(SEED), APPLICATION
    order = dice.sample(sorted(FAULTS), len(FAULTS))
    file = tmp_path / "app.yaml"
    write_application(file, n, topology(n), processing={"guarantee": "exactly_once_v2"})
    with Cluster(tmp_path / "brokers", relayed=True) as cluster:
        make_order_topics(cluster.bootstrap_servers, n)
        one = Instance(file, cluster.bootstrap_servers, "one", tmp_path)
        with closing(Admin({"bootstrap.servers": cluster.bootstrap_servers})) as admin:
            one.start()
            try:
                eventually(lambda: is_running(one), "the instance runs", PATIENCE)
                with Feed(cluster.bootstrap_servers, f"{n}-orders") as fed:
                    for fault in order:
                        number = dice.choice(cluster.numbers)
                        FAULTS[fault](cluster, number)
                        time.sleep(LASTS)  # the fault's own time
                        cluster.heal()
                        healed = time.monotonic()
                        so_far = committed(admin, n)
                        goes_on = partial(is_beyond, admin, one, so_far)
                        eventually(goes_on, f"the instance goes on after {fault}, broker {number}", BACK)
                        print(f"{fault} (broker {number}): goes on {time.monotonic() - healed:.1f} s after it")
                        cluster.wait_until_in_sync()
                check_that_each_counted_once(admin, n, [one], fed.count)
            finally:
                one.stop()


def is_beyond(admin: Admin, one: Instance, so_far: int) -> bool:
    return is_running(one) and committed(admin, APPLICATION) > so_far
