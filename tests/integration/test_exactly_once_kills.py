"""Instances under exactly once that are killed: at every step of a batch, and at random.

After every fifth random kill the other process stands still until the group has missed it, and goes on as a zombie.
The number of random kills is STREAMSAPP_TEST_KILLS; `make soak` asks for 200.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from clients import send
from fault_points import AFTER_COMMIT, BEFORE_COMMIT, BEFORE_STORE
from instances import Instance, write_application
from orders import USERS, copies, expected_totals, make_order_topics, orders, topology, totals
from orders_fed import PATIENCE, Feed, check_that_each_counted_once, holds, is_done
from waiting import eventually

from streams_runtime.kafka.admin.kafka_admin import Admin

pytestmark = [pytest.mark.integration, pytest.mark.timeout(3 * 3600)]

SESSION = 6.0  # seconds after which the embedded broker counts a member out that says nothing
KILLS = int(os.environ.get("STREAMSAPP_TEST_KILLS", "5"))


@pytest.fixture
def admin(broker: Any) -> Iterator[Admin]:
    found = Admin({"bootstrap.servers": broker.bootstrap_servers})
    yield found
    found.close()


@pytest.fixture
def instances(broker: Any, namespace: str, tmp_path: Path) -> Iterator[list[Instance]]:
    file = tmp_path / "app.yaml"
    write_application(
        file,
        namespace,
        topology(namespace),
        processing={"guarantee": "exactly_once_v2"},
        # So that who takes over does not wait for long for the transaction of one that stands still.
        kafka={"config": {"transaction.timeout.ms": 5000}},
    )
    made = [Instance(file, broker.bootstrap_servers, f"{namespace}-{ordinal}", tmp_path) for ordinal in range(2)]
    yield made
    for instance in made:
        instance.stop()


def test_a_kill_between_any_two_steps_of_a_batch_changes_nothing_and_only_the_tail_is_restored(
    broker: Any, namespace: str, admin: Admin, instances: list[Instance]
) -> None:
    bootstrap, n, one = broker.bootstrap_servers, namespace, instances[0]
    make_order_topics(bootstrap, n)
    one.start()
    sent = 0
    for point in (*BEFORE_COMMIT, *AFTER_COMMIT):
        # A first batch that goes well: there is something to be restored, and more than the tail.
        send(bootstrap, f"{n}-orders", orders(range(sent, sent + 20)))
        eventually(lambda: is_done(admin, n, [one]), f"all is processed before the kill {point}", PATIENCE)
        sent += 20
        one.fault.write_text(point)
        send(bootstrap, f"{n}-orders", orders(range(sent, sent + 20)))
        sent += 20
        one.wait_until_killed(f"killed {point}")
        one.fault.unlink()
        one.start()
        eventually(lambda: is_done(admin, n, [one]), f"all is processed after the kill {point}", PATIENCE)
        expected = expected_totals(range(sent))
        eventually(partial(holds, [one], expected), f"the store is right after the kill {point}", PATIENCE)
        assert copies(bootstrap, n) == Counter(range(sent)), point
        assert totals(bootstrap, n) == expected, point
        described = one.described()
        assert described is not None
        restored = described["counters"]["restored_records"]
        assert 0 < restored <= USERS if point == BEFORE_STORE else restored == 0, point


@pytest.mark.long
def test_not_one_record_is_lost_or_counted_twice_by_kills_at_random(
    broker: Any, namespace: str, admin: Admin, instances: list[Instance]
) -> None:
    bootstrap, n = broker.bootstrap_servers, namespace
    make_order_topics(bootstrap, n)
    seed = random.randrange(10**6)
    print(f"seed {seed}")  # shown when the test fails
    dice = random.Random(seed)
    for instance in instances:
        instance.start()
    with Feed(bootstrap, f"{n}-orders") as fed:
        for number in range(KILLS):
            target = instances[number % 2]
            if dice.random() < 0.7:
                eventually(partial(is_processing, target), f"{target.name} processes", PATIENCE)
            time.sleep(dice.uniform(0, 2))  # the moment is what is random
            target.check()
            target.kill()
            target.start()
            if number % 5 == 4:
                instances[1 - number % 2].freeze(SESSION + dice.uniform(0, 4))  # another may have its tasks by then
    check_that_each_counted_once(admin, n, instances, fed.count)


def is_processing(instance: Instance) -> bool:
    instance.check()
    described = instance.described()
    return described is not None and described["counters"]["batches"] > 0
