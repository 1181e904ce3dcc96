"""One started instance of this project, asked through its HTTP server."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import orjson
from bench_data import Totals
from bench_process import Child
from bench_verify import decode_lines

LOOK_S = 0.1
"""Seconds between two looks at an instance: too rare to slow it down."""


class Instance:
    """A running instance whose address appears in `endpoint_file`."""

    def __init__(self, child: Child, endpoint_file: Path) -> None:
        self.child = child
        self._endpoint_file = endpoint_file
        self._http = httpx.Client(timeout=60)
        self.url: str | None = None
        """Of its server; None until it is known."""

    def state(self) -> dict[str, Any] | None:
        """The instance's description of itself (GET /state), or None while it does not answer yet."""
        self.child.require_alive()
        if self.url is None:
            if not self._endpoint_file.is_file():
                return None
            self.url = orjson.loads(self._endpoint_file.read_bytes())["url"]
        try:
            answer = self._http.get(f"{self.url}/state")
        except httpx.TransportError:
            return None
        description: dict[str, Any] = answer.raise_for_status().json()
        return description

    def wait_for(self, what: str, reached: Callable[[dict[str, Any]], bool], limit_s: float) -> dict[str, Any]:
        """The first description for which `reached` holds.

        Raises TimeoutError after `limit_s`, and ChildFailedError when the instance has ended.
        """
        deadline = time.monotonic() + limit_s
        description: dict[str, Any] | None = None
        while time.monotonic() < deadline:
            description = self.state()
            if description is not None and reached(description):
                return description
            time.sleep(LOOK_S)
        raise TimeoutError(f"{self.child.name}: not {what} after {limit_s:.0f} s; last seen: {description}")

    def store(self, name: str) -> Totals:
        """All entries of a store, asked over HTTP."""
        with self._http.stream("GET", f"{self.url}/stores/{name}/all") as answer:
            answer.raise_for_status()
            return decode_lines(answer.iter_lines())

    def count(self, name: str) -> int:
        """A store's number of entries, asked over HTTP."""
        answer = self._http.get(f"{self.url}/stores/{name}/count").raise_for_status()
        return int(answer.json()["count"])

    def close(self) -> None:
        """End the instance in order; anything but exit code 0 raises ChildFailedError."""
        self._http.close()
        self.child.stop()


class CutOffError(Exception):
    """An answer that ended before its last line: an instance of Kafka Streams cuts it off when it rebalances."""


def store_entries(url: str, name: str) -> Iterator[tuple[bytes, bytes]]:
    """Keys and JSON values of one instance's part of a store, one at a time.

    Raises:
        CutOffError: the answer is not whole.
        HTTPError: there is none.
    """
    records, told = 0, None
    with httpx.stream("GET", f"{url}/stores/{name}/all", timeout=60) as answer:
        for line in answer.raise_for_status().iter_lines():
            try:
                entry = orjson.loads(line)
            except orjson.JSONDecodeError as error:
                raise CutOffError(f"the answer ends within record {records}: {line!r}") from error
            told = entry.get("complete")
            if told is None:
                records += 1
                yield entry["key"].encode(), orjson.dumps(entry["value"])
    if told != {"records": records}:
        raise CutOffError(f"the answer of {records} records is not whole: {told}")
