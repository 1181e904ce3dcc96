"""Fetches snapshots for stores that have nothing, beside whoever restores them, and only as long as it is worth it."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from streams_runtime.snapshots.bucket import Bucket, BucketException, ObjectMissingException
from streams_runtime.snapshots.manifest import Manifest, StoreKey, UnreadableManifestException
from streams_runtime.snapshots.manifest_chain import numbers_of, read_one
from streams_runtime.snapshots.snapshot_account import FetchTotals
from streams_runtime.snapshots.snapshot_download import AbandonedException, DamagedSnapshotException, download
from streams_runtime.snapshots.usable_snapshots import Wanted, why_unusable

_LOGGER = logging.getLogger("streams_runtime.snapshots")
_AT_ONCE = 4  # snapshots that are fetched at a time; each has several connections
_PATIENCE = 15.0  # seconds for the first answer, and between any two
_SLOWEST = 2 * 1024 * 1024  # bytes a second; reading a changelog is faster than that
_AVOIDED = 60.0  # seconds for which a bucket that failed is not asked again
_TRIED = 5  # manifests of a store


@dataclass(slots=True, eq=False)
class Fetch:
    """A snapshot that is on its way. `manifest` is set once all of its files are in `folder` (see `is_over`)."""

    key: StoreKey
    wanted: Wanted
    folder: Path
    is_over: bool = False
    manifest: Manifest | None = None
    abandoned: bool = False
    began: float | None = None
    heard: float = 0.0
    came: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, count: int, now: float) -> None:
        """So many bytes have come."""
        with self._lock:
            self.came += count
            self.heard = now


class SnapshotFetcher:
    """Has at most a few snapshots on their way. Safe to use from any thread; no method waits for the bucket.

    A bucket that fails or stands still is left alone for a minute by all: stores read their changelogs meanwhile.
    """

    def __init__(
        self,
        open_bucket: Callable[[], Bucket],
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`clock` in seconds, `now` in seconds since 1970."""
        self._open_bucket = open_bucket
        self._clock = clock
        self._now = now
        self._lock = threading.Lock()
        self._waiting: list[Fetch] = []
        self._going: list[Fetch] = []
        self._avoided_until = 0.0
        self.totals = FetchTotals()
        """Others may read it."""

    def ask(self, key: StoreKey, wanted: Wanted, folder: Path) -> Fetch:
        """Fetch the newest usable snapshot of the store into `folder`; look at the Fetch by `is_through`."""
        fetch = Fetch(key, wanted, folder)
        with self._lock:
            self._waiting.append(fetch)
        self._go_on()
        return fetch

    def is_through(self, fetch: Fetch) -> bool:
        """Whether the fetch is over, with a manifest or without; one that takes too long is given up here."""
        self._go_on()
        return fetch.is_over

    def cancel(self, fetch: Fetch) -> None:
        """Nobody waits for it any more; what has come of it is deleted."""
        with self._lock:
            fetch.abandoned = fetch.is_over = True
            self._waiting = [each for each in self._waiting if each is not fetch]
            self._going = [each for each in self._going if each is not fetch]
        if fetch.manifest is not None:
            shutil.rmtree(fetch.folder, ignore_errors=True)

    def _go_on(self) -> None:
        with self._lock:
            now = self._clock()
            for fetch in [each for each in self._going if not each.is_over]:
                reason = _why_too_slow(fetch, now)
                if reason is not None:
                    fetch.abandoned = fetch.is_over = True
                    self._avoid(f"the snapshot of store {fetch.key} {reason}")
            self._going = [each for each in self._going if not each.is_over]
            if now < self._avoided_until:
                for fetch in self._waiting:
                    fetch.is_over = True
                self._waiting.clear()
            while self._waiting and len(self._going) < _AT_ONCE:
                fetch = self._waiting.pop(0)
                fetch.began = fetch.heard = now
                self._going.append(fetch)
                threading.Thread(target=self._run, args=(fetch,), name=f"snapshot-{fetch.key}", daemon=True).start()

    def _avoid(self, why: str) -> None:
        self._avoided_until = self._clock() + _AVOIDED
        _LOGGER.warning(
            "%s. Stores are restored from their changelogs, and the bucket is not asked again for %.0f s. Check"
            " spec.state.snapshots (url, secretRef), the bucket's rights and the network",
            why,
            _AVOIDED,
        )

    def _run(self, fetch: Fetch) -> None:
        found: Manifest | None = None
        try:
            found = self._fetched(fetch, self._open_bucket())
        except AbandonedException:
            pass
        except (BucketException, OSError) as error:
            with self._lock:
                if not fetch.abandoned:
                    self._avoid(f"the snapshot of store {fetch.key} can't be fetched: {error}")
        except Exception:
            _LOGGER.exception("the snapshot of store %s can't be fetched", fetch.key)
        if found is None:
            shutil.rmtree(fetch.folder, ignore_errors=True)  # before anybody hears that the fetch is over
        with self._lock:
            if not fetch.abandoned:
                fetch.manifest, fetch.is_over = found, True
                if found is not None:
                    self.totals.fetched += 1
                    self.totals.downloaded += found.size
        if found is not None and fetch.manifest is None:
            shutil.rmtree(fetch.folder, ignore_errors=True)

    def _fetched(self, fetch: Fetch, bucket: Bucket) -> Manifest | None:
        numbers = numbers_of(bucket, fetch.key)
        for number in numbers[:_TRIED]:
            try:
                manifest = read_one(bucket, fetch.key, number)
                reason = why_unusable(manifest, fetch.wanted, int(self._now() * 1000))
                if reason is None:
                    self._download(fetch, bucket, manifest)
                    return manifest
            except (UnreadableManifestException, DamagedSnapshotException, ObjectMissingException) as error:
                reason = str(error)
            if fetch.abandoned:
                raise AbandonedException
            with self._lock:
                self.totals.put_aside += 1
            _LOGGER.warning("snapshot %d of store %s is put aside: %s", number, fetch.key, reason)
        _LOGGER.info("store %s begins without a snapshot; its changelog has all that it needs", fetch.key)
        return None

    def _note(self, fetch: Fetch, count: int) -> None:
        fetch.note(count, self._clock())
        with self._lock:
            self.totals.received += count

    def _download(self, fetch: Fetch, bucket: Bucket, manifest: Manifest) -> None:
        began = self._clock()
        fetch.note(0, began)
        download(bucket, manifest, fetch.folder, lambda count: self._note(fetch, count), lambda: fetch.abandoned)
        seconds = max(self._clock() - began, 1e-3)
        _LOGGER.info(
            "snapshot %d of store %s, of %d bytes, came in %.1f s (%.0f MB/s); it has the changelog up to offset %d",
            manifest.number,
            fetch.key,
            manifest.size,
            seconds,
            manifest.size / seconds / 1e6,
            manifest.offset,
        )


def _why_too_slow(fetch: Fetch, now: float) -> str | None:
    assert fetch.began is not None, "it goes on"
    if now - fetch.heard > _PATIENCE:
        return f"is given up: nothing came for {now - fetch.heard:.0f} s"
    if fetch.came < (now - fetch.began - _PATIENCE) * _SLOWEST:
        return f"is given up: {fetch.came} bytes came in {now - fetch.began:.0f} s"
    return None
