"""A script: process 1 of the node's own namespaces. Hides the folders that a node writes to, then reaps.

Argument: the folder that stands in for them. It runs until it is killed, and everything in its process
namespace goes with it.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

READY = "namespaces are ready"
# containerd, the kubelet and CNI plugins write here, at paths that are not all theirs to choose.
HIDDEN = ("/var/lib", "/var/log")
_SETTINGS = {
    "net/ipv4/ip_forward": "1",
    "net/bridge/bridge-nf-call-iptables": "1",
}


def main(folder: Path) -> None:
    """Does not return."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    for place in HIDDEN:
        own = folder / place.strip("/").replace("/", "-")
        own.mkdir(parents=True)
        subprocess.run(["mount", "--bind", own, place], check=True)
    # Sockets and network namespaces of pods are not for a disk.
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for setting, value in _SETTINGS.items():
        Path("/proc/sys", setting).write_text(value)
    print(READY, flush=True)
    while True:
        signal.sigwait({signal.SIGCHLD})
        while _reap():
            pass


def _reap() -> bool:
    try:
        return os.waitpid(-1, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return False


if __name__ == "__main__":
    main(Path(sys.argv[1]))
