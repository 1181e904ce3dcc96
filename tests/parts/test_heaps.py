"""The heaps that a process' threads allocate from."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

ALLOCATING = """
import ctypes, sys, tempfile, threading
from streams_runtime.malloc_settings import share_heaps

if sys.argv[1:]:
    share_heaps()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.fdopen.restype = ctypes.c_void_p, ctypes.c_void_p
together = threading.Barrier(6)

def allocate():
    together.wait()
    for _ in range(1000):
        libc.malloc(ctypes.c_size_t(2000))
    together.wait()

threads = [threading.Thread(target=allocate) for _ in range(6)]
for each in threads:
    each.start()
for each in threads:
    each.join()
with tempfile.TemporaryFile() as file:
    stream = libc.fdopen(file.fileno(), b"w")
    libc.malloc_info(0, ctypes.c_void_p(stream))
    libc.fflush(ctypes.c_void_p(stream))
    file.seek(0)
    print(file.read().count(b"<heap nr="))
"""


FREEING = """
import ctypes, sys
from pathlib import Path
from streams_runtime.malloc_settings import keep_what_is_freed

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

if sys.argv[1:]:
    keep_what_is_freed()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
for _ in range(3):
    before = resident()
    large = libc.malloc(100_000_000)
    ctypes.memset(large, 1, 100_000_000)
    taken = resident() - before
    libc.free(large)
print(taken)
"""
GLIBC = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the heaps are glibc's")


def told(script: str, *given: str) -> int:
    return int(
        subprocess.run([sys.executable, "-c", script, *given], capture_output=True, text=True, check=True).stdout
    )


@GLIBC
def test_threads_share_two_heaps() -> None:
    assert told(ALLOCATING) > 2
    assert told(ALLOCATING, "shared") <= 2


@GLIBC
def test_what_is_freed_is_there_for_what_is_needed_next() -> None:
    assert told(FREEING) > 90_000_000
    assert told(FREEING, "kept") < 10_000_000
