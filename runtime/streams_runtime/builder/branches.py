"""A stream that a builder divides into branches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from streams_runtime.api.reading.legal_names import branch_name
from streams_runtime.api.reading.mistakes import suggestion
from streams_runtime.builder.recording import plain, refused

if TYPE_CHECKING:
    from streams_runtime.builder.streams_and_tables import KStream


S = TypeVar("S")


class NamedStreams(Generic[S]):
    """The streams of a step by name: `outputs["large"]` is one of them."""

    def __init__(self, step: str, stream: Callable[[str], S], names: Sequence[str] = (), part: str = "output") -> None:
        """Made by KStream.process; `stream` gives the stream of a name."""
        self._step, self._stream, self._names, self._part = step, stream, [*names], part

    def __getitem__(self, name: str) -> S:
        """The stream with this name.

        Raises:
            ConfigException: there is none; the message names the nearest one.
        """
        if name not in self._names:
            raise refused(f"{self._step!r} has no {self._part} {name!r}; {suggestion(name, self._names)}")
        return self._stream(branch_name(self._step, name))


class BranchedKStream(NamedStreams["KStream"]):
    """A stream that is being divided (BranchedKStream, KIP-418). `branches["large"]` is the stream of one branch."""

    def __init__(self, step: dict[str, Any], branches: list[Any], stream: Callable[[str], KStream]) -> None:
        """Made by KStream.split; `stream` gives the stream of a name."""
        super().__init__(step["name"], stream, part="branch")
        self._fields, self._branches = step, branches

    def branch(self, condition: str, name: str) -> BranchedKStream:
        """Add the branch of the records for which `condition` is the first true one (BranchedKStream#branch).

        A condition that gives null is not true. Returns the same object, for the next call. Raises ConfigException for
        a value that can't stand in a resource.
        """
        self._branches.append(plain({"name": name, "where": condition}))
        self._names.append(name)
        return self

    def default_branch(self, name: str) -> BranchedKStream:
        """Add the branch of the records that no condition is true for; without it they are dropped (defaultBranch).

        Returns the same object. Raises ConfigException for a value that can't stand in a resource.
        """
        self._fields["default"] = plain(name)
        self._names.append(name)
        return self
