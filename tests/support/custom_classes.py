"""Classes that aggregate, as a user writes them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


class Trail:
    """Every record in its order, and how sessions came together: what another order, or another merge, would change."""

    state_type = "STRUCT<trail: STRING, n: BIGINT>"

    def zero(self) -> dict[str, Any]:
        return {"trail": "", "n": 0}

    def add(self, state: dict[str, Any], records: pa.RecordBatch) -> dict[str, Any]:
        for value in records["a"].to_pylist():
            state["trail"] += f",{'null' if value is None else value}"
        state["n"] += len(records)
        return state

    def merge(self, earlier: dict[str, Any], later: dict[str, Any]) -> dict[str, Any]:
        return {"trail": f"[{earlier['trail']}|{later['trail']}]", "n": earlier["n"] + later["n"]}


class Folded:
    """A number that depends on the order of the records."""

    state_type = "BIGINT"

    def zero(self) -> int:
        return 6

    def add(self, state: int, records: pa.RecordBatch) -> int:
        for value in records["v"].to_pylist():
            state = (state * 31 + (value or 0)) & 0xFFFFF
        return state


class Newest:
    """The newest three records whole, with a result that is not the state; it lacks a merge."""

    state_type = "ARRAY<STRUCT<at: TIMESTAMP, a: BIGINT, half: DOUBLE, raw: BINARY>>"
    result_type = "STRUCT<days: ARRAY<DATE>, most: DOUBLE>"

    def zero(self) -> list[dict[str, Any]]:
        return []

    def add(self, state: list[dict[str, Any]], records: pa.RecordBatch) -> list[dict[str, Any]]:
        return [*state, *records.to_pylist()][-3:]

    def result(self, state: list[dict[str, Any]]) -> dict[str, Any]:
        return {"days": [each["at"].date() for each in state], "most": max(each["half"] or 0.0 for each in state)}


class Failing(Trail):
    """Fails over the number 13, and gives what is of another type for 14, or has another field for 15."""

    def add(self, state: dict[str, Any], records: pa.RecordBatch) -> dict[str, Any]:
        numbers = records["a"].to_pylist()
        if 13 in numbers:
            raise KeyError("thirteen")
        if 14 in numbers:
            return state | {"n": "many"}
        return state | {"m": 1} if 15 in numbers else super().add(state, records)

    def merge(self, earlier: dict[str, Any], later: dict[str, Any]) -> dict[str, Any]:
        raise ArithmeticError("never together")


class WithoutAdd:
    state_type = "BIGINT"

    def zero(self) -> int:
        return 0

    def ad(self, state: int, records: pa.RecordBatch) -> int:
        return state + len(records)


class WithoutType:
    def zero(self) -> int:
        return 0

    def add(self, state: int, records: pa.RecordBatch) -> int:
        return state + len(records)


class OfMaps(WithoutType):
    state_type = "MAP<STRING, BIGINT>"


class OfNoType(WithoutType):
    state_type = "BIGIN T"


class NotMade(WithoutType):
    state_type = "BIGINT"

    def __init__(self) -> None:
        raise OSError("no configuration")


def no_class() -> int:
    return 1


class WithoutResult(Trail):
    result_type = "BIGINT"
