"""A paused client keeps its place, its tasks and its answers, and processes nothing (KIP-834)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from chromium import PROGRAMS, Page, chromium
from clients import DEADLINE, client, last_values, make_topics, read, run_until_done, send, until_done, until_running
from kube_binaries import lacking
from totals_application import USERS, totals
from waiting import eventually

from streams_runtime.client import StreamsClient
from streams_runtime.errors import StreamsRebalancingException
from streams_runtime.pipeline.batch_input import BatchInput
from streams_runtime.processing.inputs.intake import Intake
from streams_runtime.query.stores.key_value_handle import StoreQueryParameters
from streams_runtime.states import ClientState

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]

TURNS = 5


def orders(bootstrap: str, name: str) -> None:
    """One of each user."""
    send(bootstrap, f"{name}-orders", [(user, {"amount": 1}) for user in USERS])


def contents(made: StreamsClient) -> dict[Any, Any]:
    with made.store(StoreQueryParameters("totals")).all() as entries:
        return {key: value["total"] for key, value in entries}


def seen(made: StreamsClient) -> dict[Any, Any]:
    """The same; nothing while tasks are on their way."""
    try:
        return contents(made)
    except StreamsRebalancingException:
        return {}


def lag(made: StreamsClient) -> int:
    rows: Any = made.describe()["lag"]
    return sum(row["lag"] or 0 for row in rows)


def turns(made: StreamsClient, times: int = TURNS) -> None:
    """Wait until each thread's loop has turned so often: what it would do by now, it has done."""
    for thread in made.threads:
        seen: set[float] = set()
        eventually(lambda thread=thread, seen=seen: seen.add(thread.last_turn) or len(seen) > times, "the loop turns")


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_a_paused_client_processes_nothing_and_answers_and_goes_on_when_it_is_resumed(
    guarantee: str, broker: Any, namespace: str, tmp_path: Path
) -> None:
    bootstrap, processing = broker.bootstrap_servers, {"guarantee": guarantee}
    make_topics(bootstrap, **{f"{namespace}-orders": 2, f"{namespace}-totals": 2})
    orders(bootstrap, namespace)
    with client(bootstrap, namespace, totals(namespace), tmp_path, processing=processing) as made:
        assert not made.is_paused
        run_until_done(made, [f"{namespace}-orders"])
        made.pause()
        made.pause()
        assert made.is_paused
        turns(made)
        orders(bootstrap, namespace)
        eventually(lambda: lag(made) == len(USERS), "the lag is told")
        turns(made)
        assert contents(made) == dict.fromkeys(USERS, 1)
        assert lag(made) == len(USERS)
        assert made.state is ClientState.RUNNING
        assert made.describe()["paused"] is True
        assert len(read(bootstrap, f"{namespace}-totals", committed=True)) == len(USERS)
        made.resume()
        until_done(made, [f"{namespace}-orders"])
        assert contents(made) == dict.fromkeys(USERS, 2)
        assert made.describe()["paused"] is False
    assert last_values(bootstrap, f"{namespace}-totals") == {user: {"total": 2} for user in USERS}


