"""The life of a pod's client: start, a signal or an error, the close within the grace period, the last word."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import replace
from pathlib import Path

from streams_runtime.cli.process import exit_code, last_word, spare_what_is_loaded
from streams_runtime.cli.termination import write_termination
from streams_runtime.cli.told import ToldFile
from streams_runtime.client import StreamsClient
from streams_runtime.errors import told
from streams_runtime.kubernetes.api import PodStatusApi
from streams_runtime.kubernetes.conditions import ClientView, conditions
from streams_runtime.kubernetes.reporter import Reporter
from streams_runtime.kubernetes.view import RecordsLeft, view_of
from streams_runtime.states import ClientState

_LISTENER_SECONDS = 1.0
"""For the state's listener, which may be called a moment after the state is there."""

_LOGGER = logging.getLogger("streams_runtime.pod")


class Life:
    """A client from its start to its last word. `live` is called once, on the main thread."""

    def __init__(
        self,
        client: StreamsClient,
        left: RecordsLeft,
        api: PodStatusApi,
        stop: threading.Event,
        close_seconds: float,
        termination: Path,
        told_file: Path | None = None,
    ) -> None:
        """`told_file`: see cli/told.py."""
        self._client = client
        self._stop = stop
        self._close_seconds = close_seconds
        self._termination = termination
        self._told = ToldFile(told_file)
        self._note = ""
        self._left = left
        self._failing = threading.Event()
        self._reporter = Reporter(api, lambda: conditions(self._view()))

    def live(self) -> tuple[int, bool]:
        """The exit code, and whether the process can end in an orderly way: not while threads are stuck."""
        client = self._client
        client.set_state_listener(self._moved)
        self._reporter.start()
        if not self._stop.is_set():
            client.start()
        while not client.wait_for_end(0.2):
            self._told.pass_on(client)
            if self._stop.is_set() or client.state is ClientState.PENDING_ERROR:
                self._close()
                break
        state, error = client.state, client.error
        if error is not None:
            self._failing.wait(_LISTENER_SECONDS)
        write_termination(self._termination, last_word(state, error, client.shutdown_requested), self._note)
        self._reporter.finish()
        if error is not None:
            _LOGGER.error("%s: %s: %s", state, type(error).__name__, told(error))
        return exit_code(state), not self._note

    def _view(self) -> ClientView:
        return view_of(self._client, lambda: self._left.total, self._note)

    def _moved(self, new: ClientState, _old: ClientState) -> None:
        """Freeing everything may take a moment only, and PENDING_ERROR is to be seen before ERROR all the same."""
        spare_what_is_loaded(new)
        if new is ClientState.PENDING_ERROR:
            self._reporter.owe(conditions(replace(self._view(), state=new)))
            self._failing.set()
        else:
            self._reporter.wake()

    def _close(self) -> None:
        """End the client within the time that is left; say so where that fails."""
        deadline = time.monotonic() + self._close_seconds
        if self._client.state is not ClientState.PENDING_ERROR:
            self._client.close(self._close_seconds)
        if not self._client.wait_for_end(max(deadline - time.monotonic(), 0)):
            threads = ", ".join(f"{each.name} is {each.state}" for each in self._client.threads)
            self._note = (
                f"could not close within {self._close_seconds:g} s ({threads}). The process ends all the same; what was"
                " not committed is read again"
            )
            _LOGGER.error("%s", self._note)
