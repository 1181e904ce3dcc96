"""Pytest plugin: seven lanes for `--dist loadscope`, by what a test waits for.

Two of them have something that no other worker could have beside them: a node, an API server. One worker gets such a
lane as a whole. Tests of the others come file by file to whichever worker is free, so that all end together: a Spark
session or a broker, which start in seconds, a worker makes once for all of its files.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from kube_sources import made_elsewhere
from xdist.scheduler import LoadScopeScheduling

CLIENTS, NODE, SERVER, SPARK, ORACLE, BROKER, REST = "clients", "node", "server", "spark", "oracle", "broker", "rest"
LANES = (SERVER, ORACLE, NODE, SPARK, CLIENTS, BROKER, REST)
"""In this order they are taken: early those that one worker gets, and last the shortest files. The images that a node
needs are made beside the first ones.
"""
IN_PIECES = (SPARK, ORACLE, CLIENTS, BROKER, REST)
"""Lanes of which each worker gets a file at a time."""

_KAFKA_STREAMS = "driver"  # its own TopologyTestDriver
_FILE = "lanes_file"


def lane_of(fixtures: Collection[str], markers: Collection[str], one_cluster: bool = False) -> str:
    """The lane of a test that asks for these fixtures, by itself or through others, and has these markers.

    `one_cluster`: all that need Kubernetes share one, which is not made here.
    """
    if "spark" in fixtures or "spark" in markers:
        return CLIENTS if "broker" in fixtures else ORACLE if _KAFKA_STREAMS in fixtures else SPARK
    if "node" in fixtures or "e2e" in markers:
        return SERVER if one_cluster else NODE
    if "api_server" in fixtures or "cluster" in markers:
        return SERVER
    return BROKER if "integration" in markers else REST


def lane_of_item(item: pytest.Item) -> str:
    """The same of a test that was collected."""
    return lane_of(getattr(item, "fixturenames", ()), {each.name for each in item.iter_markers()}, made_elsewhere())


def piece_of(lane: str, test: str) -> str:
    """What one worker gets at a time: a lane, or a file of one that comes in pieces."""
    return f"{lane} {test.partition('::')[0]}" if lane in IN_PIECES else lane


class Lanes(LoadScopeScheduling):
    """Gives one worker all tests of a piece. Which that is the workers know, who have collected the tests."""

    def __init__(self, config: pytest.Config, log: Any, file: Path) -> None:
        """`file` is what the workers have written when the first test is given away."""
        config.option.loadscopereorder = False  # by how many tests a lane has
        super().__init__(config, log)
        self._file = file
        self._pieces: dict[str, str] = {}

    def _split_scope(self, nodeid: str) -> str:
        if not self._pieces:
            self._pieces = json.loads(self._file.read_text())
        return self._pieces[nodeid]


class Controller:
    """Has the lanes scheduled, in the process of the terminal."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "lanes.json"

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker where to write."""
        node.workerinput[_FILE] = str(self._file)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> LoadScopeScheduling:
        """The lanes."""
        return Lanes(config, log, self._file)


class Worker:
    """Says which test is in which piece."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """The lanes in their order, each in the order of its files."""
        items.sort(key=lambda item: LANES.index(lane_of_item(item)))

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Before the controller hears that it is through."""
        found = {item.nodeid: piece_of(lane_of_item(item), item.nodeid) for item in session.items}
        written = self._file.with_name(f"{self._file.name}.{os.getpid()}")
        written.write_text(json.dumps(found))
        written.replace(self._file)


def pytest_configure(config: pytest.Config) -> None:
    """Register the side of this process, if there are lanes, and the marker."""
    config.addinivalue_line("markers", "spark: computes with a Spark of this process, without the fixture of that name")
    manager = config.pluginmanager
    file = getattr(config, "workerinput", {}).get(_FILE)
    if file is not None and not manager.has_plugin("lanes-worker"):
        manager.register(Worker(Path(file)), "lanes-worker")
    elif config.getoption("dist", "no") == "loadscope" and not manager.has_plugin("lanes-controller"):
        folder = tempfile.TemporaryDirectory(prefix="streamsapp-test-lanes-")
        config.add_cleanup(folder.cleanup)
        manager.register(Controller(Path(folder.name)), "lanes-controller")
