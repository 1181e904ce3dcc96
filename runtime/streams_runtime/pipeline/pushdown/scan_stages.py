"""The stages that a scan does of a source, and their answer about records that are here already."""

from __future__ import annotations

import pyarrow as pa

from streams_runtime.pipeline.pushdown.partial_columns import Stage
from streams_runtime.pipeline.pushdown.scanned_records import Answer
from streams_runtime.pipeline.pushdown.single_rows import RowStage, TableStage

AnyStage = Stage | RowStage | TableStage


def answered_here(stage: AnyStage, records: pa.Table) -> Answer:
    """The answer about records that were fetched already, with RAW_SCHEMA."""
    merges_stages = stage.merges_stages(records.num_rows)
    merges_stages.take(lambda name: records[name].combine_chunks())
    return merges_stages.answer()
