"""What a table's store holds, and what is seen of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from streams_runtime.batch.json_columns import json_rows
from streams_runtime.state.aggregates.aggregate_state import AggregateState

Values = Sequence[bytes | None]
Shown = Callable[[Values], Values]


def as_stored(values: Values) -> Values:
    """Of a table that is kept as it is seen."""
    return values


def shown(state: AggregateState) -> Shown:
    """Of an aggregate: its state becomes a JSON object of the columns that a user sees; None stays None.

    What is given raises ProcessorStateException: a value can't be read.
    """

    def of_aggregate(values: Values) -> Values:
        return seen(state, state.decode(values), [value is not None for value in values])

    return of_aggregate


def seen(state: AggregateState, rows: pa.Table, there: Sequence[bool]) -> Values:
    """The same of rows of state; None for those that are not there."""
    found = json_rows(state.finish(rows))
    return [value if each else None for value, each in zip(found, there, strict=True)]
