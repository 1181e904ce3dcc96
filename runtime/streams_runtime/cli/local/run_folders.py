"""The folders of a local run: the broker's data, and each instance's stores, log and termination message."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from streams_runtime.errors import EnvironmentException

_PREFIX = "streamsapp-"
_OLD_LOGS = 5  # logs of earlier processes that stay beside an instance's present one


@dataclass(frozen=True, slots=True)
class InstanceFolder:
    """The folder of one instance: `<root>`, in which the runtime keeps its stores as well."""

    root: Path

    @property
    def log(self) -> Path:
        """What the present process prints; `instance.log.1` and up are those before it, the last one first."""
        return self.root / "instance.log"

    @property
    def endpoint(self) -> Path:
        """Where the process writes its URL."""
        return self.root / "endpoint.json"

    @property
    def termination(self) -> Path:
        """Where the process writes its termination message."""
        return self.root / "termination.json"

    @property
    def shutdown_request(self) -> Path:
        """Where the process finds the request that all instances shut down."""
        return self.root / "told.json"

    def make_ready(self) -> None:
        """Prepare for a new process: old logs are renamed, and other files of the last process removed.

        Raises:
            EnvironmentException: the folder can't be made or written.
        """
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            for file in (self.endpoint, self.termination, self.shutdown_request):
                file.unlink(missing_ok=True)
            for number in range(_OLD_LOGS - 1, -1, -1):
                if (before := self._old_log(number)).exists():
                    before.replace(self._old_log(number + 1))
        except OSError as error:
            raise self._unusable(error) from error

    def write_shutdown_request(self, content: bytes) -> None:
        """Write the shutdown request, as a whole.

        Raises:
            EnvironmentException: the folder can't be written.
        """
        fresh = self.shutdown_request.with_suffix(".new")
        try:
            fresh.write_bytes(content)
            fresh.replace(self.shutdown_request)
        except OSError as error:
            raise self._unusable(error) from error

    @property
    def url(self) -> str | None:
        """Where its process answers; None while none runs that does."""
        document = _document(self.endpoint)
        return None if document is None else str(document["url"])

    def last_words(self) -> dict[str, Any] | None:
        """The termination message; None where no process has left one since the last start."""
        return _document(self.termination)

    def last_log(self) -> Path:
        """The log of the process that ended last."""
        return self.log if self.log.exists() else self._old_log(1)

    def _unusable(self, error: OSError) -> EnvironmentException:
        return EnvironmentException(
            f"the folder {self.root} of an instance can't be used: {error.strerror or error}. Give one that this"
            " user can write and that has space (--state-dir)"
        )

    def _old_log(self, number: int) -> Path:
        return self.log if number == 0 else self.log.with_name(f"{self.log.name}.{number}")


def temporary_runs() -> dict[Path, dict[str, InstanceFolder]]:
    """The folders of this machine's runs that were given none, with the instances of each."""
    found: dict[Path, dict[str, InstanceFolder]] = {}
    for root in sorted(Path(tempfile.gettempdir()).glob(f"{_PREFIX}*")):
        # Other programs' files have such names too, and a run takes its folder away when it ends.
        with suppress(EnvironmentException):
            if instances := instance_folders(root):
                found[root] = instances
    return found


def instance_folders(root: Path) -> dict[str, InstanceFolder]:
    """By name the instances that have run in the folder of a run, in the order of their numbers.

    Raises:
        EnvironmentException: the folder can't be read.
    """
    try:
        names = [each.name for each in root.iterdir() if _is_instance(each)]
    except PermissionError:
        return {}  # another user's
    except OSError as error:
        raise EnvironmentException(f"the folder {root} can't be read: {error.strerror or error}") from error
    return {name: InstanceFolder(root / name) for name in sorted(names, key=_name_and_number)}


def _document(file: Path) -> dict[str, Any] | None:
    try:
        document: dict[str, Any] = orjson.loads(file.read_bytes())
    except FileNotFoundError:
        return None
    return document


def _is_instance(folder: Path) -> bool:
    files = InstanceFolder(folder)
    return any(each.exists() for each in (files.log, files.endpoint, files.termination))


def _name_and_number(instance: str) -> tuple[str, int]:
    name, _, number = instance.rpartition("-")
    return name, int(number) if number.isdigit() else 0


class RunFolders:
    """`DIR/broker` and `DIR/<instance>`, in a folder that was given and stays, or in a new one that goes."""

    def __init__(self, given: Path | None, name: str) -> None:
        """Raises EnvironmentException when no temporary folder can be made."""
        self._temporary = given is None
        if given is not None:
            self.root = given.absolute()
            return
        try:
            self.root = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{name}-"))
        except OSError as error:
            raise EnvironmentException(
                f"no temporary folder can be made: {error.strerror or error}. Make space, or give one (--state-dir)"
            ) from error

    @property
    def broker(self) -> Path:
        """The embedded broker's data."""
        return self.root / "broker"

    def instance(self, name: str) -> InstanceFolder:
        """The folder of one instance."""
        return InstanceFolder(self.root / name)

    def finish(self, keep: bool, failed: Collection[str]) -> Path | None:
        """Remove what was made for this run only; returns the folder where something of it stays, and None otherwise.

        With `keep` all of a temporary folder stays. The logs of instances that `failed` stay in any case: they are
        what the run's last message points at.
        """
        if not self._temporary:
            return None
        if keep:
            return self.root
        for each in self.root.iterdir():
            if each.name in failed:
                _remove_all_but_logs(InstanceFolder(each))
            else:
                shutil.rmtree(each, ignore_errors=True)
        if failed:
            return self.root
        shutil.rmtree(self.root, ignore_errors=True)
        return None


def _remove_all_but_logs(folder: InstanceFolder) -> None:
    for each in folder.root.iterdir():
        if each.is_dir():
            shutil.rmtree(each, ignore_errors=True)
        elif not each.name.startswith(folder.log.name):
            each.unlink(missing_ok=True)
