"""Spark for tests: the session that runs already, or one for as long as it is needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from streams_runtime.pipeline.spark.spark_session import SparkSession, is_running, open_session

INTERPRETED: Mapping[str, str] = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Spark goes through expressions as they are. Classes of each query, which it makes otherwise, take a fifth of the time
of a test with few records.
"""


@contextmanager
def spark_session(
    name: str = "topology-tests", master: str = "local[*]", config: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """Run Spark inside the block. It starts in 5 to 10 s, so let all tests of a run share one session.

    A session that this process has already is used as it is, but for SQL settings that the runtime needs, and goes on;
    one that is started here is stopped at the end, and makes no classes of queries unless `config` says so.

    Raises:
        EnvironmentException: Java or Spark's jars can't be found; the message says what to install.
    """
    borrowed = is_running()
    session = open_session(name, master, config if borrowed else {**INTERPRETED, **(config or {})})
    try:
        yield session
    finally:
        if not borrowed:
            session.stop()
