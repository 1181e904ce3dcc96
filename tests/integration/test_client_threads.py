"""Threads of whole clients on a real broker: replaced after an exception, added, removed; what ends the application."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from clients import client, make_topics, send, until_running
from thread_faults import Faults
from topic_apps import TopicApp, delete
from waiting import eventually

from streams_runtime.client import StreamsClient
from streams_runtime.errors import (
    IllegalStateException,
    InvalidStateStoreException,
    MissingInternalTopicException,
    MissingSourceTopicException,
    ShutdownRequestedException,
)
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.client.client_properties import client_properties
from streams_runtime.lifecycle.uncaught import UncaughtExceptionResponse
from streams_runtime.query.stores.key_value_handle import StoreQueryParameters
from streams_runtime.states import ClientState, ThreadState

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark"), pytest.mark.timeout(600)]

USERS = 40
LONG = 180.0  # seconds; only ever waited for in full by a test that fails


def totals(name: str) -> str:
    return f"""
sources: [{{name: orders, topic: {name}-orders, key: {{format: string}},
           value: {{format: json, schema: "amount BIGINT"}}}}]
steps: [{{name: totals, from: orders, aggregate: {{n: count(*)}}, store: totals}}]
"""


def order(bootstrap: str, name: str) -> None:
    send(bootstrap, f"{name}-orders", [(f"u{number}", {"amount": 1}) for number in range(USERS)])


def counted(made: StreamsClient) -> dict[str, int]:
    """The counts of the store; none while it can't be asked."""
    assert made.state in (ClientState.REBALANCING, ClientState.RUNNING), made.error
    if made.state is not ClientState.RUNNING:
        return {}
    with made.store(StoreQueryParameters("totals")).all() as entries:
        return {user: value["n"] for user, value in entries}


def counts_to(made: StreamsClient, each: int) -> None:
    eventually(lambda: tried(made) == {f"u{number}": each for number in range(USERS)}, f"each user has {each}", LONG)


def tried(made: StreamsClient) -> dict[str, int]:
    """The counts; none when a thread that goes takes a store away in the middle."""
    try:
        return counted(made)
    except InvalidStateStoreException:
        return {}


def tasks_by_thread(made: StreamsClient) -> list[int]:
    return sorted(len(thread.tasks.tasks) for thread in made.threads if thread.state is ThreadState.RUNNING)


def member_names(made: StreamsClient) -> list[str]:
    return sorted(each.client_id for each in made.context.admin.group_members(made.context.topology.application_id))


