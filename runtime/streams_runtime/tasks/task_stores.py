"""A task's stores, opened and closed together."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TypeVar

from streams_runtime.errors import ProcessorStateException, TaskCorruptedException
from streams_runtime.state.database.damaged_files import DAMAGED
from streams_runtime.state.open_store import AnyStore, open_store
from streams_runtime.state.state_directory import StateDirectory
from streams_runtime.state.store import LocalStore
from streams_runtime.topology.plan import SubTopology, TaskId

_LOGGER = logging.getLogger("streams_runtime.tasks")
S = TypeVar("S", bound=LocalStore)


def open_stores(sub: SubTopology, task: TaskId, directory: StateDirectory) -> dict[str, AnyStore]:
    """The task's stores by name; one with damaged files is set aside and opened anew, empty.

    Raises:
        ProcessorStateException: a store can't be opened; none is left open.
    """
    stores = {}
    directory.remove_unfinished(task)
    with ExitStack() as undo:
        for spec in sub.stores:
            folder = directory.store_folder(task, spec.name)
            measured = directory.measured.of(spec.name)
            opening = partial(open_store, spec, task.partition, folder, measured, directory.options)
            stores[spec.name] = store = open_sound(folder, directory, opening)
            undo.callback(store.close)
        undo.pop_all()
    return stores


def set_damaged_aside(stores: Mapping[str, AnyStore], directory: StateDirectory) -> None:
    """Move the folders of closed stores in which damage was found out of the way.

    Raises:
        ProcessorStateException: a folder can't be moved.
    """
    for folder, reason in damage_of(stores.values()).items():
        directory.quarantine(folder, reason)


def damage_of(stores: Iterable[AnyStore]) -> dict[Path, str]:
    """The folders of those stores in which damage was found, with RocksDB's words."""
    return DAMAGED.of(store.folder for store in stores)


def close_stores(stores: Mapping[str, AnyStore]) -> None:
    """Close all of them, whatever happens. May be called twice.

    A damaged store that can't be flushed loses nothing: it is restored when it is opened again.

    Raises:
        ProcessorStateException: a store could not be flushed.
    """
    with ExitStack() as closing:
        for store in stores.values():
            closing.callback(_close, store)


def open_sound(folder: Path, directory: StateDirectory, open: Callable[[], S]) -> S:
    """The store that `open` gives of the files in `folder`; damaged ones are set aside, and it begins empty.

    Raises:
        ProcessorStateException: it can't be opened.
    """
    try:
        # Damage that was found before, by a reader, may not show when the files are opened.
        reason = DAMAGED.of([folder]).get(folder)
        if reason is None:
            return open()
    except TaskCorruptedException as damage:
        reason = str(damage.__cause__)
    if not folder.is_dir():
        raise ProcessorStateException(f"store {folder} can't be opened: {reason}. Delete what lies there")
    directory.quarantine(folder, reason)
    return open()


def _close(store: AnyStore) -> None:
    try:
        store.close()
    except TaskCorruptedException as damage:
        _LOGGER.warning("%s", damage)
