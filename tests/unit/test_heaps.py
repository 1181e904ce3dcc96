"""The heaps that a process' threads allocate from."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

ALLOCATING = """
import ctypes, sys, tempfile, threading
from streams_runtime.cli.process import share_heaps

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


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the heaps of threads are glibc's")
def test_threads_share_two_heaps() -> None:
    def heaps(*given: str) -> int:
        done = subprocess.run([sys.executable, "-c", ALLOCATING, *given], capture_output=True, text=True, check=True)
        return int(done.stdout)

    assert heaps() > 2
    assert heaps("shared") <= 2
