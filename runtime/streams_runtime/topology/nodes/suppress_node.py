"""Changes of a table that wait for later ones of their key, in the plan, and the store that they wait in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from streams_runtime.api.reading.legal_names import suppress_store
from streams_runtime.topology.nodes.plan_node import StepNode
from streams_runtime.topology.store_specs import StoreSpec

WhenFull = Literal["emitEarly", "fail"]


@dataclass(frozen=True, slots=True)
class SuppressNode(StepNode):
    """Of the changes of one key in the stream `input`, a toStream, the last within a time; its output is a stream.

    A change waits until stream time is `within` (ms) past the first one of its key that waits. At most `records` keys
    and `bytes` wait in a task (None: any number); beyond that the oldest go on early, or the application fails.
    """

    KIND: ClassVar[str] = "suppress"
    LEADS_OUT: ClassVar[bool] = True

    within: int
    records: int | None
    bytes: int | None
    full: WhenFull
    path: str

    @property
    def store(self) -> str:
        """The name of its store."""
        return suppress_store(self.name)

    @property
    def summary(self) -> str:
        """The step in a user's words."""
        bounds = [f"{self.records} records"] if self.records is not None else []
        bounds += [f"{self.bytes} bytes"] if self.bytes is not None else []
        at_most = f", at most {' and '.join(bounds)}: {self.full}" if bounds else ""
        return f"the last change of each key within {self.within} ms{at_most}"

    def store_specs(self, application_id: str) -> tuple[StoreSpec, ...]:
        """The changes that wait."""
        return (StoreSpec.kept(self.store, "suppress", application_id, self.name),)
