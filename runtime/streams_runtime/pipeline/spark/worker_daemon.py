"""The process whose forks Spark's Python workers are (spark.python.daemon.module), with what they need loaded once.

A worker that loads it for itself takes a third of a second of a processor and 40 MiB more.
"""

from __future__ import annotations

import importlib

from streams_runtime.spared_imports import load_pyarrow_without_pandas

if __name__ == "__main__":
    load_pyarrow_without_pandas()
    importlib.import_module("streams_runtime.pipeline.pushdown.scan_ranges")  # and all that reading needs
    importlib.import_module("pyspark.daemon").manager()
