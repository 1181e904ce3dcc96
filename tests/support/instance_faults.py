"""What a machine does to an instance: disks that are full, memory that is short, clocks that jump.

Each is undone at the end of its block, however that comes. Some need root on Linux (`unable` says what is missing).
"""

from __future__ import annotations

import itertools
import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from waiting import eventually

_CGROUPS = Path("/sys/fs/cgroup")
_NUMBERS = itertools.count()
_PAGE = 4096
_TIMEOUT = 60.0
_LIBRARY = "libfaketime.so.1"


def unable() -> str | None:
    """Why small disks and memory groups can't be had here; None when they can."""
    if os.geteuid() != 0:
        return "small disks and memory groups need root"
    return None


class SmallDisk:
    """A disk of some MiB at a folder, in memory; `fill` takes all that is left of it, to the last page."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"

    def fill(self) -> None:
        """No more is written to this disk."""
        with self._ballast.open("ab", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(_PAGE))

    def free(self) -> None:
        """There is room again."""
        self._ballast.unlink(missing_ok=True)


@contextmanager
def small_disk(folder: Path, mebibytes: int) -> Iterator[SmallDisk]:
    """A disk at `folder`, which is made. It is detached at the end even if something still has files on it open."""
    folder.mkdir(parents=True, exist_ok=True)
    options = f"size={mebibytes}m,mode=0700"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], check=True, timeout=_TIMEOUT)
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True, timeout=_TIMEOUT)


@contextmanager
def short_files(pid: int, length: int) -> Iterator[None]:
    """Files that the process writes get no longer than `length` bytes: more is refused (EFBIG). Its children's do."""
    with _limited(pid, resource.RLIMIT_FSIZE, length):
        yield


@contextmanager
def little_address_space(pid: int, more: int) -> Iterator[None]:
    """The process gets no more than `more` bytes on top of the address space that it has: allocations fail."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[0])
    with _limited(pid, resource.RLIMIT_AS, pages * resource.getpagesize() + more):
        yield


@contextmanager
def _limited(pid: int, what: int, value: int) -> Iterator[None]:
    soft, hard = resource.prlimit(pid, what)
    resource.prlimit(pid, what, (value, hard))
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            resource.prlimit(pid, what, (soft, hard))


class MemoryGroup:
    """A control group for an instance and all of its children; the kernel kills in it when the limit is passed."""

    def __init__(self, folder: Path, limit: Path) -> None:
        self._folder, self._limit = folder, limit

    @property
    def prefix(self) -> tuple[str, ...]:
        """A command that runs the one behind it in the group, under the same process id."""
        return ("sh", "-c", f'echo $$ > {self._folder}/cgroup.procs && exec "$@"', "sh")

    def limit(self, mebibytes: int | None) -> None:
        """How much all processes may have together; None: any amount. What can't be taken from them gets one killed."""
        # Version 1 refuses a limit below what is used and can't be taken away; the kernel then kills at the next page.
        with suppress(OSError):
            self._limit.write_text("-1" if mebibytes is None else str(mebibytes * 1024**2))


@contextmanager
def memory_group() -> Iterator[MemoryGroup]:
    """Removed at the end, once its processes have gone. Of a run that was killed the empty group stays."""
    version_2 = (_CGROUPS / "cgroup.controllers").exists()
    parent = _CGROUPS if version_2 else _CGROUPS / "memory"
    # kube_isolation.py removes groups of this name whose process is gone.
    folder = parent / f"streams-test-{os.getpid():x}-m{next(_NUMBERS):x}"
    folder.mkdir()
    try:
        yield MemoryGroup(folder, folder / ("memory.max" if version_2 else "memory.limit_in_bytes"))
    finally:

        def gone() -> bool:
            with suppress(OSError):
                folder.rmdir()
            return not folder.exists()

        eventually(gone, f"{folder} has no processes", _TIMEOUT)


class Clock:
    """The time of day of an instance that was started with this clock's environment, of its children too."""

    def __init__(self, library: Path, file: Path) -> None:
        self._file = file
        self.environment = {
            "LD_PRELOAD": str(library),
            "FAKETIME_TIMESTAMP_FILE": str(file),
            "FAKETIME_NO_CACHE": "1",
            # Time-outs go by clocks that don't jump.
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
        self.jump(0)

    def jump(self, seconds: int) -> None:
        """Go by so many seconds away from the machine's time, forward or back, from the next look at the clock on."""
        fresh = self._file.with_suffix(".new")
        fresh.write_text(f"{seconds:+d}\n")
        fresh.replace(self._file)


class FaultyDisk:
    """The state folder's disk for an instance that was started with this disk's environment: it can fail, or be slow.

    Device mapper's `flakey` and `delay` do the same to a whole disk, where the kernel has them.
    """

    def __init__(self, folder: Path, files: Path) -> None:
        """`folder` is the state folder; some files of the fault's own are made in `files`."""
        library = files / "disk_faults.so"
        source = Path(__file__).with_name("disk_faults.c")
        compiled = ["cc", "-O2", "-shared", "-fPIC", "-o", library, source, "-ldl"]
        subprocess.run(compiled, check=True, capture_output=True, timeout=_TIMEOUT)
        self._fault = files / "disk_fault"
        self.environment = {
            "LD_PRELOAD": str(library),
            "DISK_FAULT": str(self._fault),
            "DISK_FAULT_FOLDER": str(folder.resolve()),
        }

    def fails_to_sync(self) -> None:
        """fsync and fdatasync answer EIO."""
        self._write("eio")

    def is_slow(self, milliseconds: int) -> None:
        """Each write and each sync takes so much longer."""
        self._write(f"slow {milliseconds}")

    def is_well(self) -> None:
        """It does what it should."""
        self._fault.unlink(missing_ok=True)

    def _write(self, fault: str) -> None:
        fresh = self._fault.with_suffix(".new")
        fresh.write_text(fault)
        fresh.replace(self._fault)


def faketime(folder: Path) -> Path:
    """Debian's libfaketime: the machine's, or else fetched by apt-get into `folder`.

    Raises CalledProcessError or FileNotFoundError where it can't be had.
    """
    for known in (*Path("/usr/lib").glob(f"*/faketime/{_LIBRARY}"), *folder.glob(f"usr/lib/*/faketime/{_LIBRARY}")):
        return known
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        ["apt-get", "download", "libfaketime"], cwd=folder, check=True, capture_output=True, timeout=_TIMEOUT
    )
    (package,) = folder.glob("libfaketime_*.deb")
    subprocess.run(["dpkg-deb", "--extract", package, folder], check=True, timeout=_TIMEOUT)
    (found,) = folder.glob(f"usr/lib/*/faketime/{_LIBRARY}")
    return found
