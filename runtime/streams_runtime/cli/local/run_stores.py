"""The stores that runs on this machine have left in a state folder, for whoever deletes them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from streams_runtime.api import StreamsApplication
from streams_runtime.state.state_directory import StateDirectory

_LOCK = ".lock"


@contextmanager
def held_stores(root: Path, application: StreamsApplication) -> Iterator[tuple[StateDirectory, ...]]:
    """The instances' folders of stores in a run's folder, locked so that no instance begins with them meanwhile.

    Raises:
        LockException: a live process has one of them.
        ProcessorStateException: a folder can't be used.
    """
    with ExitStack() as locks:
        yield tuple(
            locks.enter_context(StateDirectory(folder, application.application_id, "streamsapp reset"))
            for folder in sorted(root.glob(f"{application.name}-*"))
            if (folder / application.application_id).is_dir()
        )


def delete_stores(directory: StateDirectory) -> None:
    """Delete all that is in one of them. May be repeated.

    Raises:
        ProcessorStateException: something can't be deleted.
    """
    for each in sorted(directory.root.iterdir()):
        if each.name != _LOCK:
            directory.remove(each)
