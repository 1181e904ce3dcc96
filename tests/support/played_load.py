"""Played pods that answer `/state/figures` as instances under load do."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from operator_kit import Kubelet

from streams_operator import names

_NETWORK = "127.77.0"  # pods answer at one port, so each has an address of this machine's own


class PlayedLoad:
    """Records that come in for two tasks, and instances that process so many a second each.

    `asked`: how often pods were asked for it.
    """

    def __init__(self, kubelet: Kubelet, name: str, arrival: float, rate: float) -> None:
        self.arrival, self.rate = arrival, rate
        self._kubelet, self._name = kubelet, name
        self.asked = 0
        self._lock = threading.Lock()
        self._at = time.monotonic()
        self._lag, self._done = [0.0, 0.0], [0.0, 0.0]

    def read_anew(self) -> None:
        """A reset to the earliest offsets: all that was processed waits again."""
        with self._lock:
            self._lag = [lag + done for lag, done in zip(self._lag, self._done, strict=True)]
            self._done = [0.0, 0.0]

    def figures(self, ordinal: int) -> dict[str, object]:
        """The answer of one pod."""
        with self._lock:
            self.asked += 1
            owners = self._owners()
            self._go_on(owners)
            mine = [task for task, owner in enumerate(owners) if owner == ordinal]
            return {
                "state": "RUNNING",
                "tasks": [{"id": f"0_{task}", "state": "RUNNING"} for task in mine],
                "standbys": [],
                "lag": [{"position": round(self._done[task]), "lag": round(self._lag[task])} for task in mine],
                "restoration": [],
            }

    def _owners(self) -> list[int]:
        pods = [pod["metadata"] for pod in self._kubelet.pods().values()]
        there = sorted(int(pod["name"].rpartition("-")[2]) for pod in pods if "deletionTimestamp" not in pod)
        return [there[task % len(there)] for task in range(2)] if there else [0, 0]

    def _go_on(self, owners: list[int]) -> None:
        seconds, self._at = time.monotonic() - self._at, time.monotonic()
        for task, owner in enumerate(owners):
            came = self.arrival * seconds / 2
            can = self.rate * seconds / owners.count(owner)
            done = min(self._lag[task] + came, can)
            self._lag[task] += came - done
            self._done[task] += done


@contextmanager
def played_load(kubelet: Kubelet, name: str, pods: int, arrival: float, rate: float) -> Iterator[PlayedLoad]:
    """Pods NAME-0 to NAME-(pods - 1) answer from here on, once they are made."""
    load = PlayedLoad(kubelet, name, arrival, rate)
    with ExitStack() as stack:
        for ordinal in range(pods):
            address = f"{_NETWORK}.{ordinal + 1}"
            server = ThreadingHTTPServer((address, names.QUERY_PORT), _answering(load, ordinal))
            stack.callback(server.server_close)
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()
            stack.callback(server.shutdown)
            kubelet.give_address(f"{name}-{ordinal}", address)
        yield load


def _answering(load: PlayedLoad, ordinal: int) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(load.figures(ordinal)).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    return Handler
