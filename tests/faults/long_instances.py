"""What machines do to instances under exactly once; `make faults` runs it, `make test` does not.

Two instances share the work. Whatever happens to one of them, every order counts once in the end, and the instance
runs again, or has ended in ERROR for a reason that it names.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from instance_faults import (
    Clock,
    FaultyDisk,
    faketime,
    little_address_space,
    memory_group,
    short_files,
    small_disk,
    unable,
)
from instances import Instance, write_application
from orders import make_order_topics, topology
from orders_fed import PATIENCE, Feed, check_that_each_counted_once, is_running
from waiting import eventually

from streams_runtime.kafka.admin.kafka_admin import Admin

pytestmark = [pytest.mark.integration, pytest.mark.timeout(3600)]

SESSION = 6.0  # seconds after which the embedded broker counts a member out that says nothing
TRANSACTION = 5.0  # seconds after which it ends a transaction
MIB = 1024**2
needs_root = pytest.mark.skipif(unable() is not None, reason=str(unable()))


@pytest.fixture
def start(broker: Any, namespace: str, tmp_path: Path) -> Iterator[Callable[..., list[Instance]]]:
    """Two running instances, of which the first has the options that are given."""
    bootstrap = broker.bootstrap_servers
    make_order_topics(bootstrap, namespace)
    file = tmp_path / "app.yaml"
    settings = {"guarantee": "exactly_once_v2"}
    limits = {"config": {"transaction.timeout.ms": int(TRANSACTION * 1000)}}
    write_application(file, namespace, topology(namespace), processing=settings, kafka=limits)
    with ExitStack() as running:

        def started(**options: Any) -> list[Instance]:
            made = [
                Instance(file, bootstrap, f"{namespace}-0", tmp_path, **options),
                Instance(file, bootstrap, f"{namespace}-1", tmp_path),
            ]
            for each in made:
                running.callback(each.stop)
                each.start()
            for each in made:
                eventually(lambda one=each: is_running(one), f"{each.name} runs", PATIENCE)
            return made

        yield started


@pytest.fixture
def admin(broker: Any) -> Iterator[Admin]:
    with closing(Admin({"bootstrap.servers": broker.bootstrap_servers})) as found:
        yield found


def feeds(admin: Admin, namespace: str) -> Feed:
    return Feed(admin.address, f"{namespace}-orders")


def progress(fed: Feed, orders: int = 100) -> None:
    goal = fed.count + orders
    eventually(lambda: fed.count >= goal, "records come in")


def again(one: Instance) -> None:
    """A process that has ended is started once more, as a supervisor does."""
    if not one.alive:
        one.start()
    eventually(lambda: is_running(one), f"{one.name} runs again", PATIENCE)


def test_a_zombie_that_slept_longer_than_session_and_transaction_changes_nothing(
    start: Callable[..., list[Instance]], admin: Admin, namespace: str
) -> None:
    both = start()
    with feeds(admin, namespace) as fed:
        progress(fed)
        for one in both:
            one.freeze(SESSION + TRANSACTION + 3)
            again(one)
        progress(fed)
    check_that_each_counted_once(admin, namespace, both, fed.count)


def test_an_instance_whose_state_folder_is_lost_restores_all_of_it(
    start: Callable[..., list[Instance]], admin: Admin, namespace: str
) -> None:
    both = start()
    with feeds(admin, namespace) as fed:
        progress(fed)
        both[0].kill()
        both[0].lose_state()
        again(both[0])
        progress(fed)
    check_that_each_counted_once(admin, namespace, both, fed.count)


@needs_root
def test_a_full_disk_ends_the_instance_by_name_and_it_goes_on_when_there_is_room(
    start: Callable[..., list[Instance]], admin: Admin, namespace: str, tmp_path: Path
) -> None:
    with small_disk(tmp_path / f"{namespace}-0", 256) as disk, ExitStack() as before_the_disk_goes:
        both = start()
        before_the_disk_goes.callback(both[0].stop)
        with feeds(admin, namespace) as fed:
            progress(fed)
            disk.fill()
            eventually(lambda: not both[0].alive or "No space left" in both[0].log, "the disk is full", PATIENCE)
            disk.free()
            again(both[0])
            progress(fed)
        check_that_each_counted_once(admin, namespace, both, fed.count)


def test_files_that_can_not_grow_are_told_and_lose_nothing(
    start: Callable[..., list[Instance]], admin: Admin, namespace: str
) -> None:
    both = start()
    with feeds(admin, namespace) as fed:
        progress(fed)
        with short_files(both[0].pid, 4096):
            eventually(lambda: not both[0].alive or "File too large" in both[0].log, "a file can't grow", PATIENCE)
        again(both[0])
        progress(fed)
    check_that_each_counted_once(admin, namespace, both, fed.count)


@needs_root
def test_an_instance_that_the_kernel_kills_for_its_memory_comes_back_and_loses_nothing(
    start: Callable[..., list[Instance]], admin: Admin, namespace: str
) -> None:
    with memory_group() as group, ExitStack() as before_the_group_goes:
        both = start(prefix=group.prefix)
        before_the_group_goes.callback(both[0].stop)
        with feeds(admin, namespace) as fed:
            progress(fed)
            group.limit(64)
            time.sleep(3)  # as long as a short shortage takes; which of its processes is killed is the kernel's choice
            group.limit(None)
            again(both[0])
            progress(fed)
        check_that_each_counted_once(admin, namespace, both, fed.count)


def test_allocations_that_fail_for_a_while_lose_nothing(
    start: Callable[..., list[Instance]], admin: Admin, namespace: str
) -> None:
    both = start()
    with feeds(admin, namespace) as fed:
        progress(fed)
        with little_address_space(both[0].pid, MIB):
            progress(fed, 200)
        again(both[0])
        progress(fed)
    check_that_each_counted_once(admin, namespace, both, fed.count)


def test_a_disk_that_is_slow_loses_nothing(
    start: Callable[..., list[Instance]], admin: Admin, namespace: str, tmp_path: Path
) -> None:
    disk = FaultyDisk(tmp_path / f"{namespace}-0", tmp_path)
    both = start(environment=disk.environment)
    with feeds(admin, namespace) as fed:
        progress(fed)
        disk.is_slow(300)
        progress(fed, 400)
        disk.is_well()
        again(both[0])
        progress(fed)
    check_that_each_counted_once(admin, namespace, both, fed.count)


def test_a_disk_that_fails_to_sync_loses_nothing(
    start: Callable[..., list[Instance]], admin: Admin, namespace: str, tmp_path: Path
) -> None:
    disk = FaultyDisk(tmp_path / f"{namespace}-0", tmp_path)
    both = start(environment=disk.environment)
    with feeds(admin, namespace) as fed:
        progress(fed)
        disk.fails_to_sync()
        progress(fed, 200)
        # Stores are synced when they are closed, if not before.
        both[0].stop()
        disk.is_well()
        again(both[0])
        progress(fed)
    check_that_each_counted_once(admin, namespace, both, fed.count)


@pytest.mark.parametrize("seconds", [3600, -3600])
def test_a_clock_that_jumps_changes_no_result(
    start: Callable[..., list[Instance]], admin: Admin, namespace: str, tmp_path: Path, seconds: int
) -> None:
    clock = Clock(faketime(tmp_path / "faketime"), tmp_path / "clock")
    both = start(environment=clock.environment)
    with feeds(admin, namespace) as fed:
        progress(fed)
        clock.jump(seconds)
        progress(fed)
        again(both[0])
        clock.jump(0)
        progress(fed)
    assert os.path.basename(clock.environment["LD_PRELOAD"]) in Path(f"/proc/{both[0].pid}/maps").read_text()
    check_that_each_counted_once(admin, namespace, both, fed.count)
