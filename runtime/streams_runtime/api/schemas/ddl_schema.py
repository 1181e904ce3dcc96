"""Schemas of json: Spark DDL to columns."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from streams_runtime.api.flow.known_columns import Column, Columns, shown_type
from streams_runtime.api.sql.sql_tree import Problem, SqlSyntaxError, parse_struct

_NOT_IN_JSON = (exp.DType.INTERVAL, exp.DType.NULL)


def parse_schema(ddl: str) -> tuple[Columns | None, list[Problem]]:
    """The columns of a schema, None when it can't be read, and everything that is wrong with it."""
    try:
        tree = parse_struct(ddl)
    except SqlSyntaxError as error:
        return None, [error.problem]
    if not all(isinstance(field, exp.ColumnDef) and field.args.get("kind") for field in tree.expressions):
        return None, [Problem(f"{ddl!r} has a column without a name or a type", 'write "name TYPE, name TYPE"')]
    columns = Columns(tuple(Column(field.name, _type(field)) for field in tree.expressions))
    return columns, [*name_problems(columns.names), *_type_problems(columns)]


def name_problems(names: tuple[str, ...], inside: bool = False) -> Iterator[Problem]:
    """Names that a user's columns can't have: twice the same, empty, or like a metadata column.

    `inside`: they are fields of a column, beside which there are no metadata columns.
    """
    first: dict[str, str] = {}
    for name in names:
        if not name:
            yield Problem("a column without a name", "name it")
        elif "`" in name:
            yield Problem(f"the column {name!r} has a ` in its name", "leave it out")
        elif name.startswith("_") and not inside:
            yield Problem(f"the column {name!r} begins with _, as metadata columns do", "name it without the _")
        if name.lower() in first:
            twin = first[name.lower()]
            how = "twice" if twin == name else f"beside {twin!r}; Spark takes no notice of case"
            yield Problem(f"the column {name!r} is there {how}", "keep one of the two")
        first.setdefault(name.lower(), name)


def _type(field: exp.Expr) -> exp.DataType | None:
    kind = field.args.get("kind")
    return kind if isinstance(kind, exp.DataType) else None


def _type_problems(columns: Columns) -> Iterator[Problem]:
    for column in columns:
        kind = column.type
        if kind and any(_not_in_json(each) for each in kind.find_all(exp.DataType)):
            found = f"the column {column.name!r} is {shown_type(kind)}, which json does not hold"
            yield Problem(found, "use STRING and cast it in a select")


def _not_in_json(kind: exp.DataType) -> bool:
    return isinstance(kind.this, exp.Interval) or kind.is_type(*_NOT_IN_JSON)
