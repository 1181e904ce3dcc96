"""The contract of a processor's store side: a batch's rows and the stores in, rows and the stores' next contents out.

A processor writes nothing and sends nothing. It says in an `Applied` what the stores will hold once the batch is
committed, what goes to topics, and what the steps behind it go on with. It knows neither Spark nor Kafka: what only
Spark can work out meanwhile it asks of `SparkSide`.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from streams_runtime.batch.drop_reasons import DropReason
from streams_runtime.batch.encode import Bytes
from streams_runtime.batch.late_records import Missed
from streams_runtime.batch.stage import Emission, StageInput, StoreBatch, TableRows
from streams_runtime.processors.user_processors.processor_task import ProcessorTask
from streams_runtime.state.aggregates.aggregate_state import AggregateState
from streams_runtime.state.global_store import GlobalStore
from streams_runtime.state.open_store import AnyStore
from streams_runtime.state.serdes import Serde
from streams_runtime.state.shown_values import Shown
from streams_runtime.state.store import Updates
from streams_runtime.topology.nodes.aggregate_node import AggregateNode
from streams_runtime.topology.nodes.foreign_key_nodes import ForeignKeyJoinNode
from streams_runtime.topology.nodes.source_and_sink_nodes import SinkNode
from streams_runtime.topology.plan import SubTopology
from streams_runtime.topology.table_parts import TablePart


def system_time() -> int:
    """The machine's clock, in ms since 1970."""
    return time.time_ns() // 1_000_000


Stores = Mapping[int, Mapping[str, AnyStore]]
"""The stores of tasks, by partition and name."""


@dataclass(slots=True)
class Applied:
    """What a batch's rows come to at one node.

    `updates` are what stores will hold, which goes to their changelogs too; `source_updates` the same of stores whose
    changelog is the topic that they are read from, with the offset that comes next there. `changes` are those of the
    table that the node keeps, in the order of records. The stage behind the node goes on with `rows`, or with
    `table_rows` behind an aggregate; `inputs` are what other stages begin with. `dropped`: how many
    records the node left out, by the reason. `late`: how often a record came too late, what became of these records
    (`late_outcome`), and the reason that they count under.
    """

    emissions: list[Emission] = field(default_factory=list)
    updates: list[tuple[AnyStore, Updates]] = field(default_factory=list)
    source_updates: list[tuple[AnyStore, Updates, int]] = field(default_factory=list)
    changes: StoreBatch | None = None
    rows: pa.Table | None = None
    table_rows: TableRows | None = None
    inputs: list[StageInput] = field(default_factory=list)
    dropped: Mapping[DropReason, int] = field(default_factory=dict)
    late: int = 0
    late_outcome: str = ""
    late_reason: DropReason = DropReason.LATE


class SparkSide(Protocol):
    """What the store side asks of a batch's Spark side, and of the topology that it has compiled."""

    def aggregate(self, node: str) -> AggregateState:
        """The state of an aggregate node."""

    def emits_per_update(self, aggregate: str) -> bool:
        """Whether every change of an aggregate counts."""

    def shown_by(self, table: str) -> Shown:
        """How what a table's store holds becomes what is seen of it."""

    def key_serde(self, node: str) -> Serde:
        """How the keys of a node's rows are written."""

    def record_times(self) -> pa.Table:
        """Where the batch's readable records are, and the times that decide on their order (ORDER_TIME)."""

    def sink_keys(self, sink: SinkNode, keys: pa.ChunkedArray) -> Bytes:
        """Keys as the sink writes them."""

    def sink_values(self, sink: SinkNode, values: pa.ChunkedArray) -> Bytes:
        """Values as the sink writes them."""

    def fork_path(self, source: str, name: str) -> tuple[int, ...] | None:
        """What the path from one node to another adds to a row's ELEMENT; None where no places are kept."""

    def tables(self, part: TablePart, snapshots: pa.Table) -> pa.Table:
        """What tables have in each snapshot."""

    def foreign_keys(self, node: ForeignKeyJoinNode, side: TablePart, snapshots: pa.Table) -> pa.Table:
        """What the rows of the left table name in each snapshot."""

    def rows_sent(self, side: TablePart, snapshots: pa.Table) -> pa.Table:
        """The rows of the right table in each snapshot."""

    def joined_by_foreign_key(self, node: ForeignKeyJoinNode, side: TablePart, snapshots: pa.Table) -> pa.Table:
        """The join's rows over those of the left table."""

    def fragments(self, node: AggregateNode, since: Mapping[int, int], begun_with: StageInput | None) -> StoreBatch:
        """The batch's fragments of sessions, cut by the stream time of each partition before the batch."""

    def late_records(
        self,
        node: AggregateNode,
        since: Mapping[int, int],
        missed: Sequence[Missed],
        begun_with: StageInput | None,
    ) -> Emission:
        """The records that came too late for a window of the node, for its topic of late records."""


@dataclass(frozen=True, slots=True)
class ApplyContext:
    """What a processor finds beside its rows.

    `stores` are those of the tasks, by partition and name; `changes` the batch's changes of tables, by the node that
    keeps them, nothing of which is in the stores yet; `arrived` the raw records of repartition sources, by their names;
    `ends` the offset behind the batch, by topic and partition. `begun_with` is what the stage of the rows began with;
    `late` how often a record of that stage was too late for a node by the batch alone. `processors` are the objects of
    users' classes by partition and step, where each task keeps its own. Of a batch that `is_tick` there are no records:
    only what is due by the machine's clock (`clock`, in ms) is called.
    """

    spark: SparkSide
    sub: SubTopology
    stores: Stores
    global_stores: Mapping[str, GlobalStore]
    changes: Mapping[str, StoreBatch]
    arrived: Mapping[str, pa.Table]
    ends: Mapping[tuple[str, int], int]
    begun_with: StageInput | None = None
    late: Counter[str] = field(default_factory=Counter)
    processors: Mapping[int, dict[str, ProcessorTask]] = field(default_factory=dict)
    clock: Callable[[], int] = system_time
    is_tick: bool = False

    def stores_of(self, name: str) -> dict[int, AnyStore]:
        """The partitions of the store of this name."""
        return {partition: stores[name] for partition, stores in self.stores.items()}


Apply = Callable[[Any, ApplyContext], Applied]
"""A processor's store side. Its first argument is a StageInput, a StoreBatch, a TablePart or a ForeignKeySide.

Raises:
    ProcessorStateException: a store can't be read.
    StreamsException: a total left its range, or an expression failed.
    UserCodeException: a class of the user's failed.
"""
