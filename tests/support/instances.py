"""Instances as processes of their own: started, looked at, and killed, by tests about what survives a kill."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
import yaml
from waiting import eventually

_FAULT_POINTS = Path(__file__).with_name("fault_points.py")
_ELSEWHERE = 421  # the status of an answer about partitions that others have


def write_application(file: Path, name: str, topology: str, **spec: Any) -> None:
    """The file of an application; its applicationId is `name`."""
    document = {
        "apiVersion": "streamsoperator.io/v1alpha1",
        "kind": "StreamsApplication",
        "metadata": {"name": "test"},
        "spec": {"applicationId": name, **spec, "topology": yaml.safe_load(topology)},
    }
    file.write_text(json.dumps(document))


class Instance:
    """One process at a time, under one name and with one state folder, as often as it is started."""

    def __init__(
        self,
        application: Path,
        bootstrap: str,
        name: str,
        folder: Path,
        prefix: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`prefix` is a command that runs the one behind it; `environment` comes on top of this process's."""
        self.name = name
        self.state = folder / name
        """The state folder."""
        self.fault = folder / f"{name}.fault"
        """Names the point at which the process kills itself, once it is written."""
        self._endpoint = folder / f"{name}.endpoint"
        self._log = folder / f"{name}.log"
        self._command = [
            *prefix,
            *(sys.executable, str(_FAULT_POINTS), str(self.fault), str(application)),
            *("--bootstrap-servers", bootstrap, "--instance-id", name, "--state-dir", str(self.state)),
            *("--endpoint-file", str(self._endpoint)),
        ]
        self._environment = dict(environment or {})
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process's id. Fails when none was started."""
        assert self._process is not None
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the latest process runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        """What all processes of this name have logged."""
        return self._log.read_text()

    def start(self) -> None:
        """Start a process; returns at once."""
        self._endpoint.unlink(missing_ok=True)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log, env=os.environ | self._environment)

    def described(self) -> Mapping[str, Any] | None:
        """What /state says; None when the process does not answer, or not yet."""
        answer = self._get("/state")
        return None if answer is None else json.loads(answer)

    def contents(self, store: str) -> dict[str, Any] | None:
        """The store's local partitions, which may be none; None when the instance can't tell at present."""
        lines = self.lines(store, "all")
        return None if lines is None else {line["key"]: line["value"] for line in lines}

    def lines(self, store: str, which: str) -> list[dict[str, Any]] | None:
        """The lines of an answer about the store's local partitions, none where all are elsewhere; None when the
        instance can't tell at present.
        """
        answer = self._get(f"/stores/{store}/{which}")
        if not answer:
            return None if answer is None else []
        *lines, last = [json.loads(line) for line in answer.splitlines()]
        return lines if "complete" in last else None

    def check(self) -> None:
        """Fail if the process has ended."""
        assert self._process is not None
        code = self._process.poll()
        assert code is None, f"{self.name} ended with {code}: {self._log.read_text()[-4000:]}"

    def wait_until_killed(self, what: str) -> None:
        """Wait for the process's end, and that SIGKILL was what ended it."""
        process = self._process
        assert process is not None
        eventually(lambda: process.poll() is not None, what)
        assert process.returncode == -signal.SIGKILL, self._log.read_text()[-4000:]

    def kill(self) -> None:
        """SIGKILL; returns when the process is gone."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def freeze(self, seconds: float) -> None:
        """Stand still for so long, and then go on as if nothing had happened: a zombie, if the group missed it."""
        self.pause()
        time.sleep(seconds)
        self.resume()

    def pause(self) -> None:
        """SIGSTOP: connections stay open, and nothing answers."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        os.kill(self.pid, signal.SIGCONT)

    def lose_state(self) -> None:
        """Remove the state folder, as a node does that dies with its disk; the process has to be dead."""
        assert self._process is None or self._process.poll() is not None, f"{self.name} runs"
        if self.state.exists():  # one that was killed at its start has made none yet
            shutil.rmtree(self.state)

    def stop(self) -> None:
        """SIGTERM, and what the test left running after that SIGKILL."""
        if self._process is None or self._process.poll() is not None:
            return
        self.resume()
        self._process.terminate()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self.kill()

    def _get(self, path: str) -> str | None:
        try:
            url = json.loads(self._endpoint.read_bytes())["url"]
            # Certificates that nothing is checked with take twenty times the rest of a look.
            answer = httpx.get(url + path, timeout=60, trust_env=False, verify=False)
        except (FileNotFoundError, httpx.HTTPError):
            return None
        if answer.status_code == _ELSEWHERE:
            return ""
        return answer.text if answer.status_code == 200 else None
