"""What a query leaves beside its rows."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from pyspark.sql import Column, DataFrame


class Observed:
    """Numbers that the queries over some rows leave, each time they are asked (Dataset.observe).

    PySpark's Observation holds those of the first time only, and waits for a listener to be told.
    """

    def __init__(self) -> None:
        """Nothing is there before a query has been asked."""
        self._name = uuid4().hex
        self._found: Any = None

    def on(self, rows: DataFrame, *metrics: Column) -> DataFrame:
        """The same rows; a query over them leaves the metrics here."""
        return rows.observe(self._name, *metrics)

    def clear(self) -> None:
        """Forget what the last query has left."""
        self._found = None

    def take(self, metrics: Any) -> None:
        """Keep what a query has left, a Map of Scala's, unless another one has done so."""
        if self._found is None and metrics.contains(self._name):
            self._found = metrics.apply(self._name)

    def __getitem__(self, metric: str) -> Any:
        """A metric by its name, of the last query over the rows."""
        assert self._found is not None, "no query has been asked over these rows"
        return self._found.getAs(metric)
