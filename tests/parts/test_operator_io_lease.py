"""The election, against an API server that is a dict, with a clock of the test's own."""

from __future__ import annotations

import asyncio
import copy

import pytest

from streams_operator.kube.api import Conflict, NotThere, TryLater
from streams_operator.kube.lease import Lease


class Server:
    """One Lease with a version, as far as the election asks for it."""

    def __init__(self):
        self.lease = None
        self.version = 0
        self.broken: set[str] = set()

    def seen_by(self, identity):
        return _Seen(self, identity)


class _Seen:
    def __init__(self, server, identity):
        self._server, self._identity = server, identity

    def _check(self):
        if self._identity in self._server.broken:
            raise TryLater("no answer")

    async def get(self, kind, namespace, name):
        self._check()
        if self._server.lease is None:
            raise NotThere("no lease")
        return copy.deepcopy(self._server.lease)

    async def create(self, kind, obj, *, election=False):
        self._check()
        assert election
        if self._server.lease is not None:
            raise Conflict("there is one")
        return self._store(obj)

    async def replace(self, kind, obj, subresource=None, *, election=False):
        self._check()
        assert election
        if obj["metadata"]["resourceVersion"] != self._server.lease["metadata"]["resourceVersion"]:
            raise Conflict("changed")
        return self._store(obj)

    def _store(self, obj):
        self._server.version += 1
        self._server.lease = copy.deepcopy(dict(obj))
        self._server.lease["metadata"] = {**obj["metadata"], "resourceVersion": str(self._server.version)}
        return self._server.lease


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def server():
    return Server()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def pair(server, clock):
    return [Lease(server.seen_by(name), "ns", "lease", name, clock=clock) for name in ("one", "two")]


def step(*leases):
    for lease in leases:
        asyncio.run(lease._step())


def test_the_first_that_asks_is_the_leader_and_the_other_is_not(pair, server):
    one, two = pair
    step(one, two)
    assert (one.held, two.held) == (True, False)
    assert server.lease["spec"]["holderIdentity"] == "one"


def test_a_leader_that_renews_stays_for_ever(pair, clock):
    one, two = pair
    for _ in range(20):
        step(one, two)
        clock.now += 3
        assert (one.held, two.held) == (True, False)


def test_a_killed_leader_is_followed_within_thirty_seconds(pair, clock):
    one, two = pair
    step(one, two)
    killed = clock.now
    while not two.held:
        clock.now += 3
        step(two)
    assert clock.now - killed < 30


def test_a_leader_that_can_not_renew_stops_before_another_begins(pair, server, clock):
    one, two = pair
    step(one, two)
    server.broken.add("one")
    stopped = None
    while not two.held:
        assert not (one.held and two.held)
        clock.now += 0.5
        step(one, two)
        if stopped is None and not one.held:
            stopped = clock.now
    assert stopped is not None
    assert clock.now - stopped >= 3


def test_a_leader_that_hangs_has_lost_its_lease_by_the_clock_alone(pair, clock):
    one, _ = pair
    step(one)
    clock.now += 9.9
    assert one.held
    clock.now += 0.2
    assert not one.held


def test_a_lease_that_is_given_back_is_taken_at_the_next_look(pair, server):
    one, two = pair
    step(one, two)
    asyncio.run(one.release())
    assert not one.held
    step(two)
    assert two.held
    assert server.lease["spec"]["leaseTransitions"] == 1


def test_a_replica_that_does_not_lead_gives_nothing_back(pair, server):
    one, two = pair
    step(one, two)
    asyncio.run(two.release())
    assert server.lease["spec"]["holderIdentity"] == "one"


def test_of_two_that_take_a_free_lease_at_once_one_wins(pair, server, clock):
    one, two = pair
    step(one)
    asyncio.run(one.release())
    read = asyncio.run(two._api.get(None, "", ""))
    step(one)
    with pytest.raises(Conflict):
        asyncio.run(two._write(read, "two", 15))
    step(two)
    assert (one.held, two.held) == (True, False)


def test_waiting_ends_when_the_lease_is_lost(pair, server, clock):
    one, _ = pair

    async def scenario():
        await one._step()
        waiting = asyncio.create_task(one.wait(held=False))
        await asyncio.sleep(0)
        assert not waiting.done()
        clock.now += 60
        async with asyncio.timeout(20):
            await waiting

    asyncio.run(scenario())


@pytest.mark.parametrize("turns", range(12))
def test_a_replica_told_to_end_while_it_loses_the_lease_ends(pair, clock, turns):
    """The two cancellations, of the rounds and of the replica, meet at each turn of the event loop in turn."""
    one, _ = pair
    ended = []

    async def rounds():
        try:
            await asyncio.Event().wait()
        finally:
            try:
                for _ in range(4):
                    await asyncio.sleep(0)
            finally:
                ended.append(True)

    async def lead():
        while True:
            await one.wait(held=True)
            await one.during(rounds())

    async def scenario():
        await one._step()
        leading = asyncio.create_task(lead())
        for _ in range(3):
            await asyncio.sleep(0)
        clock.now += 60
        one._changed.set()
        for _ in range(turns):
            await asyncio.sleep(0)
        leading.cancel()
        done, _ = await asyncio.wait([leading], timeout=5)
        assert done
        assert leading.cancelled()
        assert ended == [True]

    asyncio.run(scenario())


def test_work_that_fails_is_told(pair):
    one, _ = pair

    async def fails():
        raise ValueError("no")

    async def scenario():
        await one._step()
        with pytest.raises(ExceptionGroup):
            await one.during(fails())

    asyncio.run(scenario())
