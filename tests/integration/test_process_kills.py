"""A processor with punctuators under exactly once, whose instance is killed between any two steps of a batch.

The check kills where a processor has something of its own at stake; `make soak` at every point (STREAMSAPP_TEST_KILLS).

Each order is forwarded once and in its order, with a number out of a store; each sweep by stream time comes once and
where it has to; ticks by the clock are numbered without a gap.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ledger_processor
import pytest
from clients import send
from fault_points import AFTER_COMMIT, BEFORE_COMMIT, BEFORE_STORE
from instances import Instance, write_application
from ledger_checks import is_all_counted, is_all_told, ticks, wanted, without_ticks
from orders import make_order_topics, orders
from orders_fed import PATIENCE
from waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.timeout(3600)]

ALL = (*BEFORE_COMMIT, *AFTER_COMMIT)
OWN = ("after the changelog", "after the commit", BEFORE_STORE)
"""Its stores and schedules are written and not committed; committed, and the next batch not begun; not in RocksDB."""

START = int(time.time() - 3600) * 1000
"""An hour ago: brokers drop what is older than its retention from the changelog of a session store."""


@pytest.fixture
def instance(broker: Any, namespace: str, tmp_path: Path) -> Iterator[Instance]:
    file = tmp_path / "app.yaml"
    shutil.copy(ledger_processor.__file__, tmp_path)
    eos = {"guarantee": "exactly_once_v2"}
    write_application(file, namespace, ledger_processor.topology(namespace), processing=eos)
    made = Instance(file, broker.bootstrap_servers, namespace, tmp_path)
    yield made
    made.stop()


def test_a_kill_between_any_two_steps_neither_loses_nor_doubles_state_records_or_punctuations(
    broker: Any, namespace: str, instance: Instance
) -> None:
    bootstrap, n, sent = broker.bootstrap_servers, namespace, 0
    make_order_topics(bootstrap, n)
    instance.start()

    def more() -> None:
        nonlocal sent
        numbers = range(sent, sent + 20)
        times = [START + 3 * number - 7 * (number % 5) for number in numbers]  # out of order, too
        send(bootstrap, f"{n}-orders", orders(numbers), times=times)
        sent += len(numbers)

    def is_done() -> bool:
        instance.check()
        return is_all_told(bootstrap, n) and is_all_counted(bootstrap, n)

    for point in ALL if "STREAMSAPP_TEST_KILLS" in os.environ else OWN:
        more()
        eventually(is_done, f"all is processed before the kill {point}", PATIENCE, 0.5)
        before = ticks(bootstrap, n)
        instance.fault.write_text(point)
        more()
        instance.wait_until_killed(f"killed {point}")
        instance.fault.unlink()
        instance.start()
        eventually(is_done, f"all is processed after the kill {point}", PATIENCE, 0.5)
        assert without_ticks(bootstrap, n) == wanted(bootstrap, n), point
        eventually(lambda: sum(ticks(bootstrap, n).values()) > sum(before.values()), "the clock goes on", PATIENCE, 0.5)  # noqa: B023
    assert set(ticks(bootstrap, n)) == {"0_0", "0_1"}
