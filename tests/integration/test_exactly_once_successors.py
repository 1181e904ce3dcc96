"""A pod that was deleted by force lives on, on a node that nobody reaches, while its successor of the same name starts
elsewhere: what `spec.nodeLoss.forceDeleteAfter` may come to. Every order counts once, whoever of the two goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from instances import Instance, write_application
from orders import make_order_topics, topology
from orders_fed import PATIENCE, Feed, check_that_each_counted_once, is_running
from waiting import eventually

from streams_runtime.kafka.admin.kafka_admin import Admin

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]

APART = 0.3  # seconds between orders: batches enough to be in the midst of one, and no more of them
WAITS = "still counts"  # of the line of a member that finds its name taken


@pytest.fixture
def admin(broker: Any) -> Iterator[Admin]:
    with closing(Admin({"bootstrap.servers": broker.bootstrap_servers})) as found:
        yield found


@pytest.fixture
def namesakes(broker: Any, namespace: str, tmp_path: Path) -> Iterator[tuple[Instance, Instance]]:
    """Two processes of one name, each with a disk of its own: the pod, and its successor."""
    make_order_topics(broker.bootstrap_servers, namespace)
    file = tmp_path / "app.yaml"
    write_application(
        file,
        namespace,
        topology(namespace),
        processing={"guarantee": "exactly_once_v2"},
        kafka={"config": {"transaction.timeout.ms": 5000}},
    )
    made = []
    for node in ("lost", "other"):
        (tmp_path / node).mkdir()
        made.append(Instance(file, broker.bootstrap_servers, f"{namespace}-0", tmp_path / node))
    pod, successor = made
    yield pod, successor
    for each in made:
        each.stop()


def processed(instance: Instance) -> int:
    described = instance.described()
    return 0 if described is None else int(described["counters"]["records_processed"])


def test_a_pod_that_stood_still_while_its_successor_took_over_changes_nothing_when_it_goes_on(
    namesakes: tuple[Instance, Instance], admin: Admin, namespace: str
) -> None:
    pod, successor = namesakes
    pod.start()
    with Feed(admin.address, f"{namespace}-orders", APART) as fed:
        eventually(lambda: processed(pod) > 0, "the pod processes", PATIENCE)
        pod.pause()
        successor.start()
        eventually(lambda: processed(successor) > 0, "the successor processes", PATIENCE)
        pod.resume()
        eventually(lambda: not pod.alive or WAITS in pod.log, "the pod finds its name taken", PATIENCE)
        before = processed(successor)
        eventually(lambda: processed(successor) > before + 100, "the successor goes on", PATIENCE)
    check_that_each_counted_once(admin, namespace, [successor], fed.count)


def test_a_successor_of_a_pod_that_still_works_waits_and_takes_over_when_that_is_gone(
    namesakes: tuple[Instance, Instance], admin: Admin, namespace: str
) -> None:
    pod, successor = namesakes
    pod.start()
    with Feed(admin.address, f"{namespace}-orders", APART) as fed:
        eventually(lambda: processed(pod) > 0, "the pod processes", PATIENCE)
        successor.start()
        eventually(lambda: WAITS in successor.log, "the successor finds its name taken", PATIENCE)
        before = processed(pod)
        eventually(lambda: processed(pod) > before + 100, "the pod goes on", PATIENCE)
        assert not is_running(successor)
        pod.kill()
        eventually(lambda: processed(successor) > 0, "the successor processes", PATIENCE)
    check_that_each_counted_once(admin, namespace, [successor], fed.count)
