"""Aggregates in Spark SQL: `reduce(cast(0 as double), (state, row) -> state + row.amount)`, in parts.

An initial value, whose type is the column's; what becomes of the value so far when a record comes; and for windows by
session how the values of two that become one are put together: `(earlier, later) -> …`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import SqlglotError

from streams_runtime.api.flow.known_columns import Columns, Type, shown_type, type_named
from streams_runtime.api.sql.scalars import scalar_problems
from streams_runtime.api.sql.sql_tree import Problem, SqlSyntaxError, Token, parse_expression, place_in, tokens_of
from streams_runtime.api.sql.state_types import KEPT, not_kept

REDUCE = "reduce"
EXAMPLE = "reduce(cast(0 as double), (state, row) -> state + row.x)"
MERGING = "reduce(0, (state, row) -> state + 1, (earlier, later) -> earlier + later)"
_NAME = re.compile(r"[^\W\d]\w*|`[^`]+`")
_LAMBDA = (("(",), None, (",",), None, (")",), ("->",))
_Tokens = Sequence[Token]
_LARGEST_INT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Lambda:
    """`(one, other) -> body`, as it was written; `at` is where the body begins in the whole text."""

    one: str
    other: str
    body: str
    at: int

    @property
    def names(self) -> tuple[str, str]:
        """The two names without backticks."""
        return self.one.strip("`"), self.other.strip("`")


@dataclass(frozen=True, slots=True)
class Reduction:
    """The parts of a call of `reduce`; `merge` is None where there is no third one."""

    initial: str
    add: Lambda
    merge: Lambda | None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the record that the first lambda names, each once."""
        found: dict[str, str] = {}
        for column in parse_expression(self.add.body).find_all(exp.Column, bfs=False):
            name, *fields = (part.name for part in column.parts)
            if _same(name, self.add.names[1]) and fields:
                found.setdefault(fields[0].lower(), fields[0])
        return tuple(found.values())

    @property
    def expressions(self) -> tuple[str, ...]:
        """The texts of its parts."""
        return (self.initial, self.add.body, *([self.merge.body] if self.merge is not None else []))

    @property
    def record(self) -> str:
        """Those columns as one struct: what the lambda is given of a record. Never empty."""
        names = (name.replace("`", "``") for name in self.columns)
        return f"struct({', '.join(f'`{name}`' for name in names) or '_offset'})"

    def initial_type(self) -> Type | None:
        """The type of the initial value where it is known without Spark."""
        tree = parse_expression(self.initial)
        while isinstance(tree, exp.Paren | exp.Neg):
            tree = tree.this
        if isinstance(tree, exp.Cast):
            return tree.to
        if isinstance(tree, exp.Boolean):
            return type_named("BOOLEAN")
        if not isinstance(tree, exp.Literal):
            return None
        if tree.is_string:
            return type_named("STRING")
        return type_named("INT") if tree.this.isdigit() and int(tree.this) <= _LARGEST_INT else None

    @property
    def meaning(self) -> list[exp.Expr]:
        """The same for calls that differ in blanks, comments, the case of words and the names in their lambdas only."""
        lambdas = [each for each in (self.add, self.merge) if each is not None]
        return [parse_expression(self.initial), *(_renamed(each) for each in lambdas)]


def is_reduce(text: str) -> bool:
    """Whether the text is a call of `reduce`, right or wrong."""
    try:
        tokens = tokens_of(text)
    except SqlglotError:
        return False
    return [token.lower() for token, _, _ in tokens[:2]] == [REDUCE, "("]


def parse_reduce(text: str) -> Reduction:
    """The parts of the call. Raises SqlSyntaxError: the text is not exactly one such call."""
    tokens = tokens_of(text)
    arguments = _arguments(tokens, text)
    if len(arguments) not in (2, 3):
        found = f"{text!r} has {len(arguments)} arguments"
        remedy = f"write an initial value and a lambda, as in {EXAMPLE}; for sessions a second lambda"
        raise SqlSyntaxError(Problem(found, remedy))
    first, *others = arguments
    if not first or _lambda_names(first) is not None:
        raise SqlSyntaxError(Problem(f"{text!r} does not begin with an initial value", f"write {EXAMPLE}"))
    initial = text[first[0][1] : first[-1][2] + 1]
    add, *merge = (_lambda(each, text) for each in others)
    for part in (initial, add.body, *(each.body for each in merge)):
        parse_expression(part)
    return Reduction(initial, add, merge[0] if merge else None)


def parameter_of(text: str) -> str:
    """What stands between the call's brackets, without comments at either end."""
    tokens = tokens_of(text)
    return text[tokens[2][1] : tokens[-2][2] + 1]


def reduction_of(parameter: str) -> Reduction:
    """The reverse: the parts, from what stood between the brackets of a call that was parsed before."""
    return parse_reduce(f"{REDUCE}({parameter})")


def reduce_problems(text: str, columns: Columns | None) -> list[Problem]:
    """Everything that is wrong with a call; `columns`, those of the input, are None when they are not known."""
    try:
        reduction = parse_reduce(text)
    except SqlSyntaxError as error:
        return [error.problem]
    found = [
        *scalar_problems(reduction.initial, None),
        *_initial_problems(reduction),
        *_lambda_problems(reduction.add, text, columns, of_records=True),
    ]
    if reduction.merge is not None:
        found += _lambda_problems(reduction.merge, text, columns, of_records=False)
    return [*found, *_own_functions(reduction, columns.functions if columns is not None else {})]


