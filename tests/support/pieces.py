"""Pytest plugin: one of several processes that share the files of a run (side_by_side.py)."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import cast

import pytest

OPTION = "--pieces"
_MANY = 30  # modules


class Pieces:
    """Takes files, and tests that were asked for by name, one after the other out of what all processes share."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._found: list[pytest.Item | pytest.Collector] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> bool:
        """Find the files, and import none of them."""
        found = list(_files(session.perform_collect(genitems=False)))
        # The largest first, so that all processes end together. The order is the same in all of them.
        self._found = sorted(found, key=lambda each: (-each.path.stat().st_size, each.nodeid))
        session.testscollected = len(found)
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run what no other process has taken. A file that can't be imported is an error, and the others run."""
        session.testscollected = 0
        for items in self._taken(session):
            session.testscollected += len(items)
            # What all tests share outlives a file: of the next one only the session is known yet.
            following = [*items[1:], cast("pytest.Item", session)]
            for item, after in zip(items, following, strict=False):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
                if session.shouldfail:
                    raise session.Failed(session.shouldfail)
                if session.shouldstop:
                    raise session.Interrupted(session.shouldstop)
        return True

    def _taken(self, session: pytest.Session) -> Iterator[list[pytest.Item]]:
        for number, each in enumerate(self._found):
            try:
                (self._folder / f"piece-{number}").touch(exist_ok=False)
            except FileExistsError:
                continue
            known = len(sys.modules)
            items = list(session.genitems(each))
            if len(sys.modules) > known + _MANY:
                # What was imported stays: keep the garbage collector from looking through it all through the run.
                gc.collect()
                gc.freeze()
            session.config.hook.pytest_collection_modifyitems(session=session, config=session.config, items=items)
            yield items


def _files(found: Iterable[pytest.Item | pytest.Collector]) -> Iterator[pytest.Item | pytest.Collector]:
    """What was found, and instead of a folder what is in it."""
    for each in found:
        if isinstance(each, pytest.Directory):
            yield from _files(each.collect())
        else:
            yield each


def pytest_addoption(parser: pytest.Parser) -> None:
    """The folder that the processes share."""
    parser.addoption(OPTION, metavar="FOLDER", help="run what no other process with this folder has taken")


def pytest_configure(config: pytest.Config) -> None:
    """Take pieces, if this is one of several processes."""
    folder = config.getoption(OPTION)
    if folder is not None and not config.pluginmanager.has_plugin("pieces-taken"):
        config.pluginmanager.register(Pieces(Path(folder)), "pieces-taken")
