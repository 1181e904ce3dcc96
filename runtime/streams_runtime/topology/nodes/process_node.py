"""The process step of a stream in the plan, and the stores that it has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streams_runtime.api.reading.legal_names import process_store
from streams_runtime.topology.nodes.plan_node import StepNode
from streams_runtime.topology.store_specs import StoreKind, StoreSpec, Windowing


@dataclass(frozen=True, slots=True)
class ProcessorStore:
    """A store that a process step declares: the format of its keys, its values' columns.

    A key-value store; with `windowing` a window store, or where its windows have no size a session store.
    """

    name: str
    key_format: str
    value: str
    windowing: Windowing | None = None

    @property
    def kind(self) -> StoreKind:
        """As the plan's stores have it."""
        if self.windowing is None:
            return "key-value"
        return "session" if self.windowing.size is None else "window"


@dataclass(frozen=True, slots=True)
class OutputNode(StepNode):
    """What the process step `input` forwards to its output of this number, or to all of them."""

    KIND: ClassVar[str] = "output"

    number: int

    @property
    def summary(self) -> str:
        """In a user's words."""
        return "what is forwarded to it, or to all"


@dataclass(frozen=True, slots=True)
class ProcessNode(StepNode):
    """What objects of the class `reference` forward of the records of `input`, one object a task.

    `value` are the columns of what is forwarded, as Spark DDL, `key` the type of its keys; None: each record's own.
    With `outputs` its consumers are those.
    """

    KIND: ClassVar[str] = "process"
    LEADS_OUT: ClassVar[bool] = True

    reference: str
    value: str
    key: str | None
    stores: tuple[ProcessorStore, ...]
    path: str
    outputs: tuple[str, ...] = ()

    @property
    def needs_key(self) -> bool:
        """The class decides what becomes of a record without a key."""
        return False

    @property
    def progress_store(self) -> str:
        """The name of the store of what each task has come to: its stream time, and what is scheduled by it."""
        return process_store(self.name)

    @property
    def summary(self) -> str:
        """The step in a user's words."""
        return f"process by {self.reference}"

    def store_specs(self, application_id: str) -> tuple[StoreSpec, ...]:
        """The declared ones, then its own."""
        declared = [
            StoreSpec.kept(each.name, each.kind, application_id, self.name, each.windowing) for each in self.stores
        ]
        return (*declared, StoreSpec.kept(self.progress_store, "process", application_id, self.name))
