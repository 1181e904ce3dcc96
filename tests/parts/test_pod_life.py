"""The life of a pod's client: what a signal, an error and a close that takes too long come to."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pod_status_server import PodStatusServer, access_to, pod_status_server
from waiting import eventually

from streams_operator import names
from streams_runtime.cli.process.client_process import EXIT_LATE
from streams_runtime.cli.process.pod_lifecycle import PodLifecycle
from streams_runtime.cli.process.shutdown_request import encode_request
from streams_runtime.errors import ProducerException, ShutdownRequestedException
from streams_runtime.kubernetes.client_view import RecordsLeft
from streams_runtime.kubernetes.pod_status_api import PodIdentity, PodStatusApi
from streams_runtime.states import CLIENT, EXIT_ERROR, EXIT_NOT_RUNNING, ClientState, StateMachine


class PlayedClient:
    """A client that goes where the test says, and closes as far as `closing_reaches`."""

    def __init__(self, closing_reaches: ClientState = ClientState.NOT_RUNNING) -> None:
        self.machine = StateMachine(CLIENT, "played")
        self.error: BaseException | None = None
        self.threads = [SimpleNamespace(name="t-1", state="RUNNING", tasks=SimpleNamespace(tasks={}))]
        self.shutdown_requested = False
        self.spark_ready = True
        self.closing_reaches = closing_reaches
        self.started = False
        self.is_paused = False
        self.paused_at_start: bool | None = None
        self.left_group: bool | None = None
        self.warm_up_remaining = 0

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False

    @property
    def state(self) -> ClientState:
        return self.machine.state

    def set_state_listener(self, listener: Callable[[ClientState, ClientState], None]) -> None:
        self.machine.add_listener(listener)

    def start(self) -> None:
        self.paused_at_start = self.is_paused
        self.started = True
        self.go(ClientState.REBALANCING, ClientState.RUNNING)

    def close(self, timeout: float, *, leave_group: bool = False) -> bool:
        self.left_group = leave_group
        self.go(ClientState.PENDING_SHUTDOWN, self.closing_reaches)
        return self.wait_for_end(timeout)

    def wait_for_end(self, timeout: float) -> bool:
        return self.machine.wait_for(lambda state: state in (ClientState.NOT_RUNNING, ClientState.ERROR), timeout)

    def fail(self, reaches: ClientState) -> None:
        self.error = ProducerException("the broker refused them")
        self.go(ClientState.PENDING_ERROR, reaches)

    def shut_down_with_application(self, request: ShutdownRequestedException) -> bool:
        self.error = request
        self.go(ClientState.PENDING_ERROR, ClientState.ERROR)
        return True

    def go(self, *states: ClientState) -> None:
        for state in states:
            if state is not self.machine.state:
                self.machine.move(state)


class Pod:
    """One life on a thread of its own, which stands for the process's main thread."""

    def __init__(self, client: Any, server: PodStatusServer, folder: Path) -> None:
        self.client = client
        self.server = server
        self.stop = threading.Event()
        self.file = folder / "termination-log"
        self.ended: list[tuple[int, bool]] = []
        api = PodStatusApi(access_to(server.url, folder), PodIdentity("orders-0", "shop"))
        self.told = folder / "told"
        self.pause = folder / "paused"
        life = PodLifecycle(client, RecordsLeft(), api, self.stop, 0.2, self.file, self.told)
        self._thread = threading.Thread(target=lambda: self.ended.append(life.run()), daemon=True)

    def run(self) -> None:
        self._thread.start()

    def end(self) -> tuple[int, bool]:
        eventually(lambda: bool(self.ended), "the end of the client's life")
        return self.ended[0]

    @property
    def termination(self) -> dict[str, Any]:
        said: dict[str, Any] = json.loads(self.file.read_bytes())
        return said


def test_a_signal_closes_the_client_in_order(tmp_path: Path) -> None:
    with pod_status_server() as server:
        pod = Pod(PlayedClient(), server, tmp_path)
        pod.run()
        eventually(lambda: "RUNNING" in server.states, "RUNNING")
        pod.stop.set()
        assert pod.end() == (EXIT_NOT_RUNNING, True)
        assert server.states[-1] == "NOT_RUNNING"
    assert pod.termination == {"state": "NOT_RUNNING", "class": None, "message": ""}


