"""One contestant's running instance, as every experiment sees it, whatever it is made of."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

import orjson
from bench_declared import Contestant
from bench_process import Child
from bench_runs import Place

LOOK_S = 0.1
T = TypeVar("T")
_TAIL = 65_536


@dataclass(frozen=True, slots=True)
class Launch:
    """What one instance is told. `topics` are by role: `orders`, `users`, `output`."""

    contestant: Contestant
    task: str
    application_id: str
    topics: Mapping[str, str]
    place: Place
    number: int = 0
    keep_state: bool = False
    """Start on the state folder that is there, instead of an empty one."""
    until_end: bool = False
    """The input is complete: a side that makes a difference of that may plan for it."""

    @property
    def own(self) -> Place:
        """The instance's own place."""
        return Place(self.place.folder / f"instance-{self.number}", self.place.bootstrap_servers)

    def made(self) -> Place:
        """The instance's own place, made for its start: without state, unless that is to be kept."""
        place = self.own
        if not self.keep_state:
            shutil.rmtree(place.state, ignore_errors=True)
        place.folder.mkdir(parents=True, exist_ok=True)
        return place

    @property
    def name(self) -> str:
        """What its process is called in logs and errors; a restarted one has a log of its own."""
        return f"{self.contestant.side}-{self.number}" + ("-restarted" if self.keep_state else "")

    @property
    def changelog_topic(self) -> str:
        """Of the store `totals`, as Kafka Streams and this project name it."""
        return f"{self.application_id}-totals-changelog"


@dataclass(frozen=True, slots=True)
class Seen:
    """What an instance says of itself; `moments` in seconds since the epoch.

    `created`, `running` (first), `first_record`, `last_record`, `restore_start`, `restore_end`, `closed`: those
    that came. `behind` says whether records are left whose results its stores do not have yet; of sides that say
    nothing of that it is False.
    """

    processed: int = 0
    restored: int = 0
    moments: Mapping[str, float] = field(default_factory=dict)
    details: Mapping[str, object] = field(default_factory=dict)
    behind: bool = False


class Client(Protocol):
    """A running instance."""

    child: Child

    def seen(self) -> Seen:
        """What it says now. Raises ChildFailedError when it has ended."""

    def stop(self) -> Seen:
        """End it in order and return its last word. Raises ChildFailedError when that fails."""

    def url(self) -> str | None:
        """Where its store is asked over HTTP; None until that is known."""


class Side(Protocol):
    """How instances of a side are started, and what is known of where it leaves its results."""

    commits: bool
    """Whether its progress is in the offsets of a consumer group called like the application."""
    changelog: bool
    """Whether its changelog has Kafka Streams' name and format."""

    def start(self, launch: Launch) -> Client:
        """Start an instance. Raises EnvironmentException when something that it needs is missing."""


class PrintingClient:
    """An instance that prints a JSON line now and then: `processed`, `restored`, `moments` in milliseconds."""

    def __init__(self, child: Child, endpoint: Path | None = None) -> None:
        self.child = child
        self._endpoint = endpoint

    def seen(self) -> Seen:
        """The last line that is whole."""
        self.child.require_alive()
        return self._last()

    def stop(self) -> Seen:
        """End it by SIGTERM."""
        self.child.stop()
        return self._last()

    def url(self) -> str | None:
        """From the file that it writes its address into."""
        if self._endpoint is None or not self._endpoint.is_file():
            return None
        return str(orjson.loads(self._endpoint.read_bytes())["url"])

    def _last(self) -> Seen:
        with self.child.output.open("rb") as file:
            file.seek(max(0, self.child.output.stat().st_size - _TAIL))
            lines = file.read().split(b"\n")[:-1]
        for line in reversed(lines):
            if line.startswith(b'{"processed"'):
                said = orjson.loads(line)
                moments = {name: at / 1000 for name, at in said["moments"].items()}
                return Seen(said["processed"], said["restored"], moments)
        return Seen()


def wait_until(what: str, look: Callable[[], T | None], limit_s: float, interval_s: float = LOOK_S) -> T:
    """The first that `look` gives which is not None. Raises TimeoutError after `limit_s`."""
    deadline = time.monotonic() + limit_s
    while (found := look()) is None:
        if time.monotonic() > deadline:
            raise TimeoutError(f"not {what} after {limit_s:.0f} s")
        time.sleep(interval_s)
    return found
