"""A query that can be asked again, over other records than the first time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame

from streams_runtime.pipeline.spark.observed import Observed


@dataclass(frozen=True, slots=True)
class Answer:
    """The rows that a query has, and what else it has left."""

    rows: pa.Table
    notes: Mapping[str, Observed]


@dataclass(frozen=True, slots=True)
class Query:
    """Rows, and by their names what else the query over them leaves."""

    frame: DataFrame
    notes: Mapping[str, Observed] = field(default_factory=dict)

    def answer(self, others: Iterable[Observed] = ()) -> Answer:
        """Ask it. `others`: what the first of several queries leaves, too."""
        for each in self.notes.values():
            each.clear()
        rows = self.frame.toArrow()
        left = [*self.notes.values(), *others]
        if left:
            metrics = self.frame._jdf.queryExecution().observedMetrics()
            for each in left:
                each.take(metrics)
        return Answer(rows, self.notes)