def test_a_client_that_is_told_to_stop_before_its_start_never_starts(tmp_path: Path) -> None:
    with pod_status_server() as server:
        pod = Pod(PlayedClient(), server, tmp_path)
        pod.stop.set()
        pod.run()
        assert pod.end() == (EXIT_NOT_RUNNING, True)
    assert not pod.client.started


def test_an_error_is_the_last_word_and_the_exit_code(tmp_path: Path) -> None:
    with pod_status_server() as server:
        pod = Pod(PlayedClient(), server, tmp_path)
        pod.run()
        eventually(lambda: pod.client.state is ClientState.RUNNING, "RUNNING")
        pod.client.fail(reaches=ClientState.ERROR)
        assert pod.end() == (EXIT_ERROR, True)
        assert server.states[-2:] == ["PENDING_ERROR", "ERROR"], "both are seen, however short the first was"
        last = server.patches[-1].conditions
    assert (last["Running"]["reason"], last["Restartable"]["status"]) == ("ERROR", "False")
    assert pod.termination == {"state": "ERROR", "class": "ProducerException", "message": "the broker refused them"}


def test_a_request_for_the_end_of_the_application_stands_in_the_conditions_and_in_the_last_word(tmp_path: Path) -> None:
    with pod_status_server() as server:
        pod = Pod(PlayedClient(), server, tmp_path)
        pod.run()
        eventually(lambda: pod.client.state is ClientState.RUNNING, "RUNNING")
        pod.client.shutdown_requested = True
        pod.client.fail(reaches=ClientState.ERROR)
        assert pod.end() == (EXIT_ERROR, True)
        last = server.patches[-1].conditions
    assert (last["ShutdownRequested"]["status"], last["ShutdownRequested"]["reason"]) == ("True", "ProducerException")
    assert pod.termination["shutdown"] == "application"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (encode_request("orders-1", "LockException", "in use"), "asked for by orders-1: LockException: in use"),
        (b"we move house\n", "asked for by somebody: we move house"),
        (b'["odd"]', 'asked for by somebody: ["odd"]'),
    ],
)
def test_a_client_ends_in_error_when_its_told_file_says_so(tmp_path: Path, content: bytes, words: str) -> None:
    with pod_status_server() as server:
        pod = Pod(PlayedClient(), server, tmp_path)
        pod.told.write_bytes(b"")  # as the kubelet shows an annotation that is not there
        pod.run()
        eventually(lambda: "RUNNING" in server.states, "RUNNING, whatever an empty file says")
        pod.told.write_bytes(content)
        assert pod.end() == (EXIT_ERROR, True)
        assert "ShutdownRequested" not in server.patches[-1].conditions, "who is told asks nobody"
    assert pod.termination["class"] == "ShutdownRequestedException"
    assert words in pod.termination["message"]


def paused_condition(server: PodStatusServer) -> tuple[str, str] | None:
    """(status, reason) of what the pod said last of being paused; None: nothing yet."""
    said = [patch.conditions["Paused"] for patch in list(server.patches) if "Paused" in patch.conditions]
    return (said[-1]["status"], said[-1]["reason"]) if said else None


def test_a_client_is_paused_and_goes_on_as_its_file_says(tmp_path: Path) -> None:
    with pod_status_server() as server:
        pod = Pod(PlayedClient(), server, tmp_path)
        pod.pause.write_bytes(b"")  # as the kubelet writes an annotation that is not there
        pod.run()
        eventually(lambda: "RUNNING" in server.states, "RUNNING")
        assert pod.client.paused_at_start is False
        assert paused_condition(server) is None
        for content, said in (
            (b"true", ("True", "Paused")),
            (b"", ("False", "Resumed")),
            (b" true ", ("True", "Paused")),
        ):
            pod.pause.write_bytes(content)
            eventually(lambda said=said: paused_condition(server) == said, f"the pod says {said}")
            assert pod.client.is_paused is (said[0] == "True")
        pod.pause.unlink()  # nobody says anything any more
        pod.stop.set()
        assert pod.end() == (EXIT_NOT_RUNNING, True)
        assert pod.client.is_paused


