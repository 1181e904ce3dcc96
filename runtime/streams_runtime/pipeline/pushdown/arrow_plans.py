"""Plans in Arrow's expressions: the rows that a scan keeps, and the partial aggregates that it makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import acero

LISTED = pa.struct([("at", pa.int64()), ("record", pa.float64())])


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate of a partial row: `function` as Arrow calls it; no argument: of the rows themselves.

    A "list" has the values that are not null, each with its offset (LISTED).
    """

    name: str
    function: str
    argument: pc.Expression | None
    type: pa.DataType

    @property
    def adds_integers(self) -> bool:
        """Whether the sum may leave its range, of which Arrow says nothing."""
        return self.function == "sum" and pa.types.is_integer(self.type)


@dataclass(frozen=True, slots=True)
class RowPlan:
    """Which rows are kept (None: all), their columns by name, in order, and the columns that this reads."""

    kept: pc.Expression | None
    columns: Mapping[str, pc.Expression]
    reads: frozenset[str]

    def applied(self, rows: pa.Table) -> pa.Table:
        """The rows that this makes of others, in their order."""
        steps = [acero.Declaration("table_source", acero.TableSourceNodeOptions(rows))]
        if self.kept is not None:
            steps.append(acero.Declaration("filter", acero.FilterNodeOptions(self.kept)))
        project = acero.ProjectNodeOptions(list(self.columns.values()), list(self.columns))
        steps.append(acero.Declaration("project", project))
        return acero.Declaration.from_sequence(steps).to_table(use_threads=False)


@dataclass(frozen=True, slots=True)
class Plan:
    """The rows that aggregates need, each with its partition, key and time, and what is made of those of each key."""

    rows: RowPlan
    aggregates: tuple[Aggregate, ...]

    @property
    def reads(self) -> frozenset[str]:
        """The columns that it takes to tell."""
        return self.rows.reads
