"""The dedupe of a stream in the plan, and the store that it has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streams_runtime.api.reading.legal_names import dedupe_store
from streams_runtime.topology.nodes.plan_node import StepNode
from streams_runtime.topology.store_specs import StoreSpec, Windowing


@dataclass(frozen=True, slots=True)
class DedupeNode(StepNode):
    """Of the records of `input` with one id, those that lie further than `within` (ms) from the first one before them.

    `by` is the expression of the id; None: the key.
    """

    KIND: ClassVar[str] = "dedupe"
    LEADS_OUT: ClassVar[bool] = True

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

    def store_specs(self, application_id: str) -> tuple[StoreSpec, ...]:
        """The ids that it has seen, in windows."""
        return (StoreSpec.kept(self.store, "dedupe", application_id, self.name, Windowing(self.retention)),)
