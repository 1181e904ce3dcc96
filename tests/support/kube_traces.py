"""What a cluster leaves on this machine: processes that know its folder or live in its namespaces."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_SUPPORT = Path(__file__).parent
_UP = "up"
_WAITS = f"""
import signal, sys, tempfile
sys.path.insert(0, {str(_SUPPORT)!r})
tempfile.tempdir = sys.argv[1]
{{imports}}
with {{block}}:
    print({_UP!r}, flush=True)
    signal.pause()
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


def namespace_of(pid: str) -> str:
    """The process namespace that a process is in."""
    try:
        return str(Path(f"/proc/{pid}/ns/pid").readlink())
    except OSError:
        return "of a process that is gone"


def processes() -> list[str]:
    """The ids of all processes."""
    return [each.name for each in Path("/proc").iterdir() if each.name.isdigit()]


def processes_with(word: str) -> list[str]:
    """The ids of the processes whose command line contains a word."""

    def words(pid: str) -> bytes:
        try:
            return Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return b""

    return [each for each in processes() if word.encode() in words(each)]
