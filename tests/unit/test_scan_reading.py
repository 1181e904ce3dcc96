"""What a scan reads by itself, and which records it leaves to Spark."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from streams_runtime.kafka.consumer.record_table import LATEST_TIME, RAW_SCHEMA, microseconds
from streams_runtime.pipeline.formats.json_read import json_reader
from streams_runtime.pipeline.pushdown.scanned_records import formats_of

READER = json_reader(pa.schema([("n", pa.int64())]))


def whole(keys: list[bytes | None], times: list[int]) -> list[bool]:
    formats = formats_of("string", READER)
    assert formats is not None
    columns = {
        "key": pa.array(keys, pa.binary()),
        "value": pa.array([b'{"n": 1}'] * len(keys), pa.binary()),
        "timestamp": pa.array(microseconds(np.array(times, np.int64))).cast(RAW_SCHEMA.field("timestamp").type),
    }
    found: list[bool] = formats.read(columns.__getitem__).whole.to_pylist()
    return found


def test_only_keys_that_are_no_utf_8_are_left() -> None:
    keys = [b"a", b"\xff", None, "ü".encode(), b"a\xc3", b""]
    assert whole(keys, [5] * 6) == [True, False, True, True, False, True]


def test_only_times_that_no_record_may_have_are_left() -> None:
    times = [-(2**63), -1, 0, LATEST_TIME, LATEST_TIME + 1, 2**63 - 1]
    assert whole([b"a"] * 6, times) == [False, False, True, True, False, False]
    assert whole([b"\xff", b"a"], [-1, 5]) == [False, True]
