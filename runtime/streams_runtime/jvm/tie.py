"""A script: makes the kernel kill this process with its parent, then becomes the command it was given.

Arguments: the parent's process id, then the command. Run by itself, with `python -I -S`, so that nothing but
the standard library is loaded between the start and the command.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
PARENT_GONE = 75


def main(arguments: list[str]) -> None:
    """Does not return. Exits with 75 when the parent died before the kernel was asked."""
    parent, command = int(arguments[0]), arguments[1:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit(PARENT_GONE)
    os.execv(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
