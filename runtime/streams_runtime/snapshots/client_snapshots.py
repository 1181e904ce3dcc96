"""The snapshots of one client: what makes them, and what fetches them."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from streams_runtime.snapshots.bucket import open_bucket
from streams_runtime.snapshots.snapshot_account import described
from streams_runtime.snapshots.snapshot_fetcher import SnapshotFetcher
from streams_runtime.snapshots.snapshot_settings import SnapshotSettings
from streams_runtime.snapshots.snapshotter import Ends, Snapshotter


@dataclass(frozen=True, slots=True)
class ClientSnapshots:
    """Both know the bucket, and open it when they first need it."""

    snapshotter: Snapshotter
    fetcher: SnapshotFetcher

    def describe(self) -> dict[str, Any]:
        """What `/state` says of them."""
        return described(self.snapshotter.accounts, self.snapshotter.totals, self.fetcher.totals, time.time())


def client_snapshots(
    settings: SnapshotSettings, application: str, instance: str, ends: Ends, environment: Mapping[str, str] = os.environ
) -> ClientSnapshots:
    """Those of an instance; nothing is started, and no bucket is opened."""
    opening = partial(open_bucket, settings.url, environment)
    return ClientSnapshots(Snapshotter(application, instance, settings, opening, ends), SnapshotFetcher(opening))
