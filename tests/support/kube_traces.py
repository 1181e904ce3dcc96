"""What a cluster leaves on this machine: processes that know its folder or live in its namespaces."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from waiting import alive

_SUPPORT = Path(__file__).parent
_UP = "up"
_WAITS = f"""
import signal, sys, tempfile
sys.path.insert(0, {str(_SUPPORT)!r})
tempfile.tempdir = sys.argv[1]
{{imports}}
with {{block}}:
    # A signal that comes before a pause has begun does not end it; one that is blocked waits for who asks for it.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    print({_UP!r}, flush=True)
    signal.sigwait([signal.SIGINT])
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    raise KeyboardInterrupt
"""


@contextmanager
def held_by_another_process(imports: str, block: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the context manager `block` open with all of its files in `folder`, once it is up."""
    code = _WAITS.format(imports=imports, block=block)
    command = [sys.executable, "-c", code, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert _UP in (line.strip() for line in process.stdout), "it came up"
            yield process
        finally:
            process.kill()


def namespace_of(pid: str) -> str | None:
    """The process namespace that a process is in; None: it is gone."""
    try:
        return str(Path(f"/proc/{pid}/ns/pid").readlink())
    except OSError:
        return None


def namespaces_with(word: str) -> set[str]:
    """The process namespaces, but for this one's, of the processes whose command line contains a word."""
    return {each for each in map(namespace_of, processes_with(word)) if each} - {str(namespace_of("self"))}


def running_in(namespaces: Collection[str]) -> dict[str, str]:
    """The command line of each process in these namespaces, by its id.

    But for those that have ended: on a machine whose init is busy they stay for a while, when their parent was killed.
    """
    there = (each for each in processes() if namespace_of(each) in namespaces and alive(int(each)))
    return {each: _command_of(each).decode(errors="replace").replace("\0", " ").strip() for each in there}


def processes() -> list[str]:
    """The ids of all processes."""
    return [each.name for each in Path("/proc").iterdir() if each.name.isdigit()]


def processes_with(word: str) -> list[str]:
    """The ids of the processes whose command line contains a word."""
    return [each for each in processes() if word.encode() in _command_of(each)]


def _command_of(pid: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
