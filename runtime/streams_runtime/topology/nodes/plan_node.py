"""What every node of a plan says of itself, whatever its kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from streams_runtime.api.spec.spec_values import format_duration
from streams_runtime.topology.store_specs import StoreSpec


@dataclass(frozen=True, slots=True)
class PlanNode(ABC):
    """A node of the plan. Who walks over nodes asks them, so that a new kind is described in one place.

    The topology's builder, the drawings and the comparison of versions know no more of a kind than this.
    """

    KIND: ClassVar[str]
    """What `streamsapp topology --json` calls the kind."""
    LEADS_OUT: ClassVar[bool] = False
    """Whether records that reach it reach a store, a topic or another stage of the batch."""
    MAKES_TABLE: ClassVar[bool] = False
    """Whether its output is a table, whatever it is made of."""

    name: str

    @property
    def needs_key(self) -> bool:
        """Whether it drops records without a key, as Kafka Streams does; asked of nodes that meet stores or topics."""
        return True

    @property
    def needs_value(self) -> bool:
        """The same of records without a value."""
        return False

    @property
    @abstractmethod
    def summary(self) -> str:
        """What the node does, in the user's own expressions."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the nodes that it takes its records from, in order; none for a source.

        A global table is not among them: it belongs to no task.
        """
        return ()

    @property
    def streams(self) -> tuple[str, ...]:
        """The names of the nodes whose records it passes on; a table that a stream is joined with is only asked."""
        return self.inputs

    @property
    def needs(self) -> tuple[str, ...]:
        """The names of the nodes that have to be known before it."""
        return self.inputs

    @property
    def read_topic(self) -> str | None:
        """The topic that it reads, where it is a source."""
        return None

    @property
    def users_topics(self) -> tuple[str, ...]:
        """The user's topics that it is declared to write: a sink's, or the one for an aggregate's late records."""
        return ()

    @property
    def internal_topic(self) -> str | None:
        """The topic that it writes and that the application reads again."""
        return None

    @property
    def written_topics(self) -> tuple[str, ...]:
        """The topics that it is declared to write, whoever's they are."""
        return self.users_topics if self.internal_topic is None else (self.internal_topic, *self.users_topics)

    def makes_table(self, tables: Collection[str]) -> bool:
        """Whether its output is a table, where `tables` are the names of the nodes before it whose output is one."""
        return self.MAKES_TABLE

    def store_specs(self, application_id: str) -> tuple[StoreSpec, ...]:
        """The stores that it keeps."""
        return ()


@dataclass(frozen=True, slots=True)
class StepNode(PlanNode):
    """A node that takes the records, or the rows, of the node `input`."""

    input: str

    @property
    def inputs(self) -> tuple[str, ...]:
        """That node alone."""
        return (self.input,)


def with_history(history: int | None) -> str:
    """How a summary says for how long (ms) a table keeps what its keys had."""
    return "" if history is None else f" with a history of {format_duration(timedelta(milliseconds=history))}"


def columns_of(select: tuple[tuple[str, str], ...]) -> str:
    """The names of the columns of a select, for a summary."""
    return ", ".join(name for name, _ in select)
