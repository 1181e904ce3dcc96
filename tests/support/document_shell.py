"""Does what a page of the documentation says, in one shell in an empty folder, and ends whatever that started."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from document_steps import Step, TypeCommand, WriteFile, fits
from waiting import eventually

_MARK = "--- the command has ended:"
_SECONDS = 600.0
"""For a step. Two instances take twenty seconds to start on a free machine, minutes on a very busy one."""
_END_SECONDS = 90.0  # for all that was started to close by itself


class StepFailed(AssertionError):
    """What the page says is not so; the message has the page's line."""


class DocumentShell:
    """A bash whose commands run one after another, as those that a reader types. Use it in `with`."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder.resolve()
        self._bash = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            bufsize=1,
        )
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def do(self, step: Step, seconds: float = _SECONDS) -> None:
        """Do a step of a page.

        Raises:
            StepFailed: the command ends with another code than 0, or what it prints is not what the page says.
        """
        match step:
            case WriteFile(_, name, content):
                (self._present_folder() / name).write_text(content, encoding="utf-8")
            case TypeCommand():
                self._type(step, seconds)

    def _type(self, step: TypeCommand, seconds: float) -> None:
        heard = _Heard()

        def as_the_page_says() -> bool:
            if heard.code is None or step.only_reads:
                heard.printed, heard.code = self._run(step.command, seconds)
            elif not step.command.endswith("&"):
                raise StepFailed(_told(step, heard))
            else:  # it goes on, and what it prints comes when it comes
                heard.printed += self._more()
            return heard.code == 0 and fits(step.output, heard.printed)

        eventually(as_the_page_says, lambda: _told(step, heard), seconds)

    def _run(self, command: str, seconds: float) -> tuple[str, int]:
        """What the command printed, and its exit code."""
        assert self._bash.stdin is not None
        # What the command reads is not what is typed behind it.
        # bash writes line by line, and others write between its lines. So the mark is one line; it begins behind what
        # the command left of a line.
        self._bash.stdin.write(f"{{ {command}\n}} < /dev/null\nprintf '%s %d\\n' '{_MARK}' $?\n")
        self._bash.stdin.flush()
        lines: list[str] = []
        while True:
            try:
                line = self._lines.get(timeout=seconds)
            except queue.Empty:
                raise StepFailed(
                    f"`{command}` has not ended within {seconds:g} s; it printed:\n{''.join(lines)}"
                ) from None
            before, mark, code = line.partition(_MARK)
            lines.append(before)
            if mark:
                return "".join(lines), int(code)

    def _more(self) -> str:
        found = ""
        with contextlib.suppress(queue.Empty):
            while True:
                found += self._lines.get_nowait()
        return found

    def _read(self) -> None:
        assert self._bash.stdout is not None
        for line in self._bash.stdout:
            self._lines.put(line)

    def _present_folder(self) -> Path:
        return Path(f"/proc/{self._bash.pid}/cwd").readlink()

    def started(self) -> frozenset[int]:
        """The processes that steps started and that still run: those that are at home in the folder."""
        found = set()
        for entry in Path("/proc").glob("[0-9]*/cwd"):
            with contextlib.suppress(OSError):
                pid = int(entry.parent.name)
                if pid != self._bash.pid and entry.readlink().is_relative_to(self._folder):
                    found.add(pid)
        return frozenset(found)

    def _children(self) -> frozenset[int]:
        """Those of the shell itself, which end what they have started in turn."""
        found = set()
        for pid in self.started():
            with contextlib.suppress(OSError):
                if int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) == self._bash.pid:
                    found.add(pid)
        return frozenset(found)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End all that was started, in order where it lets itself be."""
        try:
            for pids, how in ((self._children, signal.SIGTERM), (self.started, signal.SIGKILL)):
                for pid in pids():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, how)
                with contextlib.suppress(AssertionError):
                    eventually(lambda: not self.started(), seconds=_END_SECONDS)
        finally:
            self._bash.kill()
            self._bash.wait()
            self._reader.join()
            for pipe in (self._bash.stdin, self._bash.stdout):
                if pipe is not None:
                    pipe.close()


class _Heard:
    printed = ""
    code: int | None = None


def _told(step: TypeCommand, heard: _Heard) -> str:
    return (
        f"{step.place}: `{step.command}` ended with {heard.code} and printed\n{heard.printed}\n"
        f"The page says:\n{step.output}"
    )
