"""Namespaces of the kernel for a node: its network, mounts and processes are gone at once when it ends."""

from __future__ import annotations

import itertools
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import kube_init
from kube_binaries import program
from kube_process import running

_TIMEOUT = 30.0
_CGROUPS = Path("/sys/fs/cgroup")
_TRIES = 5
_NUMBERS = itertools.count()
_MESH = "mesh"
"""What the names of links between isolated places begin with."""
_CUT = [
    (chain, way, f"{_MESH}+", "--jump", "DROP")
    for chain, way in (("INPUT", "-i"), ("OUTPUT", "-o"), ("FORWARD", "-i"), ("FORWARD", "-o"))
]


@dataclass(frozen=True, slots=True)
class Isolated:
    """Where a node lives, and the addresses of the link to it. None of them is seen outside of this machine."""

    prefix: tuple[str, ...]
    """A command that runs the one behind it inside; it ends when what was started from outside is killed."""
    host: str
    """Address of the link's end on this machine."""
    node: str
    """Address of the link's end inside: the node's."""
    pods: str
    """Range of the pods' addresses, which this machine has a route to."""
    cgroup: str
    """Path of the control group that the pods' groups are made in."""
    pid: str
    """Process 1 inside, as this machine numbers it."""

    def run(self, *command: str | Path, timeout: float = _TIMEOUT) -> str:
        """Run a command inside and return what it prints. Raises CalledProcessError, with its words, when it fails."""
        inside = [*self.prefix, *command]
        done = subprocess.run(
            inside, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout, check=False
        )
        if done.returncode != 0:
            words = f"{' '.join(map(str, command))} ended with {done.returncode}: {done.stderr.strip()[-2000:]}"
            raise subprocess.CalledProcessError(done.returncode, words, done.stdout, done.stderr)
        return done.stdout

    def lose_power(self) -> None:
        """End all that runs inside at once; links and namespaces stay, and nobody answers."""
        # Process 1 does not hear it, nor does who sends it.
        self.run("sh", "-c", "kill -KILL -1")

    def cut(self) -> None:
        """Let nothing through between it and those that `connect` has connected it with."""
        for rule in _CUT:
            self.run("iptables", "--insert", *rule)

    def mend(self) -> None:
        """The opposite of `cut`."""
        for rule in _CUT:
            self.run("iptables", "--delete", *rule)


@contextmanager
def isolated(folder: Path) -> Iterator[Isolated]:
    """Namespaces that last as long as the block, linked to this machine's network.

    Their processes end with this one, however it ends. Control groups can only be removed by a process that
    is alive: those of a run that was killed stay, empty, until the next run removes them.
    """
    # By it a later run knows what belongs to a process that is gone; links' names are short.
    name = f"{os.getpid():x}-{next(_NUMBERS):x}"
    command = [
        *(program("unshare"), "--net", "--mount", "--pid", "--ipc", "--fork", "--kill-child=SIGKILL", "--mount-proc"),
        *(sys.executable, "-I", "-S", Path(kube_init.__file__), folder / "own"),
    ]
    log = folder / "namespaces.log"
    remove_groups_of_the_dead()
    with running(command, folder, lambda: kube_init.READY in log.read_text(), "namespaces") as holder:
        inside = Path(f"/proc/{holder.pid}/task/{holder.pid}/children").read_text().split()[0]
        with _cgroup(f"streams-test-{name}") as cgroup:
            try:
                host, node, pods = _link(f"st{name}", inside)
                enter = (str(program("nsenter")), f"--target={inside}", "--net", "--mount", "--pid", "--ipc")
                tie = (str(program("setpriv")), "--pdeathsig=SIGKILL", "--")
                yield Isolated((*enter, *tie), host, node, pods, cgroup, inside)
            finally:
                # All at once, and before the control groups that its processes are in are removed.
                holder.kill()
                _end(inside)


def connect(places: Sequence[Isolated]) -> None:
    """A link between each two places, by which nodes and pods of the one reach those of the other."""
    ip = str(program("ip"))
    for (first, one), (second, other) in itertools.combinations(enumerate(places), 2):
        ends = f"{_MESH}{second}", f"{_MESH}{first}"
        link = [ip, "link", "add", ends[0], "netns", one.pid, "type", "veth", "peer", "name", ends[1]]
        subprocess.run([*link, "netns", other.pid], check=True, capture_output=True, timeout=_TIMEOUT)
        for here, there, end in ((one, other, ends[0]), (other, one, ends[1])):
            here.run("ip", "link", "set", end, "up")
            here.run("ip", "route", "add", f"{there.node}/32", "dev", end, "src", here.node)
            here.run("ip", "route", "add", there.pods, "via", there.node, "dev", end, "onlink", "src", here.node)


def _link(name: str, inside: str) -> tuple[str, str, str]:
    """Connect this machine and the namespace; the kernel takes link and route away with the namespace."""
    ip, ends = str(program("ip")), (f"{name}h", f"{name}n")

    def run(*command: str) -> None:
        subprocess.run(command, check=True, capture_output=True, timeout=_TIMEOUT)

    enter = ("nsenter", f"--target={inside}", "--net", ip)
    run(ip, "link", "add", ends[0], "type", "veth", "peer", "name", ends[1], "netns", inside)
    for _ in range(_TRIES):
        # A range for measurements between devices: no network that a machine is in has it.
        block = f"198.{random.choice((18, 19))}.{random.randrange(256)}"
        if block not in subprocess.run([ip, "route"], capture_output=True, text=True, check=True).stdout:
            break
    host, node, pods = f"{block}.1", f"{block}.2", f"{block}.128/25"
    run(ip, "address", "add", f"{host}/30", "dev", ends[0])
    run(ip, "link", "set", ends[0], "up")
    run(*enter, "address", "add", f"{node}/30", "dev", ends[1])
    run(*enter, "link", "set", ends[1], "up")
    run(*enter, "route", "add", "default", "via", host)
    run(ip, "route", "add", pods, "via", node)
    return host, node, pods


@contextmanager
def _cgroup(name: str) -> Iterator[str]:
    version_2 = (_CGROUPS / "cgroup.controllers").exists()
    parts = [each for each in _CGROUPS.iterdir() if each.is_dir() and not each.is_symlink()]
    groups = [each / name for each in ([_CGROUPS] if version_2 else parts)]
    try:
        for group in groups:
            group.mkdir(exist_ok=True)
            if (group / "cpuset.cpus").exists():
                # A new group of version 1 has no processors and no memory, and nothing can start in it.
                for setting in ("cpuset.cpus", "cpuset.mems"):
                    (group / setting).write_text((group.parent / setting).read_text())
        yield f"/{name}"
    finally:
        for group in groups:
            _remove(group)


def _remove(group: Path) -> None:
    deadline = time.monotonic() + _TIMEOUT
    for folder, _, _ in os.walk(group, topdown=False):
        # The kernel empties a group a moment after its processes have gone.
        while True:
            try:
                Path(folder).rmdir()
                break
            except FileNotFoundError:
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)


def remove_groups_of_the_dead() -> None:
    """Remove the control groups of runs that were killed; done by every node before it starts."""
    for group in (*_CGROUPS.glob("streams-test-*"), *_CGROUPS.glob("*/streams-test-*")):
        owner = group.name.split("-")[2]
        if not Path(f"/proc/{int(owner, 16)}").exists():
            _remove(group)


def _end(pid: str) -> None:
    deadline = time.monotonic() + _TIMEOUT
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
