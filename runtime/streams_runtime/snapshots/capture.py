"""A checkpoint of a running store, taken when there is nothing to flush, so that processing does not wait for it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from streams_runtime.state.state_directory import CHECKPOINTS
from streams_runtime.state.store import LocalStore

_LOOK = 0.005  # seconds between two looks whether all is flushed; the gap between two batches is longer
_LOOKS = 50  # until what was written meanwhile is flushed, too
_LONGEST = 20.0  # seconds


class BusyStoreException(Exception):
    """The store was written to all the time; try again later."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A store's files in `folder`, which is the holder's to delete; the offset and topic id in them.

    `pause` is how long making the links took, in seconds: what processing waited for at most.
    """

    folder: Path
    offset: int | None
    topic_id: str | None
    pause: float


def checkpoint_folder(store_folder: Path) -> Path:
    """Where a checkpoint of a store lies, in its task's folder, since hard links need the same disk: another one each
    time, as an earlier life of the task may still be deleting its own.
    """
    return store_folder.parent.parent / CHECKPOINTS / f"{store_folder.name}.{uuid.uuid4().hex[:8]}"


def take_checkpoint(
    store: LocalStore,
    folder: Path,
    should_stop: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.perf_counter,
    sleep: Callable[[float], object] = time.sleep,
) -> Checkpoint | None:
    """A checkpoint of the store in `folder`, made in the gap between two writes; None when `should_stop` says so.

    Raises:
        BusyStoreException: there was no gap long enough.
        StoreClosed, ProcessorStateException, OSError: the store is closed, or the disk is full or damaged; there may
                be a part of the folder.
    """
    folder.parent.mkdir(exist_ok=True)
    end = clock() + _LONGEST
    while clock() < end:
        store.flush_soon()
        for _ in range(_LOOKS):
            if should_stop():
                return None
            began = clock()
            found = store.checkpoint(folder)
            if found is not None:
                return Checkpoint(folder, *found, clock() - began)
            sleep(_LOOK)
    raise BusyStoreException(f"store {store.folder} was written to without a pause for {_LONGEST:.0f} s")
