"""What computes the batches of a sub-topology: Spark, or what was found out by it (pipeline.without_spark)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from streams_runtime.batch.stage import StageInput, StageOutput, TableRows
from streams_runtime.pipeline.batch_input import BatchInput
from streams_runtime.processors.contract import SparkSide
from streams_runtime.topology.declared.foreign_key_step import ForeignKeySide
from streams_runtime.topology.table_parts import TablePart


class BatchRunner(Protocol):
    """Runs the batches of one sub-topology, stage by stage."""

    @property
    def has_spark(self) -> bool:
        """Whether Spark is there. Before it nothing is called by the clock: what comes of that would wait for it."""

    @property
    def stages(self) -> Sequence[TablePart | ForeignKeySide | str]:
        """What follows on a batch's first stage, in order (topology.stage_order)."""

    def run(self, batch: BatchInput) -> StageOutput:
        """The first stage."""

    def run_after(self, found: StageInput) -> StageOutput:
        """The stage behind a node whose store side has passed on these rows."""

    def run_table(self, name: str, rows: TableRows) -> StageOutput:
        """The stage behind an aggregate, of its new rows."""

    def side(self, batch: BatchInput) -> SparkSide:
        """What the store side may ask while it applies the batch."""

    def broken(self, source: str, batch: BatchInput) -> pa.Table:
        """The batch's records of a source that can't be read, as they came."""

    def records(self, batch: BatchInput) -> pa.Table:
        """The batch's records as they came (RAW_SCHEMA)."""

    def order_times(self, batch: BatchInput) -> pa.Table:
        """Where the records are that can be read, and the times that decide on their order (ORDER_TIME)."""

    def why_unreadable(self, source: str, key: bytes | None, value: bytes | None, time: int | None) -> str:
        """The first thing that is wrong with a record of a source."""
