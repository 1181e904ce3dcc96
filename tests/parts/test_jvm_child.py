"""A child process that is stopped in order, and that its parent's death takes along."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from waiting import alive, eventually

from streams_runtime.errors import EnvironmentException
from streams_runtime.jvm.child import TiedProcess

DEADLINE = 10.0
IGNORES_TERM = "trap '' TERM; echo ready; while :; do sleep 0.05; done"
PARENT = """
import pathlib, sys, threading, time
from streams_runtime.jvm.child import TiedProcess

def start():
    child = TiedProcess(["/bin/sleep", "1000"], pathlib.Path(sys.argv[1]) / "out", pathlib.Path(sys.argv[1]))
    print(child.pid, flush=True)

starter = threading.Thread(target=start)
starter.start()
starter.join()
print("the thread that started it has ended", flush=True)
time.sleep(1000)
"""


def command_of(pid: int) -> str:
    """The program that a process runs by now; empty when it has gone."""
    return Path(f"/proc/{pid}/comm").read_text().strip() if alive(pid) else ""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills a process with its parent")
def test_the_child_lives_on_after_the_thread_that_started_it_and_dies_with_the_process(tmp_path):
    command = [sys.executable, "-c", PARENT, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        child = int(parent.stdout.readline())
        assert "has ended" in parent.stdout.readline()
        try:
            eventually(lambda: command_of(child) == "sleep", "the child outlives the thread")
        finally:
            parent.send_signal(signal.SIGKILL)
    try:
        eventually(lambda: not alive(child), "the child dies with the process")
    finally:
        if alive(child):
            os.kill(child, signal.SIGKILL)


def test_a_child_that_heeds_sigterm_is_stopped_in_order(tmp_path):
    child = TiedProcess(["/bin/sleep", "1000"], tmp_path / "out", tmp_path)
    assert child.stop(grace=DEADLINE)
    assert child.exit_code == -signal.SIGTERM
    assert not alive(child.pid)


def test_a_child_that_ignores_sigterm_is_killed_after_the_grace(tmp_path):
    child = TiedProcess(["/bin/sh", "-c", IGNORES_TERM], tmp_path / "out", tmp_path)
    eventually(lambda: "ready" in (tmp_path / "out").read_text())
    assert not child.stop(grace=0.2)
    assert child.exit_code == -signal.SIGKILL
    assert not alive(child.pid)


def test_stopping_twice_does_no_harm(tmp_path):
    child = TiedProcess(["/bin/sleep", "1000"], tmp_path / "out", tmp_path)
    child.kill()
    child.kill()
    assert child.stop(grace=1)


def test_the_childs_own_end_is_seen_with_its_exit_code_and_output(tmp_path):
    child = TiedProcess(["/bin/sh", "-c", "echo out; echo err >&2; exit 3"], tmp_path / "out", tmp_path)
    assert child.wait(DEADLINE)
    assert child.exit_code == 3
    assert (tmp_path / "out").read_text() == "out\nerr\n"


def test_ctrl_c_in_the_terminal_does_not_reach_the_child(tmp_path):
    child = TiedProcess(["/bin/sleep", "1000"], tmp_path / "out", tmp_path)
    try:
        assert os.getpgid(child.pid) != os.getpgid(0)
    finally:
        child.kill()


def test_a_child_that_can_not_be_started_is_an_error_and_leaves_no_thread(tmp_path):
    before = threading.active_count()
    with pytest.raises(EnvironmentException, match="can't be started"):
        TiedProcess(["/bin/true"], tmp_path / "no-such-folder" / "out", tmp_path)
    eventually(lambda: threading.active_count() == before)
