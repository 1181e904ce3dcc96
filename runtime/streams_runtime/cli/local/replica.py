"""One replica of the application: its process, started again after crashes, and how it ended."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from streams_runtime.cli.local.outcome import End, end_of, exit_text
from streams_runtime.cli.local.progress.overview import CRASHED, Failure, ReplicaSnapshot
from streams_runtime.cli.local.progress.poller import StatePoller
from streams_runtime.cli.local.progress.run_events import Report, RunEvent
from streams_runtime.cli.local.run_folders import InstanceFolder
from streams_runtime.cli.process.client_process import SHUTDOWN_APPLICATION
from streams_runtime.jvm.child import TiedProcess
from streams_runtime.lifecycle.retry_budget import RestartBudget, RestartPolicy
from streams_runtime.states import ClientState

_STATE_OF = {End.NOT_RUNNING: ClientState.NOT_RUNNING, End.ERROR: ClientState.ERROR, End.UNUSABLE: ClientState.ERROR}


@dataclass(frozen=True, slots=True)
class ReplicaOptions:
    """The options that every replica is started with."""

    file: Path
    bootstrap_servers: str
    log_level: str = "INFO"
    queries_token: Path | None = None
    port: int | None = None
    """Where the instance of ordinal 0 answers queries; 1 answers at the next port, and so on. None: free ones."""
    tags: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Values of each tag: the instance of ordinal 0 has the first, 1 the next, and so on, from the first again."""

    def command(self, name: str, folder: InstanceFolder) -> list[str]:
        """The command line of the instance `name`."""
        ordinal = int(name.rpartition("-")[2])
        port = 0 if self.port is None else self.port + ordinal
        return [
            *(sys.executable, "-m", "streams_runtime.cli.process.instance", str(self.file)),
            *("--bootstrap-servers", self.bootstrap_servers, "--instance-id", name),
            *("--state-dir", str(folder.root), "--listen", f"127.0.0.1:{port}"),
            *("--peers-dir", str(folder.root.parent)),
            *("--endpoint-file", str(folder.endpoint), "--termination-file", str(folder.termination)),
            *("--told-file", str(folder.shutdown_request)),
            *(() if self.queries_token is None else ("--queries-token-file", str(self.queries_token))),
            *(f"--client-tag={key}={values[ordinal % len(values)]}" for key, values in self.tags.items()),
            *("--log-format", "json", "--log-level", self.log_level),
        ]


