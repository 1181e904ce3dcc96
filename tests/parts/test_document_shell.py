"""A page's steps in a shell: what they print is compared, what they start is ended."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from document_shell import DocumentShell, StepFailed
from document_steps import TypeCommand, WriteFile
from waiting import alive, eventually


def done(folder: Path, *steps: TypeCommand | WriteFile, seconds: float = 20.0) -> None:
    with DocumentShell(folder, os.environ) as shell:
        for step in steps:
            shell.do(step, seconds)


def test_files_are_written_where_the_commands_have_gone(tmp_path: Path) -> None:
    done(
        tmp_path,
        TypeCommand("1", "mkdir inside && cd inside"),
        WriteFile("2", "a.txt", "one\ntwo\n"),
        TypeCommand("3", "cat a.txt", "one\n…"),
        TypeCommand("4", "false; echo $?", "1"),
    )
    assert (tmp_path / "inside" / "a.txt").exists()


def test_another_output_and_a_command_that_fails_are_told_with_their_place(tmp_path: Path) -> None:
    with pytest.raises(StepFailed, match=r"page:7: `echo two` ended with 0 and printed\ntwo"):
        done(tmp_path, TypeCommand("page:7", "echo two", "one"))
    with pytest.raises(StepFailed, match="`false` ended with 1"):
        done(tmp_path, TypeCommand("page:8", "false"))


def test_a_command_that_only_reads_is_typed_until_it_prints_what_the_page_says(tmp_path: Path) -> None:
    done(
        tmp_path,
        TypeCommand("1", "mkfifo pipe; touch log; { read line; echo ready >> log; } < pipe &"),
        TypeCommand("2", "echo go > pipe"),
        TypeCommand("3", "tail -n 1 log", "ready"),
    )
    with pytest.raises(AssertionError, match="`tail -n 1 log` ended with 0 and printed\nready"):
        done(tmp_path, TypeCommand("4", "tail -n 1 log", "over"), seconds=0.3)


def test_what_a_command_in_the_background_prints_is_waited_for(tmp_path: Path) -> None:
    done(tmp_path, TypeCommand("1", "mkfifo pipe; { read line < pipe; echo heard; } & echo go > pipe &", "heard"))


def test_a_command_that_does_not_end_is_a_failure_and_all_that_runs_is_ended(tmp_path: Path) -> None:
    with pytest.raises(StepFailed, match=r"`cat pipe` has not ended within 0\.3 s"):
        done(
            tmp_path,
            TypeCommand("1", "mkfifo pipe; sleep 1000 & echo $! > pid"),
            TypeCommand("2", "cat pipe"),
            seconds=0.3,
        )
    pid = int((tmp_path / "pid").read_text())
    eventually(lambda: not alive(pid), "the command in the background has ended")
