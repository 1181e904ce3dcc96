"""The logs of a test that failed are kept, and their ends shown."""

from __future__ import annotations

import os
from pathlib import Path

import kept_logs
import pytest
import red_logs
from kept_logs import logs_of, logs_since

TESTS = """
import os
import time
import pytest

def log(folder, text):
    (folder / "broker").mkdir()
    (folder / "broker" / "server.log").write_text(text)

@pytest.fixture(autouse=True)
def in_ticks_of_its_own():
    yield
    now = time.time()
    while time.clock_gettime(5) <= now:  # what is written while the files' clock is behind is anybody's
        pass

def test_green(tmp_path):
    log(tmp_path, "of the green one")

def test_red(tmp_path):
    behind = time.clock_gettime(5)  # as far as a file's time may be
    log(tmp_path, "of the red one\\n" * 100 + "the last line")
    os.utime(tmp_path / "broker" / "server.log", (behind, behind))
    (tmp_path / "empty.log").touch()
    (tmp_path / "data.bin").write_text("no log")
    assert False

@pytest.fixture
def broken(tmp_path):
    log(tmp_path, "of the fixture")
    raise OSError

def test_whose_setup_fails(broken): pass
def test_without_logs(): assert False
"""


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever broker or node other tests of this process share."""
    monkeypatch.setattr(kept_logs, "_others", [])


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(red_logs.VARIABLE, str(tmp_path / "kept"))
    return tmp_path / "kept"


@pytest.mark.parametrize("workers", [[], ["-p", "xdist", "-n", "1"]])
def test_what_a_failed_test_has_logged_is_kept_shown_and_said_to_be_there(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, kept: Path, workers: list[str]
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(red_logs.__file__).parent))
    pytester.makepyfile(test_inner=TESTS)
    ran = pytester.runpytest_inprocess("-p", "red_logs", *workers)
    ran.assert_outcomes(passed=1, failed=2, errors=1)
    files = {str(file.relative_to(kept)): file for file in kept.rglob("*") if file.is_file()}
    assert sorted(file.partition("/")[0] for file in files) == [
        "test_inner.py-test_red",
        "test_inner.py-test_whose_setup_fails",
    ]
    (red,) = (file for name, file in files.items() if "test_red" in name)
    assert red.name == "server.log"
    assert red.read_text().endswith("the last line")
    said = str(ran.stdout)
    assert f"test_inner.py::test_red: {kept / 'test_inner.py-test_red' / 'call'}" in said
    assert f"test_inner.py::test_whose_setup_fails: {kept / 'test_inner.py-test_whose_setup_fails' / 'setup'}" in said
    lines = said.splitlines()
    assert lines.count("the last line") == 1
    assert lines.count("of the red one") == 39
    assert lines.count("of the fixture") == 1
    assert "of the green one" not in lines


def test_only_what_was_written_to_since_then_counts(tmp_path: Path) -> None:
    for name, moment in (("old", 100.0), ("newer", 300.0), ("new", 200.0)):
        (tmp_path / f"{name}.log").write_text(name)
        os.utime(tmp_path / f"{name}.log", (moment, moment))
    assert [each.text for each in logs_since(150.0, tmp_path)] == ["new", "newer"]


def test_what_is_mounted_below_a_folder_is_not_looked_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An image that is being made has a /proc, whose folders go away while they are read."""
    for name in ("proc", "var"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.log").write_text(name)
    monkeypatch.setattr(os.path, "ismount", lambda path: Path(path).name == "proc")
    assert [each.text for each in logs_since(0.0, tmp_path)] == ["var"]


def test_other_folders_and_texts_count_as_long_as_they_are_there(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("of a folder")
    with logs_of(tmp_path), logs_of(lambda: {"pod": "of a pod"}):
        assert [each.text for each in logs_since(0.0)] == ["of a folder", "of a pod"]
    assert logs_since(0.0) == []


def test_texts_that_can_not_be_had_hide_nothing(tmp_path: Path) -> None:
    def gone() -> dict[str, str]:
        raise OSError("the node is gone")

    (tmp_path / "a.log").write_text("of a folder")
    with logs_of(gone):
        assert [each.text for each in logs_since(0.0, tmp_path)] == ["of a folder", "OSError: the node is gone"]


def test_a_brokers_records_are_no_log(tmp_path: Path) -> None:
    (tmp_path / "00000000000000000000.log").write_bytes(b"key\0\0\0\x04value")
    (tmp_path / "server.log").write_bytes(b"started\n\xff\n")
    assert [(each.name, each.text) for each in logs_since(0, tmp_path)] == [
        (f"{tmp_path.name}/server.log", "started\n\ufffd\n")
    ]


def test_of_a_large_log_the_end_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_logs, "_KEPT", 3)
    (tmp_path / "a.log").write_text("abcdef")
    assert [each.text for each in logs_since(0.0, tmp_path)] == ["def"]
