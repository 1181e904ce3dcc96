"""Which processes count as left behind."""

from __future__ import annotations

import os
import subprocess
import sys

from kube_traces import namespace_of, namespaces_with, processes, running_in
from waiting import alive, eventually


def test_a_process_that_nobody_has_waited_for_has_ended() -> None:
    own = namespace_of("self")
    assert own
    with subprocess.Popen([sys.executable, "-c", ""], stdin=subprocess.DEVNULL) as process:
        pid = str(process.pid)
        eventually(lambda: not alive(process.pid), "it has ended")
        assert pid in processes()
        assert namespace_of(pid) == own
        found = running_in({own})
        assert pid not in found
        assert sys.executable in found[str(os.getpid())] or "pytest" in found[str(os.getpid())]


def test_a_process_that_is_gone_has_no_namespace() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    assert namespace_of(str(process.pid)) is None
    assert namespaces_with("a word that no command line has") == set()
