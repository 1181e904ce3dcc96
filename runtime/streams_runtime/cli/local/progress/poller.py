"""Polls the state of one instance's process, on a thread of its own."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import orjson

from streams_runtime.errors import ConfigException
from streams_runtime.query.client.client_http import QueryCredentials

_INTERVAL = 0.4  # seconds between two requests
_TIMEOUT = 3.0  # seconds for an answer; an instance that plans a batch on a busy machine is slow


class StatePoller:
    """Follows one process from its endpoint file to its /state, until `stop`."""

    def __init__(self, endpoint: Path, pid: int, token: Path | None = None) -> None:
        """An endpoint file of another process than `pid` is ignored. `token`: the file with the token for queries."""
        self._endpoint = endpoint
        self._pid = pid
        self._credentials = QueryCredentials(token_file=token)
        self._stopping = threading.Event()
        self.url: str | None = None
        self.described: Mapping[str, Any] | None = None
        """The last answer; None before the first."""
        threading.Thread(target=self._run, name=f"state-of-{pid}", daemon=True).start()

    def stop(self) -> None:
        """Stop polling. Does not wait."""
        self._stopping.set()

    def _run(self) -> None:
        with httpx.Client(trust_env=False, timeout=_TIMEOUT) as http:
            while not self._stopping.wait(_INTERVAL):
                if self.url is None:
                    self.url = self._find()
                if self.url is not None:
                    # No answer is nothing to report: the replica watches whether the process lives.
                    # Nor is one of a token that is just being renewed.
                    with contextlib.suppress(httpx.HTTPError, orjson.JSONDecodeError, ConfigException):
                        answer = http.get(f"{self.url}/state", headers=self._credentials.headers()).raise_for_status()
                        self.described = orjson.loads(answer.content)

    def _find(self) -> str | None:
        try:
            document = orjson.loads(self._endpoint.read_bytes())
        except FileNotFoundError:
            return None
        return str(document["url"]) if document["pid"] == self._pid else None
