"""A first stage that the scan takes over: records of one source into one aggregate."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from streams_runtime.pipeline.pushdown.partial import Answer, Stage, fits_with, together
from streams_runtime.topology.nodes import AggregateNode, RepartitionSourceNode, SourceNode


@dataclass(frozen=True, slots=True)
class TakenOver:
    """What the scan does of a sub-topology's first stage; `schema` is that of Spark's partial aggregates."""

    source: SourceNode | RepartitionSourceNode
    node: AggregateNode
    stage: Stage
    schema: pa.Schema

    def partials(self, answer: Answer, sparks: pa.Table | None) -> pa.Table | None:
        """The batch's partial aggregates: those of the answer, and Spark's of the records that were left to it.

        None where a sum of the two may leave its range: then Spark, which raises an error at that, does all of it.
        """
        both = [each for each in (answer.partials, sparks) if each is not None and each.num_rows]
        if not both:
            return self.schema.empty_table()
        both = [each.select(self.schema.names).cast(self.schema) for each in both]
        aggregates = self.stage.plan.aggregates
        if len(both) > 1 and not fits_with(both[1], aggregates):
            return None
        return together(both, self.stage).select(self.schema.names).cast(self.schema)
