"""Connections to brokers that are kept: used by one at a time, for the same client alone, and not for ever."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, cast

import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.topics.admins import KeptAdmins

ONE = {"bootstrap.servers": "kafka:9092"}
LOGIN = {**ONE, "sasl.username": "a", "sasl.password": "b"}


class Connection:
    def __init__(self, properties: Mapping[str, str], timeout: float) -> None:
        self.properties, self.timeout, self.closed = dict(properties), timeout, 0

    def close(self) -> None:
        self.closed += 1


class Pool:
    """A pool with a clock that is set, and all connections that it made."""

    def __init__(self) -> None:
        self.now = 0.0
        self.made: list[Connection] = []
        self.admins = KeptAdmins(self._make, lambda: self.now)

    def _make(self, properties: Mapping[str, str], timeout: float) -> Admin:
        self.made.append(Connection(properties, timeout))
        return cast(Admin, self.made[-1])

    def use(self, properties: Mapping[str, str] = ONE, timeout: float = 18.0, *, sound: bool = True) -> Any:
        taken = self.admins.take(properties, timeout)
        self.admins.give_back(taken, sound=sound)
        return taken


@pytest.fixture
def pool() -> Pool:
    return Pool()


def test_one_that_was_given_back_is_used_again_by_the_same_client_alone(pool: Pool) -> None:
    first = pool.use()
    assert pool.use(dict(reversed(ONE.items()))) is first
    others = [pool.use(LOGIN), pool.use({**LOGIN, "sasl.password": "c"}), pool.use(ONE, 5.0)]
    assert len({first, *others}) == 4
    assert pool.use(LOGIN) is others[0]
    assert sum(each.closed for each in pool.made) == 0


def test_two_that_ask_at_once_have_one_each(pool: Pool) -> None:
    one, other = pool.admins.take(ONE, 1.0), pool.admins.take(ONE, 1.0)
    assert one is not other
    pool.admins.give_back(one, sound=True)
    pool.admins.give_back(other, sound=True)
    assert pool.use(ONE, 1.0) is other


def test_one_over_which_something_failed_is_closed(pool: Pool) -> None:
    failed = pool.use(sound=False)
    assert failed.closed == 1
    assert pool.use() is not failed


def test_one_that_nobody_wants_for_a_minute_is_closed_by_whoever_comes_next(pool: Pool) -> None:
    idle = pool.use(LOGIN)
    pool.now = 59.0
    assert pool.use(LOGIN) is idle
    pool.now = 119.0
    pool.use(ONE)
    assert idle.closed == 1


def test_one_is_not_used_for_longer_than_ten_minutes(pool: Pool) -> None:
    first = pool.use()
    while pool.now < 599.0:
        assert pool.use() is first
        pool.now += 50.0
    assert pool.use() is not first
    assert first.closed == 1


def test_only_so_many_are_kept(pool: Pool) -> None:
    for number in range(100):
        pool.use({**ONE, "client.id": str(number)})
    assert [each.closed for each in pool.made] == [1] * 36 + [0] * 64


def test_the_end_closes_those_that_nobody_uses_and_the_others_are_given_back_all_the_same(pool: Pool) -> None:
    used, idle = pool.admins.take(ONE, 1.0), pool.use(LOGIN)
    pool.admins.close()
    assert (idle.closed, cast(Any, used).closed) == (1, 0)
    pool.admins.give_back(used, sound=True)
    pool.admins.close()
    assert cast(Any, used).closed == 1


@settings(max_examples=examples(50))
@given(st.lists(st.tuples(st.sampled_from(["take", "back", "broken", "wait", "end"]), st.integers(0, 3)), max_size=40))
def test_each_has_one_user_at_most_and_is_closed_once_at_most_and_never_in_use(steps: list[tuple[str, int]]) -> None:
    pool, used = Pool(), list[Connection]()
    for step, number in steps:
        if step == "take":
            properties = {**ONE, "client.id": str(number % 2)}
            taken = cast(Any, pool.admins.take(properties, 1.0))
            assert taken.properties == properties
            assert all(taken is not each for each in used)
            used.append(taken)
        elif step in ("back", "broken") and used:
            pool.admins.give_back(cast(Admin, used.pop(number % len(used))), sound=step == "back")
        elif step == "wait":
            pool.now += 25.0 * number
        elif step == "end":
            pool.admins.close()
        assert all(each.closed == 0 for each in used)
        assert all(each.closed <= 1 for each in pool.made)
    for each in used:
        pool.admins.give_back(cast(Admin, each), sound=True)
    pool.admins.close()
    assert {each.closed for each in pool.made} <= {1}


def test_threads_do_not_disturb_each_other() -> None:
    pool, failures = Pool(), list[str]()
    users: dict[int, int] = {}

    def work() -> None:
        for _ in range(300):
            taken = pool.admins.take(ONE, 1.0)
            if users.setdefault(id(taken), threading.get_ident()) != threading.get_ident():
                failures.append("two at once")
            users.pop(id(taken), None)
            pool.admins.give_back(taken, sound=True)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert failures == []
    assert len(pool.made) <= 8
