"""The stage behind a join with a table, without Spark: what the table holds is read, and rows go on to sinks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from streams_runtime.batch.columns import MATCH
from streams_runtime.pipeline.formats.json_read import JsonReader
from streams_runtime.pipeline.pushdown.arrow_plans import RowPlan
from streams_runtime.topology.nodes.source_and_sink_nodes import SinkNode


@dataclass(frozen=True, slots=True)
class AfterJoin:
    """What becomes of records with what the table `table` holds beside them: the rows of each sink, by a plan."""

    table: str
    json: JsonReader
    sinks: Sequence[tuple[SinkNode, RowPlan]]

    def rows(self, joined: pa.Table) -> list[tuple[SinkNode, pa.Table]] | None:
        """Each sink and the rows that it gets; None where the table holds a value that only Spark reads.

        `joined` has the bytes that the table holds in MATCH.
        """
        held = joined[MATCH]
        fields = []
        for chunk in held.chunks:
            found, read = self.json.read(chunk)
            if read.true_count + chunk.null_count < len(chunk):
                return None
            fields.append(_without_what_is_not_there(found, read))
        beside = joined.drop_columns([MATCH]).append_column(self.table, pa.chunked_array(fields, self.json.type))
        return [(sink, plan.applied(beside)) for sink, plan in self.sinks]


def _without_what_is_not_there(found: pa.StructArray, there: pa.BooleanArray) -> pa.StructArray:
    """The reader has fields that are null for a value that is not there; here the whole is null."""
    if there.true_count == len(there):
        return found
    columns = [found.field(number) for number in range(found.type.num_fields)]
    return pa.StructArray.from_arrays(columns, fields=list(found.type), mask=pc.invert(there))
