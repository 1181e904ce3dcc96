"""The process whose forks Spark's Python workers are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

pytestmark = [pytest.mark.integration, pytest.mark.spark]


def _seen(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import os
    import sys
    from pathlib import Path

    import pyarrow

    for _ in rows:
        daemon = Path(f"/proc/{os.getppid()}")
        said = {
            "daemon": (daemon / "cmdline").read_text().replace("\0", " "),
            "shares": str("libarrow" in (daemon / "maps").read_text()),
            "pandas": str("pandas" in sys.modules),
        }
        yield pyarrow.RecordBatch.from_pydict({name: [value] for name, value in said.items()})


def test_workers_are_forks_of_a_process_that_has_loaded_what_they_need(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    # By value: the worker need not import this module.
    _seen.__module__ = "__main__"
    # Workers serve one query after the other, and functions of users' load pandas; those with other variables are new.
    monkeypatch.setitem(spark.sparkContext.environment, "STREAMSAPP_TEST_WORKERS", "new ones")
    seen = spark.range(0, 1, 1, 1).mapInArrow(_seen, "daemon string, shares string, pandas string").toArrow()
    [row] = seen.to_pylist()
    assert "streams_runtime.pipeline.spark.worker_daemon pyspark.worker" in row["daemon"]
    assert (row["shares"], row["pandas"]) == ("True", "False")