def test_a_client_of_a_paused_application_is_paused_before_its_start(tmp_path: Path) -> None:
    (tmp_path / "paused").write_bytes(b"true")
    with pod_status_server() as server:
        pod = Pod(PlayedClient(), server, tmp_path)
        pod.run()
        eventually(lambda: paused_condition(server) == ("True", "Paused"), "the pod says that it is paused")
        eventually(lambda: pod.client.started, "the client starts, which may be after the pod says so")
        assert pod.client.paused_at_start is True
        pod.stop.set()
        pod.end()


@pytest.mark.parametrize(
    ("annotations", "leaves"), [({}, False), ({names.ANNOTATION_LEAVE: "true"}, True), ({"other": "true"}, False)]
)
def test_a_pod_that_is_removed_for_good_leaves_the_group(
    tmp_path: Path, annotations: dict[str, str], leaves: bool
) -> None:
    with pod_status_server() as server:
        pod = Pod(PlayedClient(), server, tmp_path)
        pod.run()
        eventually(lambda: "RUNNING" in server.states, "RUNNING")
        server.annotations = annotations  # just before the pod is deleted
        pod.stop.set()
        assert pod.end() == (EXIT_NOT_RUNNING, True)
        assert pod.client.left_group is leaves
        (look,) = server.looks
        assert look.body == {}


def test_an_api_server_that_does_not_answer_keeps_no_pod_from_closing(tmp_path: Path) -> None:
    with pod_status_server() as server:
        pod = Pod(PlayedClient(), server, tmp_path)
        pod.run()
        eventually(lambda: "RUNNING" in server.states, "RUNNING")
        server.annotations = {names.ANNOTATION_LEAVE: "true"}
        server.silent.set()
        pod.stop.set()
        assert pod.end() == (EXIT_NOT_RUNNING, True)
        assert pod.client.left_group is False


def test_a_close_that_takes_too_long_is_said_and_counts_as_a_crash(tmp_path: Path) -> None:
    with pod_status_server() as server:
        pod = Pod(PlayedClient(closing_reaches=ClientState.PENDING_SHUTDOWN), server, tmp_path)
        pod.run()
        eventually(lambda: pod.client.state is ClientState.RUNNING, "RUNNING")
        pod.stop.set()
        assert pod.end() == (EXIT_LATE, False)
        last = server.patches[-1].conditions
    assert last["Running"]["reason"] == "PENDING_SHUTDOWN"
    assert last["Running"]["message"].startswith("could not close within 0.2 s (t-1 is RUNNING)")
    assert last["Restartable"]["status"] == "True"
    assert pod.termination["state"] == "PENDING_SHUTDOWN"
    assert pod.termination["message"] == last["Running"]["message"]


def test_an_error_that_can_not_be_closed_down_is_an_error_all_the_same(tmp_path: Path) -> None:
    with pod_status_server() as server:
        pod = Pod(PlayedClient(), server, tmp_path)
        pod.run()
        eventually(lambda: pod.client.state is ClientState.RUNNING, "RUNNING")
        pod.client.fail(reaches=ClientState.PENDING_ERROR)
        assert pod.end() == (EXIT_ERROR, False)
        assert server.patches[-1].conditions["Restartable"]["reason"] == "ProducerException"
    assert pod.termination["class"] == "ProducerException"
    assert pod.termination["message"].startswith("the broker refused them; could not close within")


def test_the_end_is_known_without_an_api_server(tmp_path: Path) -> None:
    server = PodStatusServer(url="http://127.0.0.1:1")
    pod = Pod(PlayedClient(), server, tmp_path)
    pod.stop.set()
    pod.run()
    assert pod.end() == (EXIT_NOT_RUNNING, True)
    assert pod.termination["state"] == "NOT_RUNNING"


STUCK = """
import sys, threading
from concurrent.futures import ThreadPoolExecutor
from streams_runtime.cli.process.client_process import leave
ThreadPoolExecutor(1).submit(threading.Event().wait)
print("said", flush=False)
leave({code}, {orderly})
"""


def test_a_stuck_thread_does_not_keep_the_process_from_its_end() -> None:
    command = [sys.executable, "-c", STUCK.format(code=EXIT_LATE, orderly=False)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert (ended.returncode, ended.stdout) == (EXIT_LATE, "said\n"), ended.stderr