def merging_problem(text: str, sessions: bool) -> Problem | None:
    """What a call lacks for the windows of its step, or has too much; nothing for one with mistakes.

    `sessions`: these are windows by session, of which two may become one.
    """
    try:
        reduction = parse_reduce(text)
    except SqlSyntaxError:
        return None
    if sessions and reduction.merge is None:
        found = f"{text!r} does not say how the values of two sessions that become one are put together"
        return Problem(found, f"add a second lambda, as in {MERGING}")
    if not sessions and reduction.merge is not None:
        found = f"{text!r} has a second lambda, which puts sessions together, and the step has none"
        return Problem(found, "leave it out")
    return None


def _arguments(tokens: _Tokens, text: str) -> Sequence[_Tokens]:
    """The tokens of each argument. Raises SqlSyntaxError: the call is not closed, or something follows it."""
    depth = 0
    found: list[list[Token]] = [[]]
    for number, token in enumerate(tokens[1:], 1):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(token[0], 0)
        if depth == 0:
            if number != len(tokens) - 1:
                raise SqlSyntaxError(Problem(f"{text!r} is more than the call", f"write {EXAMPLE} alone"))
            return found if found != [[]] else []
        if depth == 1 and token[0] == ",":
            found.append([])
        elif number > 1:
            found[-1].append(token)
    parse_expression(text)  # which says where it is not closed
    raise SqlSyntaxError(Problem(f"{text!r} does not close its brackets", f"write {EXAMPLE}"))


def _lambda_names(tokens: _Tokens) -> tuple[str, str] | None:
    """The two names of a lambda; None: the tokens begin none."""
    if len(tokens) < len(_LAMBDA):
        return None
    words = [token for token, _, _ in tokens[: len(_LAMBDA)]]
    if any(
        _NAME.fullmatch(word) is None if want is None else word not in want
        for word, want in zip(words, _LAMBDA, strict=True)
    ):
        return None
    return words[1], words[3]


def _lambda(tokens: _Tokens, text: str) -> Lambda:
    names = _lambda_names(tokens)
    if names is None or len(tokens) == len(_LAMBDA):
        found = text[tokens[0][1] : tokens[-1][2] + 1] if tokens else ""
        remedy = f"write (state, row) -> and what becomes of the state, as in {EXAMPLE}"
        raise SqlSyntaxError(Problem(f"{found!r} is no lambda of two names", remedy))
    one, other = names
    if _same(one.strip("`"), other.strip("`")):
        raise SqlSyntaxError(
            Problem(f"both names of the lambda are {one}", "give them two names, such as state and row")
        )
    body = tokens[len(_LAMBDA) :]
    return Lambda(one, other, text[body[0][1] : body[-1][2] + 1], body[0][1])


def _initial_problems(reduction: Reduction) -> Iterator[Problem]:
    tree = parse_expression(reduction.initial)
    for column in tree.find_all(exp.Column):
        found = f"the initial value {reduction.initial!r} names the column {column.name!r}"
        yield Problem(found, "write a value that is the same for every key; the lambda sees the records' columns")
    if isinstance(tree, exp.Null):
        yield Problem("the initial value null has no type", "give it one, as in cast(null as double)")
    elif isinstance(tree, exp.Literal) and not tree.is_string and "." in tree.this:
        yield Problem(
            f"the initial value {tree.this} is a DECIMAL, which is not kept yet", f"write cast({tree.this} as double)"
        )
    kind = reduction.initial_type()
    if kind is not None and not_kept(kind) is not None:
        yield Problem(f"the initial value is {shown_type(kind)}, which is not kept yet", f"cast it to {KEPT}")


def _lambda_problems(given: Lambda, text: str, columns: Columns | None, of_records: bool) -> Iterator[Problem]:
    problems = scalar_problems(given.body, None)
    yield from problems
    if problems:
        return
    one, other = given.names
    for column in parse_expression(given.body).find_all(exp.Column, bfs=False):
        name, *fields = (part.name for part in column.parts)
        where = place_in(text, given.at + column.parts[0].meta.get("start", 0))
        if _same(name, one) or (not of_records and _same(name, other)):
            continue
        if not _same(name, other):
            within = f"{other}.{name}" if of_records else f"{one} or {other}"
            known = f"{one} and {other}"
            yield Problem(f"{name!r} at {where} is none of {known}, the names of the lambda", f"write {within}")
        elif not fields:
            yield Problem(f"{other!r} alone, at {where}, is a whole record", f"name a column of it: {other}.x")
        elif columns is not None and (problem := columns.unknown(fields)) is not None:
            yield Problem(f"{problem.found} at {where}", problem.remedy)


def _own_functions(reduction: Reduction, own: Mapping[str, Type]) -> Iterator[Problem]:
    called = {call.name for each in reduction.expressions for call in parse_expression(each).find_all(exp.Anonymous)}
    for name in sorted(called):
        if name.lower() in own:
            found = f"{name} is a function of yours, and Spark calls none within reduce"
            yield Problem(found, "call it in a select before the aggregate, or use a class in Python: python(…)")


def _renamed(given: Lambda) -> exp.Expr:
    """The body, with names of its own in place of the two."""
    tree = parse_expression(given.body).copy()
    for column in tree.find_all(exp.Column):
        name = column.parts[0]
        for number, known in enumerate(given.names):
            if _same(name.name, known):
                name.set("this", f"<{number}>")
    return tree


def _same(one: str, other: str) -> bool:
    """Spark takes no notice of case in names."""
    return one.lower() == other.lower()
