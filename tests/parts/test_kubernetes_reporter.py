"""The reporter: what it sends over time, and what it does while the API server is away or refuses."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pod_status_server import PodStatusServer, access_to, pod_status_server
from waiting import eventually

from streams_runtime.kubernetes.pod_conditions import ClientView, Failure, conditions
from streams_runtime.kubernetes.pod_status_api import Answer, PodIdentity, PodStatusApi, Result, in_cluster, result_of
from streams_runtime.kubernetes.reporter import Reporter
from streams_runtime.states import ClientState

POD = PodIdentity("orders-0", "shop", "uid-1")


class Stage:
    """A client whose view the test sets, a clock that the test turns, and an API that remembers."""

    def __init__(self) -> None:
        self.view = ClientView(ClientState.CREATED)
        self.now = 1000.0
        self.looks = 0
        self.sent: list[tuple[float, str, str]] = []
        self.reporter = Reporter(self, self.look, lambda: self.now, lambda: 0.5)

    def look(self) -> tuple[Any, ...]:
        self.looks += 1
        return conditions(self.view)

    def patch(self, items: Sequence[Mapping[str, Any]], timeout: float) -> Result:
        self.sent.append((self.now, items[0]["reason"], items[1]["message"]))
        return Result(Answer.ACCEPTED)

    def close(self) -> None:
        pass

    def at(self, seconds: float) -> None:
        """Turn the clock and wait until the reporter has looked twice: it has acted on what it saw first by then."""
        self.now = 1000 + seconds
        if not self.looks:
            self.reporter.start()
        for _ in range(2):
            seen = self.looks
            self.reporter.wake()
            eventually(lambda seen=seen: self.looks > seen, "the reporter looks")


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = Stage()
    yield made
    made.reporter.finish()


def test_states_that_pass_within_half_a_second_are_reported_as_one(stage: Stage) -> None:
    stage.at(0)
    for state in (ClientState.REBALANCING, ClientState.RUNNING, ClientState.REBALANCING):
        stage.view = ClientView(state)
        stage.at(0.4)
    assert stage.sent == [(1000, "CREATED", "0 records left")]
    stage.at(0.5)
    assert [state for _, state, _ in stage.sent] == ["CREATED", "REBALANCING"]


def test_counts_are_reported_every_five_seconds_and_a_state_at_once(stage: Stage) -> None:
    stage.view = ClientView(ClientState.REBALANCING, restoring_tasks=1, records_left=1000)
    stage.at(0)
    for second in range(1, 12):
        stage.view = ClientView(ClientState.REBALANCING, restoring_tasks=1, records_left=1000 - second)
        stage.at(second)
    stage.view = ClientView(ClientState.RUNNING, running_tasks=1)
    stage.at(11.5)
    assert [(at - 1000, left) for at, _, left in stage.sent[-4:]] == [
        (0, "1000 records left"),
        (5, "995 records left"),
        (10, "990 records left"),
        (11.5, "0 records left"),
    ]


def test_an_idle_client_is_reported_once(stage: Stage) -> None:
    for second in (0, 10, 100, 100_000):
        stage.at(second)
    assert len(stage.sent) == 1


def test_the_last_word_does_not_wait_for_its_turn(stage: Stage) -> None:
    stage.at(0)
    stage.view = ClientView(ClientState.NOT_RUNNING)
    assert stage.reporter.finish()
    assert [state for _, state, _ in stage.sent] == ["CREATED", "NOT_RUNNING"]


def test_what_is_owed_is_seen_in_its_order_whatever_the_client_is_by_then(stage: Stage) -> None:
    stage.at(0)
    failure = Failure("LockException", "in use")
    stage.view = ClientView(ClientState.ERROR, failure=failure)
    for state in (ClientState.REBALANCING, ClientState.PENDING_ERROR):
        stage.reporter.owe(conditions(ClientView(state, failure=failure)))
    stage.at(0.1)
    assert [state for _, state, _ in stage.sent] == ["CREATED", "REBALANCING", "PENDING_ERROR"]
    assert stage.reporter.finish()
    assert [state for _, state, _ in stage.sent][2:] == ["PENDING_ERROR", "ERROR"]


# --- over HTTP


@contextmanager
def reporting(
    server: PodStatusServer, folder: Path, view: ClientView | None = None
) -> Iterator[tuple[Reporter, list[ClientView]]]:
    """A reporter that talks to the server, and a list whose last view it reports."""
    views = [view or ClientView(ClientState.RUNNING)]
    api = PodStatusApi(access_to(server.url, folder), POD)
    reporter = Reporter(api, lambda: conditions(views[-1]), spread=lambda: 0.0)
    reporter.start()
    try:
        yield reporter, views
    finally:
        reporter.finish(0.5)


def test_a_patch_is_merged_by_type_into_the_status_of_this_very_pod(tmp_path: Path) -> None:
    failed = ClientView(ClientState.ERROR, failure=Failure("ProducerException", "no"))
    with pod_status_server() as server, reporting(server, tmp_path, failed) as (reporter, _):
        assert reporter.finish()
    [patch] = server.patches
    assert patch.path.partition("?")[0] == "/api/v1/namespaces/shop/pods/orders-0/status"
    assert patch.content_type == "application/strategic-merge-patch+json"
    assert set(patch.body) == {"metadata", "status"}
    assert patch.body["metadata"] == {"uid": "uid-1"}
    assert set(patch.body["status"]) == {"conditions"}
    assert patch.conditions["Running"]["status"] == "False"
    assert patch.conditions["Restartable"] | {"lastTransitionTime": ""} == {
        "type": "streamsoperator.io/Restartable",
        "status": "False",
        "reason": "ProducerException",
        "message": "no",
        "lastTransitionTime": "",
    }


@pytest.mark.parametrize("status", [401, 409, 429, 500, 503, 504])
def test_a_fault_that_passes_is_tried_again_and_told_once(
    status: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "streams_runtime.kubernetes")
    with pod_status_server() as server:
        server.answer = lambda n: (status, "not now", {}) if n < 3 else (200, "", {})
        with reporting(server, tmp_path):
            eventually(lambda: len(server.patches) == 3, "two tries and the one that is taken")
            eventually(lambda: "reported again" in caplog.text, "a word about the recovery")
    warnings = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warnings) == 1
    assert f"{status}: not now" in warnings[0].getMessage()
    assert warnings[0].exc_info is None


def test_a_server_that_is_away_gets_the_latest_conditions_when_it_is_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pod_status_server() as server:
        port = int(server.url.rpartition(":")[2])
    with reporting(server, tmp_path, ClientView(ClientState.REBALANCING)) as (reporter, views):
        eventually(lambda: "did not answer" in caplog.text, "a word about the outage")
        views.append(ClientView(ClientState.RUNNING))
        reporter.wake()
        with pod_status_server(port) as back:
            eventually(lambda: bool(back.states), "the conditions arrive")
            assert back.states == ["RUNNING"]


@pytest.mark.parametrize(("status", "remedy"), [(403, "pods/status of orders-0"), (404, "has been removed")])
def test_a_refusal_is_told_once_with_what_to_do(
    status: int, remedy: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pod_status_server() as server:
        server.answer = lambda _: (status, 'pods "orders-0" …', {})
        with reporting(server, tmp_path) as (reporter, views):
            eventually(lambda: bool(caplog.records), "a word about the refusal")
            for state in (ClientState.REBALANCING, ClientState.RUNNING, ClientState.REBALANCING):
                views.append(ClientView(state))
                reporter.wake()
            assert len(server.patches) == 1
            [record] = caplog.records
            assert remedy in record.getMessage()
            assert not reporter.finish(0.3)


def test_a_refusal_after_an_outage_is_told_too(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with pod_status_server() as server:
        server.answer = lambda n: (503, "away", {}) if n == 1 else (403, "forbidden", {})
        with reporting(server, tmp_path):
            eventually(lambda: len(caplog.records) == 2, "both are told")
    assert "403: forbidden" in caplog.records[1].getMessage()


def test_a_token_that_was_rotated_is_used(tmp_path: Path) -> None:
    with pod_status_server() as server:
        server.answer = lambda n: (401, "expired", {}) if server.patches[n - 1].token == "first" else (200, "", {})
        with reporting(server, tmp_path):
            eventually(lambda: bool(server.patches), "a patch with the old token")
            (tmp_path / "token").write_text("second\n")
            eventually(lambda: server.patches[-1].token == "second", "a patch with the new token")


def test_a_server_that_never_answers_holds_nobody_up_longer_than_the_last_word_may(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pod_status_server() as server:
        server.silent.set()
        with reporting(server, tmp_path) as (reporter, views):
            blocked = threading.Event()

            def change_state() -> None:
                views.append(ClientView(ClientState.NOT_RUNNING))
                reporter.wake()
                blocked.set()

            threading.Thread(target=change_state, daemon=True).start()
            assert blocked.wait(1), "a change of state waits for the API server"
            started = time.monotonic()
            assert not reporter.finish(0.3)
            assert time.monotonic() - started < 30, "the last word has no bound"
    assert "exit code" in caplog.text


def test_the_last_word_is_tried_until_it_is_taken(tmp_path: Path) -> None:
    with pod_status_server() as server:
        server.answer = lambda n: (200, "", {}) if n in (1, 4) else (500, "", {})
        with reporting(server, tmp_path) as (reporter, views):
            eventually(lambda: bool(server.patches), "the first report")
            views.append(ClientView(ClientState.NOT_RUNNING))
            assert reporter.finish(60)
        assert server.patches[-1].conditions["Running"]["reason"] == "NOT_RUNNING"


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (422, 'Pod "orders-0" is invalid: metadata.uid: Invalid value: "1": field is immutable'),
        (409, "Precondition failed: UID in precondition: 1, UID in object meta: 2"),
    ],
)
def test_a_pod_that_was_replaced_is_not_written_to(status: int, message: str) -> None:
    answered = result_of(status, message, None, POD)
    assert answered.answer is Answer.REFUSED
    assert "replaced" in answered.text


def test_a_conflict_with_another_writer_is_tried_again() -> None:
    assert result_of(409, "the object has been modified", None, POD).answer is Answer.LATER


def test_the_api_server_is_where_the_environment_says(tmp_path: Path) -> None:
    assert in_cluster({"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "6443"}, tmp_path).url == (
        "https://10.0.0.1:6443"
    )
    assert in_cluster({"KUBERNETES_SERVICE_HOST": "fd00::1"}, tmp_path).url == "https://[fd00::1]:443"


def test_a_missing_token_is_an_outage_that_names_the_file(tmp_path: Path) -> None:
    api = PodStatusApi(access_to("http://127.0.0.1:1", tmp_path), POD)
    (tmp_path / "token").unlink()
    answered = api.patch([], 1)
    assert answered.answer is Answer.LATER
    assert str(tmp_path / "token") in answered.text
