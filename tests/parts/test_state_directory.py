"""The state folder belongs to one process at a time, and whoever comes second is told to whom."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from streams_runtime.errors import LockException, ProcessorStateException
from streams_runtime.state.state_directory import StateDirectory
from streams_runtime.topology.plan import TaskId

HOLDER = """
import sys
from pathlib import Path
from streams_runtime.state.state_directory import StateDirectory
StateDirectory(Path(sys.argv[1]), "orders", "orders-1").acquire()
print("locked", flush=True)
sys.stdin.read()
"""


@contextmanager
def another_process(base: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has the lock until it is killed."""
    command = [sys.executable, "-c", HOLDER, str(base)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "locked\n"
            yield process
        finally:
            process.kill()


def test_a_folder_in_use_names_the_process_that_uses_it(tmp_path: Path) -> None:
    with another_process(tmp_path) as process:
        with pytest.raises(LockException) as refused:
            StateDirectory(tmp_path, "orders", "orders-0").acquire()
        expected = f"in use by process {process.pid} on {socket.gethostname()} (instance orders-1)"
        assert expected in str(refused.value)
        assert str(tmp_path / "orders") in str(refused.value)
        assert "--state-dir" in str(refused.value)
        # The one that was refused has not touched what the other wrote.
        assert json.loads((tmp_path / "orders" / ".lock").read_text())["pid"] == process.pid


def test_a_killed_process_leaves_no_lock_behind(tmp_path: Path) -> None:
    with another_process(tmp_path) as process:
        process.kill()
        process.wait()
        with StateDirectory(tmp_path, "orders", "0") as mine:
            assert json.loads((mine.root / ".lock").read_text()) == {
                "pid": os.getpid(),
                "host": socket.gethostname(),
                "instance": "0",
            }


def test_a_lock_goes_with_its_release_and_is_not_inherited_by_child_processes(tmp_path: Path) -> None:
    first, second = (StateDirectory(tmp_path, "orders", name) for name in ("a", "b"))
    first.acquire()
    with subprocess.Popen(["sleep", "60"], close_fds=False) as child:
        try:
            with pytest.raises(LockException, match="instance a"):
                second.acquire()
            first.release()
            first.release()
            second.acquire()
        finally:
            child.kill()
    second.release()


def test_applications_do_not_lock_each_other_out(tmp_path: Path) -> None:
    with StateDirectory(tmp_path, "orders", "a"), StateDirectory(tmp_path, "refunds", "a"):
        pass


def test_a_holder_that_has_not_written_its_name_is_still_a_holder(tmp_path: Path) -> None:
    with StateDirectory(tmp_path, "orders", "a") as held:
        (held.root / ".lock").write_text("")
        with pytest.raises(LockException, match="in use by another process, which has not written its name yet"):
            StateDirectory(tmp_path, "orders", "b").acquire()


def test_a_folder_that_can_not_be_made_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    directory = StateDirectory(tmp_path / "file", "orders", "a")
    for use in (directory.acquire, lambda: directory.store_folder(TaskId(0, 0), "totals")):
        with pytest.raises(ProcessorStateException, match=r"file/orders can't be used: Not a directory. Give the"):
            use()


def test_a_store_lies_where_kafka_streams_puts_it(tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path, "orders", "a")
    folder = directory.store_folder(TaskId(1, 12), "totals")
    assert folder == tmp_path / "orders" / "1_12" / "rocksdb" / "totals"
    assert folder.parent.is_dir()
    assert not folder.exists()


def test_removing_a_folder_removes_all_of_it_and_one_that_is_not_there_is_no_error(tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path, "orders", "a")
    folder = directory.store_folder(TaskId(0, 0), "totals")
    (folder / "deeper").mkdir(parents=True)
    (folder / "deeper" / "file").write_text("x")
    directory.remove(folder)
    directory.remove(folder)
    assert not folder.exists()
    assert folder.parent.exists()
