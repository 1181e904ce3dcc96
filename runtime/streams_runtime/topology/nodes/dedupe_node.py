"""The dedupe of a stream in the plan, and the store that it has."""

from __future__ import annotations

from dataclasses import dataclass

from streams_runtime.api.reading.legal_names import dedupe_store


@dataclass(frozen=True, slots=True)
class DedupeNode:
    """Of the records of `input` with one id, those that lie further than `within` (ms) from the first one before them.

    `by` is the expression of the id; None: the key.
    """

    name: str
    input: str
    by: str | None
    within: int
    path: str

    @property
    def store(self) -> str:
        """The name of its store."""
        return dedupe_store(self.name)

    @property
    def retention(self) -> int:
        """How long a first is remembered, in ms of stream time, as a store counts it.

        A record that is as much as `within` older than the newest first still meets all that lie `within` of it, the
        oldest one included.
        """
        return 2 * self.within + 1

    @property
    def summary(self) -> str:
        """The dedupe in a user's words."""
        return f"dedupe within {self.within} ms by {'the key' if self.by is None else self.by}"
