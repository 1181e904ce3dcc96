"""Expressions over columns of every type, made by chance: most of them are of types that do not fit."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

COLUMNS = (
    "t TINYINT, s SMALLINT, i INT, l BIGINT, f FLOAT, d DOUBLE, d102 DECIMAL(10,2), d50 DECIMAL(5,0),"
    " d3818 DECIMAL(38,18), b BOOLEAN, str STRING, bin BINARY, dt DATE, ts TIMESTAMP, tn TIMESTAMP_NTZ,"
    " ai ARRAY<INT>, al ARRAY<BIGINT>, astr ARRAY<STRING>, ast ARRAY<STRUCT<a:INT,b:STRING>>, aa ARRAY<ARRAY<INT>>,"
    " msi MAP<STRING,INT>, mid MAP<INT,DOUBLE>, st STRUCT<a:INT,b:STRING,c:STRUCT<x:DOUBLE>>, v VARIANT"
)
_SINGLE_WORDS = """
t s i l f d d102 d50 d3818 b str bin dt ts tn st.a st.b st.c.x ai[0] msi['k'] ast.a[0]
"""
_SINGLE = _SINGLE_WORDS.split()
_SEVERAL_WORDS = """
ai al astr ast aa msi mid st st.c v ast.b
"""
_SEVERAL = _SEVERAL_WORDS.split()
_WRITTEN = ["null", "0", "1", "-7", "3000000000", "1.5", "0.05", "-12.30", "1e3", "2L", "'x'", "'2'", "true", "false"]

_WRITTEN += [
    "date'2020-01-01'",
    "timestamp'2020-01-01'",
    "interval 1 day",
    "interval 2 hours",
    "interval 1 month",
    "x'00'",
]
_BINARY_WORDS = """
+ - * / % div = <> < >= <=> and or || & |
"""
_BINARY = _BINARY_WORDS.split()
_ONE_WORDS = """
upper lower trim length reverse abs ceil floor round sqrt ln exp sign hex md5 crc32 base64 year hour dayofweek
last_day to_date to_timestamp unix_timestamp size array_distinct array_max array_sort sort_array flatten
map_keys map_values map_entries isnull isnan to_json string int bigint double date timestamp boolean decimal
negative typeof unix_date timestamp_millis ascii chr initcap
"""
_ONE = _ONE_WORDS.split()
_TWO_WORDS = """
coalesce nvl nullif concat concat_ws date_add datediff date_format contains startswith instr repeat split left
pow atan2 greatest least array map element_at array_contains array_union array_append array_repeat round mod
if_null substring lpad equal_null trunc date_trunc months_between array_join format_string next_day
"""
_TWO = _TWO_WORDS.split()
_THREE_WORDS = """
if substring replace regexp_replace nvl2 coalesce lpad concat slice array locate greatest make_date
"""
_THREE = _THREE_WORDS.split()
_TYPES_WORDS = """
tinyint int bigint float double decimal(10,2) decimal(38,10) boolean string binary date timestamp
timestamp_ntz array<string> array<double> map<string,bigint> struct<a:string,b:string,c:struct<x:int>>
"""
_TYPES = _TYPES_WORDS.split()
_LAMBDAS = (
    "transform({0}, x -> {1})",
    "transform({0}, (x, n) -> x + n)",
    "transform({0}, x -> x * 2)",
    "filter({0}, x -> x > {1})",
    "filter({0}, x -> {1})",
    "exists({0}, x -> x = {1})",
    "forall({0}, x -> x is not null)",
    "aggregate({0}, {1}, (acc, x) -> acc + x)",
    "aggregate({0}, 0L, (acc, x) -> acc + x, acc -> acc / 2)",
    "map_filter({0}, (k, w) -> w > {1})",
    "transform_values({0}, (k, w) -> w + 1)",
    "transform_keys({0}, (k, w) -> upper(k))",
    "transform({0}, x -> x.a)",
)


class Expressions:
    """Endless, and the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def __iter__(self) -> Iterator[str]:
        while True:
            yield self.made(self._random.choice((1, 1, 2, 2, 3)))

    def made(self, depth: int) -> str:
        """An expression of so many calls and operators in each other at most."""
        choose = self._random
        if depth == 0 or choose.random() < 0.1:
            return choose.choice(choose.choice((_SINGLE, _SINGLE, _SINGLE, _WRITTEN, _WRITTEN, _SEVERAL)))
        kind = choose.choice(
            (self._binary, self._binary, self._call, self._call, self._cast, self._choice, self._test, self._other)
        )
        return kind(depth - 1)

    def _operand(self, depth: int) -> str:
        made = self.made(depth)
        return f"({made})" if " " in made and self._random.random() < 0.6 else made

    def _binary(self, depth: int) -> str:
        return f"{self._operand(depth)} {self._random.choice(_BINARY)} {self._operand(depth)}"

    def _call(self, depth: int) -> str:
        names, count = self._random.choice(((_ONE, 1), (_ONE, 1), (_TWO, 2), (_THREE, 3)))
        return f"{self._random.choice(names)}({', '.join(self.made(depth) for _ in range(count))})"

    def _cast(self, depth: int) -> str:
        word = self._random.choice(("cast", "cast", "try_cast"))
        return f"{word}({self.made(depth)} as {self._random.choice(_TYPES)})"

    def _choice(self, depth: int) -> str:
        one, two, three = (self.made(depth) for _ in range(3))
        condition = f"{self.made(0)} {self._random.choice(('=', '>'))} {self.made(0)}"
        return self._random.choice(
            (
                f"if({condition}, {one}, {two})",
                f"case when {condition} then {one} else {two} end",
                f"case when {condition} then {one} end",
                f"case {one} when {two} then {three} end",
                f"coalesce({one}, {two}, {three})",
                f"case when {one} then {two} when {condition} then {three} else {one} end",
            )
        )

    def _test(self, depth: int) -> str:
        one, two, three = (self._operand(depth) for _ in range(3))
        return self._random.choice(
            (
                f"{one} between {two} and {three}",
                f"{one} not between {two} and {three}",
                f"{one} in ({two}, {three})",
                f"{one} not in ({two})",
                f"{one} like {two}",
                f"{one} rlike 'a+'",
                f"{one} is null",
                f"{one} is not null",
                f"{one} is true",
                f"not {one}",
                f"not {one} = {two}",
            )
        )

    def _other(self, depth: int) -> str:
        one, two = self._operand(depth), self._operand(depth)
        several = self._random.choice((*_SEVERAL, one))
        return self._random.choice(
            (
                f"-{one}",
                f"~{one}",
                f"{several}[{two}]",
                f"struct({one}, {two} as n).n",
                f"struct(i, {two} as n)",
                f"named_struct('a', {one}, 'b', {two}).b",
                f"named_struct('a', {one})",
                f"array({one}, {two})",
                f"map({one}, {two})",
                f"({one})",
                self._random.choice(_LAMBDAS).format(several, two),
            )
        )
