"""Archives of classes: named by what they were made with, whole or not there, and made once."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from streams_runtime.errors import EnvironmentException
from streams_runtime.jvm import class_data
from streams_runtime.jvm.class_data import ClassData


@pytest.fixture
def jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The one jar that the broker has on this machine, whose Java is empty files."""
    java = tmp_path / "java" / "bin" / "java"
    library = tmp_path / "java" / "lib" / "server" / "libjvm.so"
    jar = tmp_path / "broker.jar"
    for each in (java, library, jar):
        each.parent.mkdir(parents=True, exist_ok=True)
        each.write_bytes(b"1")
        os.utime(each, (1000, 1000))
    monkeypatch.setattr(class_data, "find_java", lambda: java)
    monkeypatch.setattr(class_data, "broker_jars", lambda: [jar])
    monkeypatch.setattr(class_data, "cache_folder", lambda: tmp_path / "cache")
    return jar


def archive_of(options: tuple[str, ...]) -> Path:
    return Path(options[0].partition("=")[2])


def test_without_an_archive_a_jvm_starts_as_ever(jar: Path):
    assert class_data.broker_class_data().options == ()


def test_what_a_jvm_wrote_is_there_for_the_next_ones(jar: Path):
    with class_data.broker_class_data().made() as options:
        assert options[0].startswith("-XX:ArchiveClassesAtExit=")
        archive_of(options).write_bytes(b"classes")
    found = class_data.broker_class_data()
    assert found.options[0] == f"-XX:SharedArchiveFile={found.archive}"
    assert found.archive.read_bytes() == b"classes"
    with found.made() as options:
        assert options == found.options


@pytest.mark.parametrize("changed", ["size", "time", "java"])
def test_another_java_or_jar_has_another_archive(jar: Path, changed: str):
    before = class_data.broker_class_data().archive
    if changed == "size":
        jar.write_bytes(b"12")
        os.utime(jar, (1000, 1000))
    else:
        os.utime(jar if changed == "time" else jar.parent / "java" / "lib" / "server" / "libjvm.so", (2000, 2000))
    assert class_data.broker_class_data().archive != before


def test_a_jvm_that_writes_none_is_told_of(jar: Path):
    with pytest.raises(EnvironmentException, match="wrote no class data"), class_data.broker_class_data().made():
        pass


def test_nothing_is_left_of_one_that_was_broken_off(jar: Path):
    found = class_data.broker_class_data()
    with suppress(KeyboardInterrupt), found.made() as options:
        archive_of(options).write_bytes(b"half")
        raise KeyboardInterrupt
    assert not found.options
    assert [each.suffix for each in found.archive.parent.iterdir()] == [".lock"]


def test_of_two_that_want_it_at_once_one_makes_it(tmp_path: Path):
    found = ClassData(tmp_path / "one.jsa")
    second: list[tuple[str, ...]] = []

    def wait_for_the_first() -> None:
        with found.made() as options:
            second.append(options)

    waiting = threading.Thread(target=wait_for_the_first)
    with found.made() as options:
        waiting.start()
        archive_of(options).write_bytes(b"classes")
        assert second == []
    waiting.join()
    assert second == [found.options] != [()]


def test_archives_that_nobody_has_used_for_a_month_go_when_a_new_one_comes(jar: Path):
    found = class_data.broker_class_data()
    with found.made() as options:
        unused, used = (found.archive.with_name(f"spark-{name}.jsa") for name in ("unused", "used"))
        for each, days in ((unused, 31), (used, 29)):
            each.write_bytes(b"classes")
            os.utime(each, (time.time() - days * 24 * 3600,) * 2)
        archive_of(options).write_bytes(b"classes")
    assert {each.name for each in found.archive.parent.glob("*.jsa")} == {found.archive.name, used.name}
