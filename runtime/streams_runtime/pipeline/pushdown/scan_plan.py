"""What a scan takes over of a plan that Spark has analysed: its expressions become Arrow's (arrow_plans)."""

from __future__ import annotations

from collections.abc import Container
from contextlib import suppress
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from streams_runtime.pipeline.pushdown.arrow_expressions import (
    Names,
    NotTakenOver,
    Typed,
    attributes,
    id_of,
    translated,
)
from streams_runtime.pipeline.pushdown.arrow_plans import Aggregate, Plan, RowPlan
from streams_runtime.pipeline.pushdown.catalyst import Tree, analysed, tree_of

_LEAVES = frozenset({"LogicalRDD", "LocalRelation"})
_SUMMED = frozenset({pa.int32(), pa.int64(), pa.float64()})
_ORDERED = frozenset({pa.int32(), pa.int64()})
_OF_ITS_KEY = ("_partition", "_key", "_timestamp")
_COUNTED = _SUMMED | {pa.string(), pa.bool_()}


def plan_of(totals: DataFrame, listed: Container[str] = frozenset()) -> Plan | None:
    """The plan of aggregates of all rows together (DataFrame.agg) that may have been filtered and selected from before.

    `listed` are sums that are to be lists of what would be added. None: Spark has to do it.
    """
    tree = analysed(totals)
    try:
        rows = _rows(tree.children[0])
        both = [_aggregate(tree_of(nodes), rows.names) for nodes in tree.fields["aggregateExpressions"]]
    except NotTakenOver:
        return None
    aggregates = tuple(replace(made, function="list") if made.name in listed else made for made, _ in both)
    columns = {name: pc.field(name) for name in _OF_ITS_KEY}
    columns |= {each.name: each.argument for each in aggregates if each.argument is not None}
    if any(each.function == "list" for each in aggregates):
        columns["_offset"] = pc.field("_offset")
    reads = rows.reads.union(_OF_ITS_KEY, columns.keys() & {"_offset"}, *(read for _, read in both))
    return Plan(RowPlan(rows.kept, columns, reads), aggregates)


def row_plan_of(frame: DataFrame) -> RowPlan | None:
    """The plan of rows that are filtered and selected from others. None: Spark has to do it."""
    tree = analysed(frame)
    try:
        rows = _rows(tree)
        given = [_given(rows.names, number) for number in _output(tree)]
    except NotTakenOver:
        return None
    reads = rows.reads.union(*(each.reads for each in given))
    return RowPlan(rows.kept, {name: each.expression for name, each in zip(frame.columns, given, strict=True)}, reads)


def _output(plan: Tree) -> list[int]:
    """The ids of the columns that a plan gives, in order."""
    match plan.kind:
        case "Project":
            return [id_of(tree_of(nodes).fields) for nodes in plan.fields["projectList"]]
        case "Filter":
            return _output(plan.children[0])
        case _:
            return [id_of(node) for (node,) in plan.fields["output"]]


def _given(names: Names, number: int) -> Typed:
    if number not in names:
        raise NotTakenOver("a column")
    return names[number]


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows on their way: what their columns are, which are kept, and the columns that it takes to tell."""

    names: Names
    kept: pc.Expression | None = None
    reads: frozenset[str] = frozenset()


def _rows(plan: Tree) -> _Rows:
    if plan.kind in _LEAVES:
        return _Rows(attributes(plan))
    if plan.kind not in ("Filter", "Project"):
        raise NotTakenOver(plan.kind)
    rows = _rows(plan.children[0])
    if plan.kind == "Project":
        return _Rows(_selected(plan, rows.names), rows.kept, rows.reads)
    condition = translated(tree_of(plan.fields["condition"]), rows.names)
    kept = condition.expression if rows.kept is None else rows.kept & condition.expression
    return _Rows(rows.names, kept, rows.reads | condition.reads)


def _selected(project: Tree, names: Names) -> Names:
    """Only what is asked for later has to be taken over."""
    found: dict[int, Typed] = {}
    for nodes in project.fields["projectList"]:
        tree = tree_of(nodes)
        value = tree.children[0] if tree.kind == "Alias" else tree
        with suppress(NotTakenOver):
            found[id_of(tree.fields)] = translated(value, names)
    return found


def _aggregate(alias: Tree, names: Names) -> tuple[Aggregate, frozenset[str]]:
    whole = alias.children[0]
    if whole.kind != "AggregateExpression" or whole.fields["isDistinct"] or len(whole.children) != 1:
        raise NotTakenOver(whole.kind)
    function, name = whole.children[0], alias.fields["name"]
    if len(function.children) != 1:
        raise NotTakenOver(function.kind)
    argument = translated(function.children[0], names)
    if argument.type not in _COUNTED:
        raise NotTakenOver(f"an aggregate of {argument.type}")
    made = Aggregate(name, function.kind.lower(), argument.expression, argument.type)
    match function.kind:
        case "Count" if argument.constant is not None:
            return Aggregate(name, "count", None, pa.int64()), frozenset()
        case "Count":
            return made, argument.reads
        case "Sum" if argument.type in _SUMMED:
            return made, argument.reads
        case "Min" | "Max" if argument.type in _ORDERED:
            return made, argument.reads
        case kind:
            raise NotTakenOver(kind)