class Replica:
    """Call `tick` often. Used by one thread. Times are seconds of one clock that never goes back."""

    def __init__(
        self, name: str, folder: InstanceFolder, options: ReplicaOptions, policy: RestartPolicy, report: Report
    ) -> None:
        """Does not start anything."""
        self.name = name
        self.end: End | None = None
        """How it ended for good; None while it runs or will run again."""
        self.pids: list[int] = []
        """Every process that was started for it, the present one last."""
        self._folder = folder
        self._options = options
        self._report = report
        self._budget = RestartBudget.full(policy)
        self._process: TiedProcess | None = None
        self._poller: StatePoller | None = None
        self._started_at = 0.0
        self._restart_at: float | None = None
        self._restarts = 0
        self._stop_requested = False
        self._request: bytes | None = None
        self._failure: Failure | None = None
        self.shutdown_request: Failure | None = None
        """The exception that all other replicas are to end for as well, once this one has ended by it."""

    def start(self, now: float) -> None:
        """Start the process.

        Raises:
            EnvironmentException: its folder can't be used, or the machine starts no process.
        """
        self._folder.make_ready()
        self._write_request()
        command: Sequence[str] = self._options.command(self.name, self._folder)
        self._process = TiedProcess(command, self._folder.log, Path.cwd())
        self._poller = StatePoller(self._folder.endpoint, self._process.pid, self._options.queries_token)
        self.pids.append(self._process.pid)
        self._started_at = now
        self._restart_at = None

    def tick(self, now: float) -> None:
        """Take note of an end, and restart when that is due."""
        process = self._process
        if process is not None and process.exit_code is not None:
            self._note_end(process.exit_code, now)
        elif self.end is None and self._restart_at is not None and now >= self._restart_at:
            self._restarts += 1
            self.start(now)
            facts = {"instance": self.name, "restarts": self._restarts}
            self._report(RunEvent("restart", f"{self.name} is started again", facts))

    def pass_shutdown_request(self, request: bytes) -> None:
        """Pass the request that all instances end to the process, and to any started after it. May be called twice.

        Raises:
            EnvironmentException: its folder can't be written.
        """
        if self._request is None and self.end is None:
            self._request = request
            self._write_request()

    def _write_request(self) -> None:
        if self._request is not None:
            self._folder.write_shutdown_request(self._request)

    def stop(self, grace: float) -> None:
        """Send the process SIGTERM, and SIGKILL after `grace` seconds; returns at once.

        One that crashed is not restarted any more. Only the first call does anything.
        """
        if self._stop_requested:
            return
        self._stop_requested = True
        if self._process is not None:
            name = f"stop-{self.name}"
            threading.Thread(target=self._process.stop, args=(grace,), name=name, daemon=True).start()
        elif self.end is None:
            self.end = End.CRASHED

    def kill(self) -> None:
        """SIGKILL, and no restart. May be called twice."""
        self._stop_requested = True
        if self._process is not None:
            self._process.kill()
        elif self.end is None:
            self.end = End.CRASHED

    def snapshot(self) -> ReplicaSnapshot:
        """The replica now."""
        snapshot = ReplicaSnapshot(self.name, over=self.end is not None, restarts=self._restarts, failure=self._failure)
        log = str(self._folder.last_log())
        poller = self._poller
        if self._process is not None and poller is not None:
            return replace(snapshot, pid=self._process.pid, url=poller.url, described=poller.described, log=log)
        state = _STATE_OF.get(self.end, CRASHED) if self.end else CRASHED
        return replace(snapshot, state=state, described=poller.described if poller else None, log=log)

    def _note_end(self, code: int, now: float) -> None:
        started = self._poller is not None and self._poller.url is not None
        if self._poller is not None:
            self._poller.stop()
        self._process = None
        self._folder.endpoint.unlink(missing_ok=True)  # another program may get its port
        end = end_of(code, self._stop_requested, started)
        if end in (End.ERROR, End.UNUSABLE):
            self._failure = self._read_termination()
        if end is not End.CRASHED or self._stop_requested:
            self.end = end
            self._report_end(end, code)
            return
        self._budget, delay = self._budget.after_crash(now - self._started_at)
        facts = {"instance": self.name, "exit": exit_text(code), "log": str(self._folder.log), "restart_in": delay}
        if delay is None:
            self.end = End.CRASHED
            text = f"{self.name} crashed again ({exit_text(code)}) and is not started any more. Its log: {facts['log']}"
        else:
            self._restart_at = now + delay
            text = f"{self.name} crashed ({exit_text(code)}); it is started again in {delay:g} s"
        self._report(RunEvent("crash", text, facts, problem=True))

    def _report_end(self, end: End, code: int) -> None:
        facts = {"instance": self.name, "end": end.name, "exit": exit_text(code), "log": str(self._folder.log)}
        if end is End.NOT_RUNNING:
            self._report(RunEvent("ended", f"{self.name} {end.value}", facts))
            return
        text = f"{self.name} {end.value} ({exit_text(code)})"
        if self._failure is not None:
            facts |= {"class": self._failure.kind, "message": self._failure.message}
            text = f"{self.name} {end.value}: {self._failure.kind}: {self._failure.message}"
        self._report(RunEvent("ended", f"{text}\n  its log: {self._folder.log}", facts, problem=True))

    def _read_termination(self) -> Failure:
        """The failure in the termination message of the process."""
        document = self._folder.last_words()
        if document is not None and document["class"]:
            failure = Failure(document["class"], document["message"])
            self.shutdown_request = failure if document.get("shutdown") == SHUTDOWN_APPLICATION else None
            return failure
        return Failure("unknown", "it left no word; its log may tell more")
