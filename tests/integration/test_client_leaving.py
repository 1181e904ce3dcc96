"""A client that leaves the group as it closes gives its tasks to others at once (KIP-812)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from clients import DEADLINE, client, make_topics, run_until_done, send, until_done
from totals_application import USERS, totals
from waiting import eventually

from streams_runtime.client import StreamsClient
from streams_runtime.query.stores.key_value_handle import StoreQueryParameters
from streams_runtime.states import ClientState

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]


def members(made: StreamsClient) -> set[str]:
    """The static names in the group."""
    found = made.context.admin.group_members(made.context.application.application_id)
    return {each.client_id.partition("|")[0] for each in found}


def tasks(made: StreamsClient) -> int:
    rows: Any = made.describe()["tasks"]
    return sum(row["state"] == "RUNNING" for row in rows)


@pytest.mark.parametrize("leaves", [True, False], ids=["leaves", "may come back"])
def test_the_group_lets_go_of_a_client_that_leaves_and_keeps_the_place_of_one_that_does_not(
    leaves: bool, broker: Any, namespace: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bootstrap = broker.bootstrap_servers
    make_topics(bootstrap, **{f"{namespace}-orders": 2, f"{namespace}-totals": 2})
    send(bootstrap, f"{namespace}-orders", [(user, {"amount": 1}) for user in USERS])
    with client(bootstrap, namespace, totals(namespace), tmp_path / "first") as first:
        run_until_done(first, [f"{namespace}-orders"])
        with client(bootstrap, namespace, totals(namespace), tmp_path / "second", instance="i-1") as second:
            second.start()
            eventually(lambda: tasks(first) == tasks(second) == 1, "each has a task", DEADLINE)
            assert second.close(DEADLINE, leave_group=leaves)
            assert second.state is ClientState.NOT_RUNNING
            assert members(first) == {first.instance, *(() if leaves else (second.instance,))}
        if leaves:
            assert "not taken out" not in caplog.text
            eventually(lambda: tasks(first) == 2, "the other one has both tasks", DEADLINE)
            send(bootstrap, f"{namespace}-orders", [(user, {"amount": 1}) for user in USERS])
            until_done(first, [f"{namespace}-orders"])
            with first.store(StoreQueryParameters("totals")).all() as entries:
                assert {key: value["total"] for key, value in entries} == dict.fromkeys(USERS, 2)


def test_a_client_that_has_hardly_started_closes_all_the_same(broker: Any, namespace: str, tmp_path: Path) -> None:
    bootstrap = broker.bootstrap_servers
    make_topics(bootstrap, **{f"{namespace}-orders": 1, f"{namespace}-totals": 1})
    with client(bootstrap, namespace, totals(namespace), tmp_path) as made:
        made.start()
        assert made.close(DEADLINE, leave_group=True)
        assert made.state is ClientState.NOT_RUNNING
