"""What tests of snapshots share: buckets in memory, folders of files, and actors that take turns at a bucket."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from obstore.store import MemoryStore

from streams_runtime.snapshots.bucket import Bucket
from streams_runtime.snapshots.manifest import StoreKey
from streams_runtime.snapshots.snapshot_writer import Contents, SnapshotWriter
from streams_runtime.snapshots.throttle import Throttle

KEY = StoreKey("app", "totals", 3)


def memory_bucket() -> Bucket:
    return Bucket(MemoryStore(), "memory://")


def contents_at(offset: int, as_of: int = 1000, topic_id: str = "topic-1") -> Contents:
    return Contents(
        "0_3", "app-totals-changelog", topic_id, offset, {"orders-3": 7}, "key-value, version 1", as_of, as_of
    )


def writer_of(bucket: Bucket, name: str = "one", key: StoreKey = KEY) -> SnapshotWriter:
    return SnapshotWriter(bucket, key, name, Throttle(float("inf")), id=f"{name}-id")


def folder_of(root: Path, files: Mapping[str, bytes]) -> Path:
    """A folder with these files and no others."""
    root.mkdir(parents=True, exist_ok=True)
    for each in root.iterdir():
        each.unlink()
    for name, body in files.items():
        (root / name).write_bytes(body)
    return root


class Killed(BaseException):
    """The process ends here."""


class Actor:
    """Code that stops before each request to the bucket until it is let on, as a process that the kernel schedules."""

    def __init__(self, name: str, body: Callable[[], None]) -> None:
        self.name = name
        self.error: BaseException | None = None
        self.ended = False
        self._go, self._stands = threading.Semaphore(0), threading.Semaphore(0)
        self._kill: str | None = None
        self._thread = threading.Thread(target=self._run, args=(body,), name=name, daemon=True)
        self._thread.start()
        self._stands.acquire()

    def _run(self, body: Callable[[], None]) -> None:
        _HERE.actor = self
        try:
            self.pause()
            body()
        except Killed:
            pass
        except BaseException as error:
            self.error = error
        finally:
            self.ended = True
            self._stands.release()

    def pause(self) -> str | None:
        self._stands.release()
        self._go.acquire()
        if self._kill == "before":
            raise Killed
        return self._kill

    def step(self, kill: str | None = None) -> None:
        """Let it do one request; with `kill` its process ends `before` or `after` that."""
        self._kill = kill
        self._go.release()
        self._stands.acquire()


_HERE = threading.local()


class SteppedBucket(Bucket):
    """A bucket in memory at which actors take turns, request by request."""

    def __init__(self) -> None:
        super().__init__(MemoryStore(), "memory://")

    def create(self, path: str, body: bytes) -> bool:
        return self._turn(lambda: super(SteppedBucket, self).create(path, body))

    def write(self, path: str, chunks: Iterable[bytes]) -> None:
        whole = list(chunks)
        self._turn(lambda: super(SteppedBucket, self).write(path, whole))

    def read(self, path: str) -> bytes:
        return self._turn(lambda: super(SteppedBucket, self).read(path))

    def sizes(self, prefix: str) -> dict[str, int]:
        return self._turn(lambda: super(SteppedBucket, self).sizes(prefix))

    def delete(self, path: str) -> None:
        self._turn(lambda: super(SteppedBucket, self).delete(path))

    @staticmethod
    def _turn(request: Callable[[], Any]) -> Any:
        actor = getattr(_HERE, "actor", None)
        if actor is None:
            return request()
        kill = actor.pause()
        done = request()
        if kill == "after":
            raise Killed
        return done


def actors_of(bodies: Mapping[str, Callable[[], None]]) -> dict[str, Actor]:
    """One for each, standing before its first request."""
    return {name: Actor(name, body) for name, body in bodies.items()}
