"""Folders that tasks have left behind go after a while; those in use, and all else, stay."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from state_kit import memory_folder
from waiting import eventually

from streams_runtime.state.task_folders import StateCleaner, TaskFolders
from streams_runtime.topology.plan import TaskId

DELAY = 600.0
HERE, GONE = TaskId(0, 0), TaskId(1, 3)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def root() -> Iterator[Path]:
    with memory_folder() as made:
        yield made


def make(root: Path, task: TaskId) -> Path:
    folder = root / str(task) / "rocksdb" / "totals"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "000004.sst").write_text("x")
    return root / str(task)


def test_what_a_task_left_goes_once_the_delay_is_over_and_not_before(root: Path) -> None:
    clock = Clock()
    folders = TaskFolders(root, clock)
    make(root, GONE)
    with folders.used(GONE):
        clock.now += 5 * DELAY
        assert folders.remove_left(DELAY) == ()
    clock.now += DELAY - 1
    assert folders.remove_left(DELAY) == ()
    clock.now += 1
    assert folders.remove_left(DELAY) == (GONE,)
    assert not (root / str(GONE)).exists()
    assert folders.remove_left(DELAY) == ()


def test_a_task_that_comes_back_in_time_finds_its_stores_and_the_delay_begins_anew(root: Path) -> None:
    clock = Clock()
    folders = TaskFolders(root, clock)
    folder = make(root, GONE)
    for _ in range(3):
        with folders.used(GONE):
            pass
        clock.now += DELAY - 1
        assert folders.remove_left(DELAY) == ()
    assert folder.exists()


def test_what_an_earlier_process_left_counts_from_when_it_is_seen(root: Path) -> None:
    clock = Clock()
    folders = TaskFolders(root, clock)
    folder = make(root, GONE)
    assert folders.remove_left(DELAY) == ()
    clock.now += DELAY
    assert folders.remove_left(DELAY) == (GONE,)
    assert not folder.exists()


def test_a_folder_stays_while_the_next_user_has_it_though_the_last_one_lets_go_later(root: Path) -> None:
    clock = Clock()
    folders = TaskFolders(root, clock)
    make(root, HERE)
    first = ExitStack()
    first.enter_context(folders.used(HERE))
    with folders.used(HERE):
        first.close()
        clock.now += 2 * DELAY
        assert folders.remove_left(DELAY) == ()


def test_nothing_but_folders_of_tasks_is_touched(root: Path) -> None:
    clock = Clock()
    folders = TaskFolders(root, clock)
    others = [root / name for name in ("quarantine", "0_1x", "lost+found")]
    for each in others:
        each.mkdir()
    (root / ".lock").write_text("{}")
    folders.remove_left(DELAY)
    clock.now += 2 * DELAY
    assert folders.remove_left(DELAY) == ()
    assert all(each.exists() for each in [*others, root / ".lock"])


def test_a_folder_that_can_not_be_deleted_is_told_and_tried_again(
    root: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = TaskFolders(root)
    folder = make(root, GONE)
    with monkeypatch.context() as broken:
        broken.setattr("shutil.rmtree", _refuse)  # root may delete everything: no real folder refuses
        assert folders.remove_left(0.0) == ()
    assert f"{folder} can't be deleted: Input/output error. It is tried again" in caplog.text
    assert folders.remove_left(0.0) == (GONE,)


def _refuse(folder: Path) -> None:
    raise OSError(5, "Input/output error", str(folder))


@settings(max_examples=examples(40))
@given(st.lists(st.tuples(st.sampled_from(["use", "leave", "clean"]), st.integers(0, 2), st.integers(0, 400))))
def test_whatever_comes_and_goes_a_used_folder_is_there(steps: list[tuple[str, int, int]]) -> None:
    clock = Clock()
    with memory_folder() as root:
        folders = TaskFolders(root, clock)
        users: dict[TaskId, list[ExitStack]] = {TaskId(0, number): [] for number in range(3)}
        for step, number, seconds in steps:
            task = TaskId(0, number)
            clock.now += seconds
            if step == "use":
                users[task].append(ExitStack())
                users[task][-1].enter_context(folders.used(task))
                make(root, task)
            elif step == "leave" and users[task]:
                users[task].pop(0).close()
            elif step == "clean":
                folders.remove_left(DELAY)
            assert all((root / str(each)).exists() for each, theirs in users.items() if theirs)


def test_the_cleaner_works_only_while_it_may_and_ends_at_once(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    folder, asked, may = make(root, GONE), [], []

    def may_clean() -> bool:
        asked.append(folder.exists())
        return bool(may)

    cleaner = StateCleaner("cleaner", TaskFolders(root), 0.0, may_clean)
    cleaner.start()
    eventually(lambda: len(asked) > 2, "it has asked several times")
    assert folder.exists()
    may.append(True)
    eventually(lambda: not folder.exists(), "the folder has gone")
    cleaner.stop()
    cleaner.stop()
    assert "Deleting obsolete state directory" in caplog.text