def test_what_is_written_after_a_pause_is_not_processed_though_the_client_was_reading_when_it_was_paused(
    broker: Any, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bootstrap, reading = broker.bootstrap_servers, Intake.next
    make_topics(bootstrap, **{f"{namespace}-orders": 2, f"{namespace}-totals": 2})
    orders(bootstrap, namespace)
    with client(bootstrap, namespace, totals(namespace), tmp_path) as made:
        run_until_done(made, [f"{namespace}-orders"])
        read_meanwhile: list[BatchInput] = []

        def read_on(intake: Intake) -> BatchInput | None:
            """The read during which somebody pauses the client, and then writes."""
            made.pause()
            orders(bootstrap, namespace)
            eventually(lambda: read_meanwhile.extend(filter(None, [reading(intake)])) or read_meanwhile)
            monkeypatch.undo()
            return read_meanwhile[0]

        monkeypatch.setattr(Intake, "next", read_on)
        eventually(lambda: read_meanwhile)
        turns(made)
        assert contents(made) == dict.fromkeys(USERS, 1)
        made.resume()
        until_done(made, [f"{namespace}-orders"])
        assert contents(made) == dict.fromkeys(USERS, 2)


def the_page_shows_it(paused: StreamsClient, folder: Path) -> None:
    """State, lag, topology, restoration and a key's value of a real client, in a real browser."""
    if reason := lacking(*PROGRAMS):
        pytest.skip(reason)
    with chromium() as driver:
        page = Page(driver, folder)
        page.open(paused.url)
        page.wait(lambda: page.text("#state") == "● RUNNING, paused", "the state")
        page.wait(lambda: f"of {len(USERS)} in all" in page.text("#lag-finding"), "the lag")
        assert "Nothing restores. 2 store partitions took" in page.text("#restoration-finding")
        assert page.text(".card.step").count("totals") > 1
        page.fill("#query-fields input[name=key]", USERS[3])
        page.click("#query button[type=submit]")
        page.wait(lambda: page.text("#query-answer pre") == '{"total":1}', "the value")
        page.screenshot("real-client")
        assert page.complaints() == []


def test_a_client_that_is_paused_before_its_start_restores_and_runs_and_processes_nothing(
    broker: Any, namespace: str, tmp_path: Path
) -> None:
    bootstrap = broker.bootstrap_servers
    make_topics(bootstrap, **{f"{namespace}-orders": 2, f"{namespace}-totals": 2})
    orders(bootstrap, namespace)
    with client(bootstrap, namespace, totals(namespace), tmp_path / "first") as first:
        run_until_done(first, [f"{namespace}-orders"])
    orders(bootstrap, namespace)
    with client(bootstrap, namespace, totals(namespace), tmp_path / "second") as second:
        second.pause()
        second.start()
        until_running(second)
        turns(second)
        assert contents(second) == dict.fromkeys(USERS, 1)
        assert second.describe()["counters"]["records_processed"] == 0  # type: ignore[index]
        the_page_shows_it(second, tmp_path)
        second.resume()
        until_done(second, [f"{namespace}-orders"])
        assert contents(second) == dict.fromkeys(USERS, 2)


def test_tasks_move_between_paused_clients_and_are_restored(broker: Any, namespace: str, tmp_path: Path) -> None:
    bootstrap = broker.bootstrap_servers
    make_topics(bootstrap, **{f"{namespace}-orders": 2, f"{namespace}-totals": 2})
    orders(bootstrap, namespace)
    with client(bootstrap, namespace, totals(namespace), tmp_path / "first") as first:
        run_until_done(first, [f"{namespace}-orders"])
        first.pause()
        orders(bootstrap, namespace)
        with client(bootstrap, namespace, totals(namespace), tmp_path / "second", instance="i-1") as second:
            second.pause()
            second.start()
            tasks = lambda made: {task["id"] for task in made.describe()["tasks"] if task["state"] == "RUNNING"}  # noqa: E731
            eventually(lambda: len(tasks(first)) == len(tasks(second)) == 1, "each has a task", DEADLINE)
            eventually(lambda: seen(first) | seen(second) == dict.fromkeys(USERS, 1), "all is restored", DEADLINE)
            first.close()
            eventually(lambda: len(tasks(second)) == 2, "the other one has both", DEADLINE)
            eventually(lambda: seen(second) == dict.fromkeys(USERS, 1), "all is restored there", DEADLINE)
            second.resume()
            until_done(second, [f"{namespace}-orders"])
            assert contents(second) == dict.fromkeys(USERS, 2)
    assert last_values(bootstrap, f"{namespace}-totals") == {user: {"total": 2} for user in USERS}


def test_a_paused_client_closes_at_once(broker: Any, namespace: str, tmp_path: Path) -> None:
    bootstrap = broker.bootstrap_servers
    make_topics(bootstrap, **{f"{namespace}-orders": 1, f"{namespace}-totals": 1})
    with client(bootstrap, namespace, totals(namespace), tmp_path) as made:
        made.pause()
        made.start()
        until_running(made)
        assert made.close(DEADLINE)
    assert made.state is ClientState.NOT_RUNNING


def test_a_pause_amid_a_backlog_completes_what_is_in_work_and_counts_every_record_once(
    broker: Any, namespace: str, tmp_path: Path
) -> None:
    bootstrap, records = broker.bootstrap_servers, 120_000
    make_topics(bootstrap, **{f"{namespace}-orders": 2, f"{namespace}-totals": 2})
    send(bootstrap, f"{namespace}-orders", [(USERS[number % len(USERS)], {"amount": 1}) for number in range(records)])
    processing = {"guarantee": "exactly_once_v2", "maxBatchRecords": 20_000}
    with client(bootstrap, namespace, totals(namespace), tmp_path, processing=processing) as made:
        made.start()
        done = lambda: sum(at for thread in made.threads for at in thread.positions.values())  # noqa: E731
        eventually(lambda: done() > 0, "the first batch is committed", DEADLINE)
        made.pause()
        turns(made)
        assert (
            sum(contents(made).values())
            == done()
            == sum(
                row["committed"]
                for row in made.describe()["lag"]  # type: ignore[attr-defined]
            )
        )
        assert done() < records, "it was paused too late to show anything"
        made.resume()
        until_done(made, [f"{namespace}-orders"])
        assert contents(made) == dict.fromkeys(USERS, records // len(USERS))
