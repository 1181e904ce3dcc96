"""The lifecycle of a pod's client: start, a signal or an error, the close within the grace period, the report."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import replace
from pathlib import Path

from streams_runtime.cli.process.client_process import exit_code, freeze_loaded_objects, termination_document
from streams_runtime.cli.process.pause_request import PAUSE_FILE, PauseFile
from streams_runtime.cli.process.shutdown_request import ShutdownRequestFile
from streams_runtime.cli.process.termination import write_termination
from streams_runtime.client import StreamsClient
from streams_runtime.errors import message_of
from streams_runtime.kubernetes.client_view import RecordsLeft, view_of
from streams_runtime.kubernetes.pod_conditions import ANNOTATION_LEAVE, ClientView, conditions
from streams_runtime.kubernetes.pod_status_api import PodStatusApi
from streams_runtime.kubernetes.reporter import Reporter
from streams_runtime.states import ClientState

_LISTENER_SECONDS = 1.0
"""For the state's listener, which may be called a moment after the state is there."""

_ASK_SECONDS = 2.0
"""For the API server to say whether the pod is removed for good."""

_LOGGER = logging.getLogger("streams_runtime.pod")


class PodLifecycle:
    """A client from its start to its termination message. `run` is called once, on the main thread."""

    def __init__(
        self,
        client: StreamsClient,
        left: RecordsLeft,
        api: PodStatusApi,
        stop: threading.Event,
        close_seconds: float,
        termination: Path,
        request_file: Path | None = None,
    ) -> None:
        """`request_file`: see cli/process/shutdown_request.py; the one of a pause is beside it."""
        self._client = client
        self._stop = stop
        self._close_seconds = close_seconds
        self._termination = termination
        self._request_file = ShutdownRequestFile(request_file)
        self._pause_file = PauseFile(request_file and request_file.with_name(PAUSE_FILE))
        self._late_note = ""
        self._left = left
        self._annotations = PodStatusApi(api.access, api.pod)  # beside the reporter's, which has a thread of its own
        self._failing = threading.Event()
        self._reporter = Reporter(api, lambda: conditions(self._view()))

    def run(self) -> tuple[int, bool]:
        """Run the client to its end. Returns the exit code, and whether no thread is stuck, so that Python can end."""
        client = self._client
        client.set_state_listener(self._on_state)
        self._pause_file.pass_on(client)
        self._reporter.start()
        if not self._stop.is_set():
            client.start()
        while not client.wait_for_end(0.2):
            self._request_file.pass_on(client)
            freeze_loaded_objects(client.spark_ready)
            if self._pause_file.pass_on(client):
                _LOGGER.info("paused: no records are processed" if client.is_paused else "resumed")
                self._reporter.wake()
            if self._stop.is_set() or client.state is ClientState.PENDING_ERROR:
                self._close()
                break
        state, error = client.state, client.error
        if error is not None:
            self._failing.wait(_LISTENER_SECONDS)
        write_termination(
            self._termination, termination_document(state, error, client.shutdown_requested), self._late_note
        )
        self._reporter.finish()
        if error is not None:
            _LOGGER.error("%s: %s: %s", state, type(error).__name__, message_of(error))
        return exit_code(state), not self._late_note

    def _view(self) -> ClientView:
        seen = view_of(self._client, lambda: self._left.total + self._client.warm_up_remaining, self._late_note)
        return replace(seen, paused=self._pause_file.paused)

    def _on_state(self, new: ClientState, _old: ClientState) -> None:
        """Report the state. PENDING_ERROR is reported before ERROR, however soon that follows."""
        if new is ClientState.PENDING_ERROR:
            self._reporter.owe(conditions(replace(self._view(), state=new)))
            self._failing.set()
        else:
            self._reporter.wake()

    def _close(self) -> None:
        """End the client within the time that is left; say so where that fails."""
        deadline = time.monotonic() + self._close_seconds
        if self._client.state is not ClientState.PENDING_ERROR:
            leaves = self._annotations.annotation(ANNOTATION_LEAVE, _ASK_SECONDS) == "true"
            self._client.close(self._close_seconds, leave_group=leaves)
        if not self._client.wait_for_end(max(deadline - time.monotonic(), 0)):
            threads = ", ".join(f"{each.name} is {each.state}" for each in self._client.threads)
            self._late_note = (
                f"could not close within {self._close_seconds:g} s ({threads}). The process ends all the same; what was"
                " not committed is read again"
            )
            _LOGGER.error("%s", self._late_note)
