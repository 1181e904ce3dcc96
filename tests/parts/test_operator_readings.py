"""Large resources are read beside the event loop, and once a generation."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer
from operator_world import application_of, resource

from streams_operator.model import Defaults, Json, Key
from streams_operator.plan import document
from streams_operator.reconcile.readings import SMALL, Readings, is_small, read_resource
from streams_operator.webhook import webhook
from streams_runtime.api import Reading, StreamsApplication

KEY = Key("shop", "orders")


def large(**metadata: Any) -> dict[str, Any]:
    """A valid resource of a thousand steps."""
    made = resource(**metadata)
    made["spec"]["topology"]["steps"] += [
        {"name": f"s{number}", "from": "orders", "where": f"amount > {number}"} for number in range(1000)
    ]
    return made


def run(
    scenario: Callable[[Readings], Awaitable[None]], reader: Reader | None = None, writer: Writer | None = None
) -> None:
    async def bounded() -> None:
        readings = Readings(reader, writer)
        try:
            async with asyncio.timeout(60):
                await scenario(readings)
        finally:
            readings.close()

    asyncio.run(bounded())


async def turns_until(done: asyncio.Task[Any]) -> int:
    """How often the loop turned meanwhile."""
    turns = 0
    while not done.done():
        turns += 1
        await asyncio.sleep(0)
    return turns


class Reader:
    """Reads, and notes in which thread."""

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []
        self.fails = False

    def __call__(self, given: Json) -> Reading:
        self.threads.append(threading.current_thread())
        if self.fails:
            raise ValueError("a mistake of ours")
        return Reading(None, (), (), None, given)


class Writer:
    """Makes documents, and notes in which thread."""

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []

    def __call__(self, application: StreamsApplication, namespace: str) -> bytes:
        self.threads.append(threading.current_thread())
        return document(application, namespace)


def test_the_loop_turns_while_a_large_resource_is_read() -> None:
    async def scenario(readings: Readings) -> None:
        reading = asyncio.create_task(readings.of(KEY, large()))
        assert await turns_until(reading) > 20
        assert reading.result().application is not None

    run(scenario)


def test_resources_are_read_once_a_generation_and_small_ones_in_the_loop() -> None:
    reader = Reader()

    async def scenario(readings: Readings) -> None:
        for generation in (1, 1, 2, 2, 2):
            await readings.of(KEY, large(generation=generation))
        assert len(reader.threads) == 2
        assert threading.main_thread() not in reader.threads
        await readings.of(KEY, large(generation=2, uid="another-of-the-name"))
        assert len(reader.threads) == 3
        readings.forget(KEY)
        await readings.of(KEY, large(generation=2, uid="another-of-the-name"))
        assert len(reader.threads) == 4
        for generation in (1, 1, 2):
            await readings.of(KEY, resource(generation=generation))
        assert reader.threads[4:] == [threading.main_thread()] * 2
        readings.forget(KEY)
        await readings.of(KEY, resource(generation=2))
        assert len(reader.threads) == 7

    run(scenario, reader)


def test_the_document_of_a_generation_is_made_once_with_its_reading() -> None:
    writer = Writer()

    async def scenario(readings: Readings) -> None:
        assert readings.document(KEY) == b"", "nothing was read yet"
        for generation in (1, 1, 2):
            await readings.of(
                KEY, resource({"replicas": 2, "applicationId": f"of-{generation}"}, generation=generation)
            )
            application = application_of(resource({"replicas": 2, "applicationId": f"of-{generation}"}))
            assert readings.document(KEY) == document(application, "shop")
        assert writer.threads == [threading.main_thread()] * 2
        await readings.of(KEY, large(generation=3))
        assert readings.document(KEY) == document(application_of(large()), "shop")
        assert threading.main_thread() not in writer.threads[2:]
        await readings.of(KEY, resource({"replicas": "many"}, generation=4))
        assert readings.document(KEY) == b"", "it can't be read"
        readings.forget(KEY)
        assert readings.document(KEY) == b""

    run(scenario, writer=writer)


def test_a_reading_that_fails_is_not_kept() -> None:
    reader = Reader()

    async def scenario(readings: Readings) -> None:
        reader.fails = True
        with pytest.raises(ValueError, match="a mistake of ours"):
            await readings.of(KEY, large())
        reader.fails = False
        assert (await readings.of(KEY, large())).mistakes == ()

    run(scenario, reader)


def test_what_follows_from_a_large_resource_is_worked_out_beside_the_loop_too() -> None:
    async def scenario(readings: Readings) -> None:
        assert await readings.beside(large(), threading.current_thread) is not threading.main_thread()
        assert await readings.beside(resource(), threading.current_thread) is threading.main_thread()

    run(scenario)


def test_few_readings_are_kept_and_the_last_used_ones() -> None:
    reader = Reader()

    async def scenario(readings: Readings) -> None:
        for number in range(100):
            await readings.of(KEY, large())
            await readings.of(Key("shop", f"other-{number}"), large())
        assert len(reader.threads) == 101
        await readings.of(Key("shop", "other-0"), large())
        assert len(reader.threads) == 102, "it has been given up"

    run(scenario, reader)


def test_a_resource_that_is_nested_without_end_is_refused_at_once() -> None:
    deep: dict[str, Any] = {}
    for _ in range(500):
        deep = {"topology": deep}
    assert is_small({"spec": deep})
    (mistake,) = read_resource({**resource(), "spec": deep}).mistakes
    assert "levels in each other" in str(mistake)


def test_the_loop_turns_while_a_large_resource_is_reviewed() -> None:
    async def scenario(_: Readings) -> None:
        review = {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {"uid": "1", "operation": "CREATE", "object": large()},
        }
        async with TestClient(TestServer(webhook(Defaults("runtime:1")))) as client:
            asked = asyncio.create_task(client.post("/validate", json=review))
            assert await turns_until(asked) > 100
            answer = await (await asked).json()
            assert answer["response"] == {"uid": "1", "allowed": True}

    run(scenario)


def test_a_small_application_is_far_below_the_limit() -> None:
    assert is_small(resource())
    assert not is_small(large())
    assert SMALL == 16_384
