"""Functions of which the types of the arguments decide nothing but whether Spark takes them.

What a parameter takes is a letter. In small letters Spark makes nothing else of an argument; in capital letters it
makes texts of all single values, and numbers, times and conditions of texts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from streams_runtime.api.expressions.coercion import INTEGRAL, TIMES, is_atomic, is_number
from streams_runtime.api.expressions.spark_types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    STRING,
    TIMESTAMP,
    VOID,
    SparkType,
)

TAKES: Mapping[str, tuple[str, Callable[[SparkType], bool]]] = {
    "*": ("any value", lambda _: True),
    "S": ("STRING", is_atomic),
    "N": ("a number", lambda kind: is_number(kind) or kind == STRING),
    "T": ("DATE or TIMESTAMP", lambda kind: kind in TIMES or kind == STRING),
    "B": ("BINARY or STRING", lambda kind: kind in (BINARY, STRING)),
    "C": ("BOOLEAN", lambda kind: kind in (BOOLEAN, STRING)),
    "s": ("STRING", lambda kind: kind == STRING),
    "n": ("a number", is_number),
    "i": ("a whole number", lambda kind: kind in INTEGRAL),
    "h": ("INT", lambda kind: kind in INTEGRAL - {BIGINT} or kind == STRING),
    "k": ("a whole number or BOOLEAN", lambda kind: kind in INTEGRAL or kind == BOOLEAN),
    "d": ("DATE", lambda kind: kind == DATE),
    "t": ("TIMESTAMP", lambda kind: kind == TIMESTAMP),
    "a": ("ARRAY", lambda kind: kind.name == "array"),
    "m": ("MAP", lambda kind: kind.name == "map"),
    "z": ("ARRAY or MAP", lambda kind: kind.name in ("array", "map")),
}
"""What a letter stands for in words, and whether a type fits; VOID fits all of them."""


@dataclass(frozen=True, slots=True)
class Signature:
    """`parameters`, a letter each; `least` of them have to be there. `result`: the name of a type without parts."""

    parameters: str
    least: int
    result: str


_TABLE = """
upper lower ucase lcase initcap S string
ltrim rtrim trim btrim SS? string
encode SS binary
unhex S binary
to_date SS? date
length len char_length character_length bit_length octet_length ascii S int
soundex s string
crc32 B bigint
md5 sha sha1 B string
base64 B string
unbase64 S binary
url_encode url_decode S string
space chr char N string
bin N string
sqrt exp expm1 ln log2 log10 log1p cbrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh N double
cot degrees radians rint signum sign N double
isnan N boolean
factorial N bigint
bit_count k int
dayofmonth day dayofweek dayofyear month quarter year weekday weekofyear T int
hour minute T int
last_day T date
monthname dayname T string
unix_date d int
unix_micros unix_millis unix_seconds t bigint
timestamp_seconds n timestamp
timestamp_millis timestamp_micros i timestamp
date_from_unix_date N date
from_unixtime NS? string
unix_timestamp to_unix_timestamp TS? bigint
size cardinality z int
array_size a int
isnull isnotnull * boolean
typeof * string
atan2 hypot pow power NN double
add_months TN date
date_add date_sub Th date
datediff date_diff TT int
months_between TTC? double
next_day TS date
date_format TS string
from_utc_timestamp to_utc_timestamp TS timestamp
date_trunc ST timestamp
trunc TS date
contains startswith endswith SS boolean
instr SS int
find_in_set SS int
locate position SSN? int
levenshtein SSN? int
repeat SN string
translate replace SSS? string
split SSN? array<string>
split_part SSN string
substring_index SSN string
regexp_replace SSSN? string
regexp_extract SSN? string
regexp_count regexp_instr SS int
regexp_like SS boolean
sha2 BN string
get_json_object ss string
json_array_length s int
make_date NNN date
conv SNN string
"""


def _signatures(table: str) -> dict[str, Signature]:
    found: dict[str, Signature] = {}
    for line in table.strip().splitlines():
        *names, parameters, result = line.split()
        letters = parameters.replace("?", "")
        least = parameters.index("?") - 1 if "?" in parameters else len(letters)
        found |= dict.fromkeys(names, Signature(letters, least, result))
    return found


SIGNATURES: Mapping[str, Signature] = _signatures(_TABLE)


def fits(letter: str, kind: SparkType) -> bool:
    """Whether Spark takes a value of the type for such a parameter."""
    return kind == VOID or TAKES[letter][1](kind)
