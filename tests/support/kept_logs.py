"""The logs that there are of a test: those of its own folders, and of brokers and nodes that it shares with others."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

Texts = Callable[[], Mapping[str, str]]
"""Gives logs by name. What it raises is shown in place of them."""

_KEPT = 4_000_000  # bytes of a log, its last

_others: list[Path | Texts] = []


@contextmanager
def logs_of(source: Path | Texts) -> Iterator[None]:
    """Inside the block, these are among the logs of a test that fails: a folder's *.log files, or texts."""
    _others.append(source)
    try:
        yield
    finally:
        _others.remove(source)


@dataclass(frozen=True, slots=True)
class Log:
    """The end of a log."""

    name: str
    text: str
    written_at: float


def logs_since(moment: float, *folders: Path) -> list[Log]:
    """What was written to since then (seconds since 1970), the oldest first."""
    found = []
    for source in (*folders, *_others):
        if isinstance(source, Path):
            found += _files(source, moment)
        else:
            found += _texts(source)
    return sorted(found, key=lambda each: each.written_at)


def _files(folder: Path, moment: float) -> Iterator[Log]:
    for file in sorted(_log_files(folder)):
        try:
            stat = file.stat()
            if stat.st_mtime < moment or not stat.st_size or file.is_symlink():
                continue
            with file.open("rb") as opened:
                opened.seek(max(stat.st_size - _KEPT, 0))
                text = opened.read().decode(errors="replace")
        except OSError:
            continue  # its owner removes it at this moment
        if "\0" in text:
            continue  # records of a broker, whose files are called logs too
        yield Log(str(file.relative_to(folder.parent)), text, stat.st_mtime)


def _log_files(folder: Path) -> Iterator[Path]:
    """Not what is mounted below it (/proc, of an image that is being made), nor what goes away meanwhile."""
    for place, folders, names in os.walk(folder):
        folders[:] = [each for each in folders if not os.path.ismount(Path(place, each))]
        yield from (Path(place, each) for each in names if each.endswith(".log"))


def _texts(source: Texts) -> Iterator[Log]:
    try:
        for name, text in source().items():
            yield Log(name, text[-_KEPT:], time.time())
    except Exception as failure:
        yield Log("asked for", f"{type(failure).__name__}: {failure}", time.time())


def keep(folder: Path, logs: list[Log]) -> None:
    """Write them into the folder."""
    for each in logs:
        file = folder / each.name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(each.text)
