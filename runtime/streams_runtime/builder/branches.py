"""A stream that a builder divides into branches."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from streams_runtime.api.reading.legal_names import branch_name
from streams_runtime.api.reading.mistakes import suggestion
from streams_runtime.builder.recording import plain, refused

if TYPE_CHECKING:
    from streams_runtime.builder.streams_and_tables import KStream


class BranchedKStream:
    """A stream that is being divided (BranchedKStream, KIP-418). `branches["large"]` is the stream of one branch."""

    def __init__(self, step: dict[str, Any], branches: list[Any], stream: Callable[[str], KStream]) -> None:
        """Made by KStream.split; `stream` gives the stream of a name."""
        self._step = step
        self._branches = branches
        self._stream = stream

    def branch(self, condition: str, name: str) -> BranchedKStream:
        """Add the branch of the records for which `condition` is the first true one (BranchedKStream#branch).

        A condition that gives null is not true. Returns the same object, for the next call. Raises ConfigException for
        a value that can't stand in a resource.
        """
        self._branches.append(plain({"name": name, "where": condition}))
        return self

    def default_branch(self, name: str) -> BranchedKStream:
        """Add the branch of the records that no condition is true for; without it they are dropped (defaultBranch).

        Returns the same object. Raises ConfigException for a value that can't stand in a resource.
        """
        self._step["default"] = plain(name)
        return self

    def __getitem__(self, name: str) -> KStream:
        """The stream of the branch with this name.

        Raises:
            ConfigException: there is no such branch; the message names the nearest one.
        """
        known = [str(each["name"]) for each in self._branches]
        known += [str(self._step["default"])] if "default" in self._step else []
        if name not in known:
            raise refused(f"{self._step['name']!r} has no branch {name!r}; {suggestion(name, known)}")
        return self._stream(branch_name(self._step["name"], name))
