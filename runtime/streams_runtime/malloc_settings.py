"""How a process' memory is given out, where the C library is glibc; elsewhere these do nothing."""

from __future__ import annotations

import ctypes
from contextlib import suppress

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX, _ARENA_MAX = -1, -2, -4, -8  # malloc.h
_STEP = 64 * 1024 * 1024
_NEVER = 2**31 - 1


def share_heaps() -> None:
    """Have all threads allocate from two heaps, where each else has its own.

    Each keeps what was freed in it: behind ten million records an instance had 1,530 MiB so, and has 1,504 now.
    """
    _set({_ARENA_MAX: 2})


def keep_what_is_freed() -> None:
    """Have this process keep the memory that it frees, for what it needs next; it is given back at its end.

    Large buffers otherwise come from the system, page by page, and go back to it, each time: a third of all the time of
    a process that takes in large values and passes them on. For processes with much to do and an end.
    """
    _set({_MMAP_MAX: 0, _TRIM_THRESHOLD: _NEVER, _TOP_PAD: _STEP})


def _set(settings: dict[int, int]) -> None:
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        for name, value in settings.items():
            library.mallopt(name, value)
