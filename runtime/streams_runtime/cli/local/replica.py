"""One replica of the application: its process, started again after crashes, and how it ended."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import orjson

from streams_runtime.cli.local.folders import InstanceFolder
from streams_runtime.cli.local.news import News, Say
from streams_runtime.cli.local.outcome import End, end_of, exit_text
from streams_runtime.cli.local.overview import CRASHED, Failure, Seen
from streams_runtime.cli.local.poller import StatePoller
from streams_runtime.cli.process import SHUTDOWN_APPLICATION
from streams_runtime.jvm.child import TiedProcess
from streams_runtime.lifecycle.budget import RestartBudget, RestartPolicy
from streams_runtime.states import ClientState

_STATE_OF = {End.NOT_RUNNING: ClientState.NOT_RUNNING, End.ERROR: ClientState.ERROR, End.UNUSABLE: ClientState.ERROR}


@dataclass(frozen=True, slots=True)
class Order:
    """What every replica is started with."""

    file: Path
    bootstrap_servers: str
    log_level: str = "INFO"
    queries_token: Path | None = None

    def command(self, name: str, folder: InstanceFolder) -> list[str]:
        """The command line of the instance `name`."""
        return [
            *(sys.executable, "-m", "streams_runtime.cli.instance", str(self.file)),
            *("--bootstrap-servers", self.bootstrap_servers, "--instance-id", name),
            *("--state-dir", str(folder.root), "--listen", "127.0.0.1:0"),
            *("--peers-dir", str(folder.root.parent)),
            *("--endpoint-file", str(folder.endpoint), "--termination-file", str(folder.termination)),
            *("--told-file", str(folder.told)),
            *(() if self.queries_token is None else ("--queries-token-file", str(self.queries_token))),
            *("--log-format", "json", "--log-level", self.log_level),
        ]


class Replica:
    """Call `tick` often. Used by one thread. Times are seconds of one clock that never goes back."""

    def __init__(self, name: str, folder: InstanceFolder, order: Order, policy: RestartPolicy, say: Say) -> None:
        """Does not start anything."""
        self.name = name
        self.end: End | None = None
        """How it ended for good; None while it runs or will run again."""
        self.pids: list[int] = []
        """Every process that was started for it, the present one last."""
        self._folder = folder
        self._order = order
        self._say = say
        self._budget = RestartBudget.full(policy)
        self._process: TiedProcess | None = None
        self._poller: StatePoller | None = None
        self._started_at = 0.0
        self._restart_at: float | None = None
        self._restarts = 0
        self._asked = False
        self._told: bytes | None = None
        self._failure: Failure | None = None
        self.shutdown_request: Failure | None = None
        """The exception that all other replicas are to end for as well, once this one has ended by it."""

    def start(self, now: float) -> None:
        """Start the process.

        Raises:
            EnvironmentException: its folder can't be used, or the machine starts no process.
        """
        self._folder.make_ready()
        self._write_told()
        command: Sequence[str] = self._order.command(self.name, self._folder)
        self._process = TiedProcess(command, self._folder.log, Path.cwd())
        self._poller = StatePoller(self._folder.endpoint, self._process.pid, self._order.queries_token)
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
            self._say(News("restart", f"{self.name} is started again", facts))

    def tell(self, words: bytes) -> None:
        """Tell the process, and any that is started after it, that all instances are to end. May be called twice.

        Raises:
            EnvironmentException: its folder can't be written.
        """
        if self._told is None and self.end is None:
            self._told = words
            self._write_told()

    def _write_told(self) -> None:
        if self._told is not None:
            self._folder.tell(self._told)

    def stop(self, grace: float) -> None:
        """Tell the process to close in order, and kill it after `grace` seconds; returns at once.

        One that crashed is not restarted any more. Only the first call does anything.
        """
        if self._asked:
            return
        self._asked = True
        if self._process is not None:
            name = f"stop-{self.name}"
            threading.Thread(target=self._process.stop, args=(grace,), name=name, daemon=True).start()
        elif self.end is None:
            self.end = End.CRASHED

    def kill(self) -> None:
        """SIGKILL, and no restart. May be called twice."""
        self._asked = True
        if self._process is not None:
            self._process.kill()
        elif self.end is None:
            self.end = End.CRASHED

    def seen(self) -> Seen:
        """The replica now."""
        seen = Seen(self.name, over=self.end is not None, restarts=self._restarts, failure=self._failure)
        log = str(self._folder.last_log())
        poller = self._poller
        if self._process is not None and poller is not None:
            return replace(seen, pid=self._process.pid, url=poller.url, described=poller.described, log=log)
        state = _STATE_OF.get(self.end, CRASHED) if self.end else CRASHED
        return replace(seen, state=state, described=poller.described if poller else None, log=log)

    def _note_end(self, code: int, now: float) -> None:
        started = self._poller is not None and self._poller.url is not None
        if self._poller is not None:
            self._poller.stop()
        self._process = None
        self._folder.endpoint.unlink(missing_ok=True)  # another program may get its port
        end = end_of(code, self._asked, started)
        if end in (End.ERROR, End.UNUSABLE):
            self._failure = self._last_word()
        if end is not End.CRASHED or self._asked:
            self.end = end
            self._tell_end(end, code)
            return
        self._budget, delay = self._budget.after_crash(now - self._started_at)
        facts = {"instance": self.name, "exit": exit_text(code), "log": str(self._folder.log), "restart_in": delay}
        if delay is None:
            self.end = End.CRASHED
            text = f"{self.name} crashed again ({exit_text(code)}) and is not started any more. Its log: {facts['log']}"
        else:
            self._restart_at = now + delay
            text = f"{self.name} crashed ({exit_text(code)}); it is started again in {delay:g} s"
        self._say(News("crash", text, facts, problem=True))

    def _tell_end(self, end: End, code: int) -> None:
        facts = {"instance": self.name, "end": end.name, "exit": exit_text(code), "log": str(self._folder.log)}
        if end is End.NOT_RUNNING:
            self._say(News("ended", f"{self.name} {end.value}", facts))
            return
        text = f"{self.name} {end.value} ({exit_text(code)})"
        if self._failure is not None:
            facts |= {"class": self._failure.kind, "message": self._failure.message}
            text = f"{self.name} {end.value}: {self._failure.kind}: {self._failure.message}"
        self._say(News("ended", f"{text}\n  its log: {self._folder.log}", facts, problem=True))

    def _last_word(self) -> Failure:
        """What the process wrote before it ended."""
        with contextlib.suppress(FileNotFoundError):
            told = orjson.loads(self._folder.termination.read_bytes())
            if told["class"]:
                failure = Failure(told["class"], told["message"])
                self.shutdown_request = failure if told.get("shutdown") == SHUTDOWN_APPLICATION else None
                return failure
        return Failure("unknown", "it left no word; its log may tell more")
