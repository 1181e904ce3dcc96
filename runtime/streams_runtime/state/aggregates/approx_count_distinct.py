"""approx_count_distinct: a HyperLogLog sketch of Apache DataSketches, made by Spark and put together here."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

import datasketches
import pyarrow as pa

from streams_runtime.errors import ProcessorStateException
from streams_runtime.state.aggregates.aggregate_kind import Columns, Kind

LOG_REGISTERS = 12
"""2 to the power of it registers: the standard error is 1.04 / sqrt(4096), which is 1.6 %."""
_T = TypeVar("_T")


class DistinctCount(Kind):
    """How many different values there were, about; nulls are none.

    What is kept is the compact form that all of Apache DataSketches' libraries read, of four bits a register: 2 KiB at
    most, some bytes for a few values. The estimate depends on the values alone, not on how batches divided them.
    """

    parts = ("hll",)
    kept: ClassVar[Mapping[str, pa.DataType]] = {"hll": pa.binary()}

    def expressions(self, argument: str | None) -> Sequence[str]:
        # Of the hash, so that each type can be counted; a sketch of strings would leave the empty one out.
        return (f"hll_sketch_agg(if(({argument}) is null, null, xxhash64({argument})), {LOG_REGISTERS})",)

    def of_batch(self, given: Columns) -> Columns:
        return [_binary([None if each is None else _union(each) for each in given[0].to_pylist()])]

    def merge(self, old: Columns, new: Columns) -> Columns:
        rows = zip(old[0].to_pylist(), new[0].to_pylist(), strict=True)
        return [
            _binary([other if one is None else one if other is None else _union(one, other) for one, other in rows])
        ]

    def finish(self, parts: Columns) -> pa.ChunkedArray:
        estimates = [None if each is None else _estimate(each) for each in parts[0].to_pylist()]
        return pa.chunked_array([pa.array(estimates, pa.int64())])

    def finish_value(self, parts: Mapping[str, Any]) -> Any:
        found = parts["hll"]
        try:
            return None if found is None else _estimate(base64.b64decode(found, validate=True))
        except ProcessorStateException as error:
            raise ValueError(str(error)) from error


def _union(*sketches: bytes) -> bytes:
    def together() -> bytes:
        union = datasketches.hll_union(LOG_REGISTERS)
        for each in sketches:
            union.update(datasketches.hll_sketch.deserialize(each))
        found: bytes = union.get_result(datasketches.tgt_hll_type.HLL_4).serialize_compact()
        return found

    return _read(together)


def _estimate(stored: bytes) -> int:
    def estimated() -> int:
        sketch = datasketches.hll_sketch.deserialize(stored)
        union = datasketches.hll_union(LOG_REGISTERS)
        # With itself: a sketch that was never put together with another one has a second estimator, which knows the
        # order of its values, and so would say where batches began.
        union.update(sketch)
        union.update(sketch)
        found: float = union.get_estimate()
        return round(found)

    return _read(estimated)


def _read(read: Callable[[], _T]) -> _T:
    try:
        return read()
    except (ValueError, IndexError, RuntimeError) as error:
        raise ProcessorStateException(
            f"a stored sketch of approx_count_distinct can't be read ({error}). The changelog was written by something"
            " else: give the store a new name"
        ) from error


def _binary(values: list[bytes | None]) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values, pa.binary())])
