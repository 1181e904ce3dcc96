"""Several processes share the files of a run: each test runs once, and a failure anywhere fails the run."""

from __future__ import annotations

from pathlib import Path

import pytest
import side_by_side

PLUGINS = """
import os
import pathlib

pytest_plugins = ["lanes", "pieces", "run_times"]

import pytest

@pytest.fixture(scope="session")
def shared():
    pathlib.Path(f"shared-{os.getpid()}").touch(exist_ok=False)
    yield
    pathlib.Path(f"ended-{os.getpid()}").touch(exist_ok=False)

@pytest.fixture
def note(request, shared):
    with open(f"ran-{os.getpid()}", "a") as file:
        print(request.node.name, file=file)
"""
MEETS = """
import pathlib
import time

pathlib.Path(__file__).with_suffix(".collected").open("a").write("x")

def test_meets(note):
    here = pathlib.Path(__file__)
    here.with_suffix(".here").touch()
    end = time.monotonic() + 60
    while len(list(here.parent.glob("test_meet_*.here"))) < 2:
        assert time.monotonic() < end, "the other file has not begun"
        time.sleep(0.01)

def test_again(note): pass
"""
SMALL = """
import pathlib

pathlib.Path(__file__).with_suffix(".collected").open("a").write("x")

def test_small(note): pass
"""


@pytest.fixture
def folder(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTHONPATH", str(Path(side_by_side.__file__).parent))
    monkeypatch.setenv("STREAMSAPP_TEST_TIMES", "1")
    pytester.makeconftest(PLUGINS)
    return pytester.path


def test_each_file_is_collected_and_runs_in_one_process_and_both_are_under_way_at_once(
    folder: Path, pytester: pytest.Pytester, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    small = {f"test_small_{number}": SMALL.replace("test_small", f"test_small_{number}") for number in range(5)}
    pytester.makepyfile(test_meet_one=MEETS, test_meet_two=MEETS, **small)
    assert side_by_side.run(["-q"], 2) == 0
    assert {file.read_text() for file in folder.glob("*.collected")} == {"x"}
    assert len(list(folder.glob("*.collected"))) == 7
    ran = [file.read_text().splitlines() for file in folder.glob("ran-*")]
    assert [each[:2] for each in ran] == [["test_meets", "test_again"]] * 2, "the largest come first"
    assert sorted(name for each in ran for name in each[2:]) == sorted(small)
    assert len(list(folder.glob("shared-*"))) == len(list(folder.glob("ended-*"))) == 2, "once a process"
    said = capfdbinary.readouterr().out.decode()
    assert said.count(" passed in ") == 2
    assert any(line.split()[2:] == ["9", "."] for line in said.splitlines()), "a table of both"
    assert "9 tests in " in said.splitlines()[-1]


@pytest.mark.parametrize("number", [0, 1])
def test_a_failure_in_any_process_fails_the_run_and_shows(
    number: int, folder: Path, pytester: pytest.Pytester, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    fails = MEETS + "\ndef test_fails(): assert 1 + 1 == 3\n"
    names = ["test_meet_one", "test_meet_two"]
    pytester.makepyfile(**{names[number]: fails, names[1 - number]: MEETS})
    assert side_by_side.run(["-q"], 2) == 1
    said = capfdbinary.readouterr().out.decode()
    assert f"FAILED {names[number]}.py::test_fails - assert (1 + 1) == 3" in said
    assert said.splitlines()[-1].endswith("exit code 1")


def test_a_file_that_cannot_be_imported_fails_the_run_and_the_others_run(
    folder: Path, pytester: pytest.Pytester, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    pytester.makepyfile(test_gone="import nothing_of_this_name\n" * 20, test_meet_one=MEETS, test_meet_two=MEETS)
    assert side_by_side.run(["-q"], 2) == 1
    said = capfdbinary.readouterr().out.decode()
    assert "ERROR test_gone.py" in said
    assert sum(len(file.read_text().splitlines()) for file in folder.glob("ran-*")) == 4


def test_a_single_test_runs_alone_and_one_that_is_not_there_is_a_mistake(
    folder: Path, pytester: pytest.Pytester
) -> None:
    pytester.makepyfile(test_small=SMALL, test_more=SMALL)
    assert side_by_side.run(["-q", "test_small.py::test_small"], 2) == 0
    assert [file.read_text() for file in folder.glob("ran-*")] == ["test_small\n"]
    assert side_by_side.run(["-q", "test_small.py::test_gone"], 2) == 4


def test_no_test_at_all_is_a_mistake(folder: Path) -> None:
    assert side_by_side.run(["-q"], 2) == 5


def test_fixtures_of_a_file_end_with_it(folder: Path, pytester: pytest.Pytester) -> None:
    owner = """
import pathlib
import pytest

@pytest.fixture(scope="module", autouse=True)
def open_file():
    pathlib.Path("open").touch()
    yield
    pathlib.Path("open").unlink()

def test_it_is_open():
    assert pathlib.Path("open").exists()
"""
    after = "import pathlib\ndef test_it_is_closed():\n    assert not pathlib.Path('open').exists()\n"
    pytester.makepyfile(test_owner=owner, test_after=after)
    assert side_by_side.run(["-q"], 1) == 0