def test_a_thread_is_replaced_under_its_name_and_threads_come_and_go_without_losing_or_doubling_a_record(
    broker: Any, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bootstrap = broker.bootstrap_servers
    make_topics(bootstrap, **{f"{namespace}-orders": 4})
    faults = Faults(monkeypatch)
    seen: list[BaseException] = []
    answer = UncaughtExceptionResponse.REPLACE_THREAD

    def handler(error: BaseException) -> UncaughtExceptionResponse:
        seen.append(error)
        return answer

    with client(bootstrap, namespace, totals(namespace), tmp_path) as made:
        made.set_uncaught_exception_handler(handler)
        assert made.add_thread() is None, "CREATED"
        made.start()
        order(bootstrap, namespace)
        counts_to(made, 1)
        (first,) = made.threads

        faults.next = ValueError("a step that fails once")
        order(bootstrap, namespace)
        counts_to(made, 2)
        (second,) = made.threads
        assert [type(each) for each in seen] == [ValueError]
        assert (second.name, second.instance_id) == (first.name, first.instance_id)
        assert second is not first
        assert first.state is ThreadState.DEAD
        assert len(member_names(made)) == 1
        assert {state for state, _ in made.transitions} == {
            ClientState.CREATED,
            ClientState.REBALANCING,
            ClientState.RUNNING,
        }

        assert made.add_thread() == f"{made.instance}-StreamThread-2"
        eventually(lambda: tasks_by_thread(made) == [2, 2], "the tasks are shared out")
        order(bootstrap, namespace)
        counts_to(made, 3)
        with pytest.raises(IllegalStateException, match="close it before clean_up"):
            made.clean_up()
        with pytest.raises(IllegalStateException, match="only in CREATED"):
            made.set_state_listener(lambda _new, _old: None)

        assert made.remove_thread(60) == second.name
        assert "was not taken out" not in caplog.text
        eventually(lambda: tasks_by_thread(made) == [4], "the other one has all tasks")
        order(bootstrap, namespace)
        counts_to(made, 4)

        assert made.remove_thread(60) == f"{made.instance}-StreamThread-2"
        eventually(lambda: member_names(made) == [], "nobody is in the group")
        assert made.threads == ()
        assert made.state in (ClientState.RUNNING, ClientState.REBALANCING)
        assert made.remove_thread(60) is None
        order(bootstrap, namespace)
        assert made.add_thread() == f"{made.instance}-StreamThread-1"
        counts_to(made, 5)

        answer = UncaughtExceptionResponse.SHUTDOWN_CLIENT
        faults.next = ValueError("another one")
        order(bootstrap, namespace)
        assert made.wait_for(ClientState.ERROR, timeout=LONG), made.state
        assert str(made.error) == "another one"
        assert not made.shutdown_requested
        assert made.add_thread() is None
        made.clean_up()
        assert [each for each in made.context.directory.root.iterdir() if each.is_dir()] == []
    with client(bootstrap, namespace, totals(namespace), tmp_path) as again:
        again.start()
        counts_to(again, 6)


def test_a_request_for_the_end_of_the_application_ends_every_client_of_it_that_is_told(
    broker: Any, namespace: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bootstrap = broker.bootstrap_servers
    shutdown = {"onUncaughtException": "shutdownApplication"}
    topology = totals(namespace)
    make_topics(bootstrap, **{f"{namespace}-orders": 2})
    with (
        client(bootstrap, namespace, topology, tmp_path / "0", "i-0", processing=shutdown) as first,
        client(bootstrap, namespace, topology, tmp_path / "1", "i-1", processing=shutdown) as second,
    ):
        first.start()
        second.start()
        for made in (first, second):
            until_running(made, LONG)
        send(bootstrap, f"{namespace}-orders", [("ada", b"{oops")])
        eventually(lambda: first.shutdown_requested or second.shutdown_requested, "the one that met the record asks")
        asking, other = (first, second) if first.shutdown_requested else (second, first)
        assert asking.wait_for(ClientState.ERROR, timeout=60)
        kind = type(asking.error).__name__
        assert kind == "DeserializationException"
        caplog.set_level(logging.ERROR)
        request = ShutdownRequestedException(asking.instance, kind, str(asking.error))
        # The other may have met the record meanwhile, as the tasks went to it.
        if other.shut_down_with_application(request):
            assert other.error is request
            assert asking.instance in str(other.error)
            assert not other.shutdown_requested
        assert other.wait_for(ClientState.ERROR, timeout=60)
        for made in (first, second):
            assert [state for state, _ in made.transitions][-2:] == [ClientState.PENDING_ERROR, ClientState.ERROR]


def test_a_handler_tells_missing_topics_apart_and_one_that_fails_ends_the_client_with_both_failures(
    broker: Any, namespace: str, tmp_path: Path
) -> None:
    admin = Admin(client_properties(broker.bootstrap_servers, {}))
    app = TopicApp(namespace, admin.address, setup="manual")
    seen: list[BaseException] = []

    def note(error: BaseException) -> UncaughtExceptionResponse:
        seen.append(error)
        return UncaughtExceptionResponse.SHUTDOWN_CLIENT

    def fail(error: BaseException) -> UncaughtExceptionResponse:
        seen.append(error)
        raise KeyError("no plan for this")

    def run(instance: str, handler: Any) -> StreamsClient:
        topology, setup = str(app.topology_spec), {"setup": "manual"}
        with client(
            admin.address, app.resource.application_id, topology, tmp_path / instance, instance, internalTopics=setup
        ) as made:
            made.set_uncaught_exception_handler(handler)
            made.start()
            assert made.wait_for(ClientState.ERROR, timeout=LONG), made.state
        return made

    run("i-0", note)
    app.make_users_topics(admin)
    run("i-1", note)
    last = run("i-2", fail)
    kinds = [MissingSourceTopicException, MissingInternalTopicException, MissingInternalTopicException]
    assert [type(each) for each in seen] == kinds
    assert app.changelog in str(seen[2])
    assert app.present(admin) == set()
    account: Any = last.describe()["error"]
    assert account["class"] == "MissingInternalTopicException"
    assert app.changelog in account["message"]
    assert "handler failed on it with KeyError: 'no plan for this'" in account["message"]
    admin.close()


def test_internal_topics_deleted_between_two_runs_end_the_next_one_in_error_and_are_not_made_again(
    broker: Any, namespace: str, tmp_path: Path
) -> None:
    """With manual set-up: the first run made them itself, by init(), and was closed in order."""
    admin = Admin(client_properties(broker.bootstrap_servers, {}))
    app = TopicApp(namespace, admin.address, setup="manual")
    app.make_users_topics(admin)
    seen: list[BaseException] = []

    def note(error: BaseException) -> UncaughtExceptionResponse:
        seen.append(error)
        return UncaughtExceptionResponse.SHUTDOWN_CLIENT

    def restarted() -> Any:
        topology, setup = str(app.topology_spec), {"setup": "manual"}
        return client(admin.address, app.resource.application_id, topology, tmp_path, internalTopics=setup)

    def order(*users: str) -> None:
        send(admin.address, app.source, [(None, {"user": user, "amount": 1.0}) for user in users])

    with restarted() as made:
        made.set_uncaught_exception_handler(note)
        made.init()
        made.start()
        order("ada", "bob", "ada")
        eventually(lambda: tried(made) == {"ada": 2, "bob": 1}, "the orders are counted", LONG)
        assert made.close(60)
        assert (made.state, seen) == (ClientState.NOT_RUNNING, [])
    left = {*app.internal}
    for lost in (app.changelog, app.repartition):
        delete(admin, [lost])
        left.discard(lost)
        order("cid")
        with restarted() as made:
            made.set_uncaught_exception_handler(note)
            made.start()
            assert made.wait_for(ClientState.ERROR, timeout=LONG), made.state
            assert isinstance(made.error, MissingInternalTopicException), made.error
            assert lost in str(made.error)
            assert seen == [made.error]
            assert [state for state, _ in made.transitions] == [
                *(ClientState.CREATED, ClientState.REBALANCING, ClientState.PENDING_ERROR, ClientState.ERROR)
            ]
        seen.clear()
        assert app.present(admin) == left
    admin.close()
