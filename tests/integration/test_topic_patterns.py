"""Two instances that read every topic of a pattern: those that are there, those that come, and not those that go."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from clients import DEADLINE, client, following_values, make_topics, send, until_running
from waiting import eventually

from streams_runtime.client import StreamsClient
from streams_runtime.errors import MissingSourceTopicException
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.client.client_properties import client_properties
from streams_runtime.query.stores.key_value_handle import StoreQueryParameters
from streams_runtime.states import ClientState

pytestmark = pytest.mark.integration

USERS = [f"user-{number}" for number in range(12)]


@pytest.fixture
def admin(broker: Any) -> Iterator[Admin]:
    with closing(Admin(client_properties(broker.bootstrap_servers, {}))) as admin:
        yield admin


def topology(namespace: str) -> str:
    return (
        f"sources: [{{name: orders, topicPattern: '{namespace}-in-.*', key: {{format: string}},"
        ' value: {format: json, schema: "n BIGINT"}}]\n'
        "steps: [{name: totals, from: orders, store: totals,"
        " aggregate: {total: sum(n), first: min(_topic), last: max(_topic)}}]\n"
        f"sinks: [{{from: totals, topic: {namespace}-out}}]\n"
    )


@pytest.mark.parametrize("guarantee", ["exactly_once_v2"])
def test_instances_read_what_fits_as_it_comes_and_goes(
    broker: Any, namespace: str, tmp_path: Path, admin: Admin, guarantee: str
) -> None:
    address, first, second = broker.bootstrap_servers, f"{namespace}-in-a", f"{namespace}-in-b"
    make_topics(address, **{first: 4, f"{namespace}-out": 4, f"{namespace}-other": 4})
    kafka = {"config": {"metadata.max.age.ms": 500}}
    totals = following_values(address, f"{namespace}-out", committed=True)

    def made(stack: ExitStack, number: int) -> StreamsClient:
        return stack.enter_context(
            client(
                address,
                namespace,
                topology(namespace),
                tmp_path / str(number),
                f"i-{number}",
                kafka=kafka,
                processing={"guarantee": guarantee, "commitInterval": "50ms"},
            )
        )

    def expect(total: int, *topics: str) -> None:
        wanted = {user: {"total": total, "first": min(topics), "last": max(topics)} for user in USERS}

        def there() -> bool:
            for each in instances:
                assert each.state is not ClientState.ERROR, each.error
            return totals() == wanted

        eventually(there, lambda: f"{totals()}", DEADLINE)

    with ExitStack() as stack:
        instances = [made(stack, number) for number in range(2)]
        for each in instances:
            each.start()
        for each in instances:
            until_running(each)
        send(address, first, [(user, {"n": 1}) for user in USERS])
        send(address, f"{namespace}-other", [(user, {"n": 1000}) for user in USERS])
        expect(1, first)
        make_topics(address, **{second: 4})
        send(address, second, [(user, {"n": 10}) for user in USERS])
        expect(11, first, second)
        for each in instances:
            eventually(lambda each=each: each.state is ClientState.RUNNING, "it is RUNNING again", DEADLINE)
        tasks = [task for each in instances for thread in each.threads for task in thread.tasks.tasks.values()]
        assert {frozenset(each.topic for each in task.inputs) for task in tasks} == {frozenset({first, second})}
        assert len(tasks) == 4
        rows = [row for each in instances for row in each.store(StoreQueryParameters("totals", "key-value")).all()]
        assert {row.key: row.value["total"] for row in rows} == dict.fromkeys(USERS, 11)
        # The records of a topic that is gone stay in the stores, and what is left is read on.
        admin.delete_topics([first])
        eventually(lambda: not admin.topic_ids([first]), "the topic is gone", DEADLINE)
        send(address, second, [(user, {"n": 100}) for user in USERS])
        expect(111, first, second)
        # The last one that fits goes: now there is nothing to read.
        admin.delete_topics([second])
        for each in instances:
            assert each.wait_for(ClientState.ERROR, timeout=DEADLINE)
            assert isinstance(each.error, MissingSourceTopicException)
            assert f"fits the pattern '{namespace}-in-.*'" in str(each.error)
