"""Texts that are JSON for the columns of a schema, that nearly are, and that are none."""

from __future__ import annotations

import json

from hypothesis import strategies as st

_TIMES = [
    "2024-01-02T03:04:05.123456Z",
    "2024-01-02 03:04:05",
    "2024-02-30T00:00:00Z",
    "1582-10-10T00:00:00Z",
    "2024-01-02T24:00:00Z",
    "2024-01-02T03:04:60Z",
    "2024-01-02T03:04:05.1234567Z",
    "2024-01-02T03:04:05+01:00",
    "2024-01-02",
    "12:00",
]
_LITERALS = ["null", "true", "false", "NaN", "Infinity", "-Infinity", "Inf", "INF", "-INF", "nan", "1.0", "1e3", "-0"]
_LITERALS += ["007", "+1", ".5", "1.", "1e400", "5e-324", "0.1", "1E-2", "9223372036854775808", "-9223372036854775808"]
_LITERALS += [
    "2147483648",
    "12345678901234567890.5",
    '"\\ud800"',
    '"\\ud83d\\ude00"',
    '"\\u0000"',
    '"\\\'"',
    '"NaN"',
    '"1"',
]
_texts = st.text(st.characters(blacklist_categories=["Cs"]), max_size=6).map(json.dumps)
_values = st.recursive(
    st.sampled_from(_LITERALS)
    | st.integers(-(2**65), 2**65).map(str)
    | st.floats().map(repr)
    | _texts
    | st.sampled_from(_TIMES).map(json.dumps),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: "[" + ",".join(items) + "]")
        | st.lists(st.tuples(st.sampled_from(["x", "y", "a"]), inner), max_size=3).map(
            lambda fields: "{" + ",".join(f'"{name}": {value}' for name, value in fields) + "}"
        )
    ),
    max_leaves=4,
)
# As each column has it, so that whole records are read at times.
_FITTING = {
    "a": st.integers(-(2**63), 2**63 - 1).map(str),
    "s": _texts,
    "d": st.floats(allow_nan=False, allow_infinity=False).map(repr) | st.integers(-(10**25), 10**25).map(str),
    "b": st.sampled_from(["true", "false"]),
    "t": st.sampled_from(_TIMES).map(json.dumps),
    "n": st.integers(-(2**31), 2**31 - 1).map(lambda x: f'{{"x": {x}}}'),
    "l": st.lists(st.integers(-(2**31), 2**31 - 1), max_size=3).map(json.dumps),
}


def _field(name: str) -> st.SearchStrategy[str]:
    fitting = _FITTING.get(name)
    # Spark reads any number as a time, and Python has none for most of them.
    other = st.sampled_from(["5", "1.5", "true", "[]", '"x"']) if name == "t" else _values
    values = other if fitting is None else st.one_of(fitting, fitting, fitting, st.just("null"), other)
    return values.map(lambda value: f'"{name}":{value}')


_objects = st.lists(st.sampled_from([*_FITTING, "z"]).flatmap(_field), max_size=4).map(
    lambda fields: "{" + ",".join(fields) + "}"
)
_written = st.one_of(
    _objects,
    _objects,
    _objects,
    st.tuples(st.sampled_from(["", " ", "\n", "x", "[", "\ufeff", "\x00", "{"]), _objects).map("".join),
    st.tuples(_objects, st.sampled_from(["", " ", "\n", "x", "]", "}", "\x00", "//", " {}"])).map("".join),
    st.tuples(_objects, st.integers(0, 40)).map(lambda cut: cut[0][: cut[1]]),
    _values,
)
JSON_TEXTS = st.one_of(
    _written.map(str.encode),
    _written.map(str.encode),
    st.tuples(_written.map(str.encode), st.integers(0, 30), st.binary(min_size=1, max_size=2)).map(
        lambda parts: parts[0][: parts[1]] + parts[2] + parts[0][parts[1] :]
    ),
)
"""For the columns a BIGINT, s STRING, d DOUBLE, b BOOLEAN, t TIMESTAMP, n STRUCT<x: INT>, l ARRAY<INT>."""
