"""Comparing what a side produced with what the data must give."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import orjson
from bench_data import Totals

EXAMPLES = 5
"""Differing keys named in an error."""

Decoder = Callable[[bytes], tuple[int, int]]


class WrongResultError(Exception):
    """A side computed something else than the data gives; its speed is then worth nothing."""


def decode_object(value: bytes) -> tuple[int, int]:
    """`{"total": 7, "n": 2}`: this project's values."""
    fields = orjson.loads(value)
    return fields["total"], fields["n"]


def decode_pair(value: bytes) -> tuple[int, int]:
    """`7,2`: the peer's values."""
    total, n = value.split(b",")
    return int(total), int(n)


def decode_any(value: bytes) -> tuple[int, int]:
    """Sum and count, whichever side wrote them."""
    return decode_object(value) if value.startswith(b"{") else decode_pair(value)


def decode_lines(lines: Iterable[bytes | str]) -> Totals:
    """Lines `{"key": "u1", "value": {"total": 7, "n": 2}}`: a store read through the HTTP server.

    Raises ValueError when the line is missing that says that the answer is whole.
    """
    *entries, last = (orjson.loads(line) for line in lines if line)
    if last != {"complete": {"records": len(entries)}}:
        raise ValueError(f"the answer of {len(entries)} records is not whole: {last}")
    return {entry["key"].encode(): (entry["value"]["total"], entry["value"]["n"]) for entry in entries}


def decode_dump(file: Path) -> Totals:
    """Lines of key, tab, JSON value: the peer's dump of its restored store."""
    rows = (line.split(b"\t", 1) for line in file.read_bytes().splitlines())
    return {key: decode_object(value) for key, value in rows}


def decode_all(values: dict[bytes, bytes], decode: Decoder) -> Totals:
    """The last values of a topic, decoded."""
    return {key: decode(value) for key, value in values.items()}


def require_equal(what: str, expected: Totals, found: Totals) -> None:
    """Raise WrongResultError naming the first differing keys when `found` is not exactly `expected`."""
    if found == expected:
        return
    differing = [key for key in expected.keys() | found.keys() if expected.get(key) != found.get(key)]
    examples = "; ".join(
        f"{key.decode()}: expected {expected.get(key)}, found {found.get(key)}" for key in sorted(differing)[:EXAMPLES]
    )
    raise WrongResultError(
        f"{what}: {len(differing):,} of {len(expected):,} keys differ ({len(found):,} found). {examples}"
    )


def require_count(what: str, expected: int, found: int) -> None:
    """Raise WrongResultError when a number of records is not the one the data gives."""
    if found != expected:
        raise WrongResultError(f"{what}: expected {expected:,} records, found {found:,}")
