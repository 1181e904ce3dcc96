"""A broker's new storage: Kafka's tool formats it once for all brokers of a process that have the same properties."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from streams_runtime.errors import EnvironmentException
from streams_runtime.kafka.broker import storage_format
from streams_runtime.kafka.broker.broker_folder import BrokerFolder
from streams_runtime.kafka.broker.storage_format import format_storage

CHECKPOINT = "00000000000000000000-0000000000.checkpoint"


class Tool:
    """Plays the tool; what it is to answer, and how often it was asked."""

    def __init__(self) -> None:
        self.code, self.asked = 0, 0

    def __call__(self, command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        self.asked += 1
        if self.code == 0:
            data = Path(command[-1]).parent / "kafka"
            (data / "__cluster_metadata-0").mkdir(parents=True)
            (data / "meta.properties").write_text(f"cluster.id={command[command.index('--cluster-id') + 1]}\n")
            (data / "__cluster_metadata-0" / CHECKPOINT).write_bytes(b"features %d" % self.asked)
        return subprocess.CompletedProcess(command, self.code, "", "" if self.code == 0 else "no such feature")


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> Tool:
    made = Tool()
    monkeypatch.setattr(storage_format, "_known", {})
    monkeypatch.setattr(storage_format.subprocess, "run", made)
    return made


def formatted(root: Path, node: int = 1, config: dict[str, str] | None = None, *options: str) -> BrokerFolder:
    folder = BrokerFolder(root)
    folder.acquire()
    try:
        assert folder.needs_format()
        command = ["java", f"-Dlog4j2.configurationFile={root}", *options]
        format_storage(command, folder, node, f"cluster-{root.name}", config or {})
    finally:
        folder.release()
    assert not folder.needs_format()
    return folder


def features(folder: BrokerFolder) -> bytes:
    return (folder.data / "__cluster_metadata-0" / CHECKPOINT).read_bytes()


def identity(folder: BrokerFolder) -> dict[str, str]:
    lines = (folder.data / "meta.properties").read_text().splitlines()
    return {name: value for name, _, value in (line.partition("=") for line in lines)}


def test_the_second_broker_has_the_features_of_the_first_and_an_identity_of_its_own(tool: Tool, tmp_path: Path) -> None:
    first, *others = [formatted(tmp_path / f"b{number}", number) for number in (1, 2, 3)]
    assert tool.asked == 1
    assert {features(each) for each in (first, *others)} == {b"features 1"}
    for number, each in enumerate(others, 2):
        told = identity(each)
        assert len(told.pop("directory.id")) == 22
        assert told == {"version": "1", "cluster.id": f"cluster-b{number}", "node.id": str(number)}
    assert identity(others[0])["directory.id"] != identity(others[1])["directory.id"]


def test_brokers_with_other_properties_or_another_java_are_formatted_by_the_tool(tool: Tool, tmp_path: Path) -> None:
    formatted(tmp_path / "a")
    formatted(tmp_path / "b", 1, {"num.io.threads": "3"})
    formatted(tmp_path / "c", 1, None, "-Xmx1g")
    assert tool.asked == 3


def test_what_the_tool_refuses_is_told_each_time_and_serves_nobody(tool: Tool, tmp_path: Path) -> None:
    tool.code = 1
    for name in ("a", "b"):
        with pytest.raises(EnvironmentException, match="no such feature"):
            formatted(tmp_path / name)
    tool.code = 0
    formatted(tmp_path / "c")
    assert tool.asked == 3
