"""What tests share: one broker a lane, one Spark session a run, and names that no other test has."""

from __future__ import annotations

import gc
import os
import re
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from example_counts import examples
from kept_logs import logs_of
from short_jvms import compile_less

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest_plugins = [
    "driver_fixtures",
    "e2e_fixtures",
    "kube_fixtures",
    "lanes",
    "long_runs",
    "not_run",
    "oracle_fixtures",
    "pieces",
    "pytester",
    "query_fixtures",
    "real_registry",
    "red_logs",
    "run_times",
    "s3_server",
]

BOOTSTRAP_VARIABLE = "STREAMSAPP_TEST_BOOTSTRAP"
"""The address of a broker to test against; without it a run starts its own."""

_LONGEST_NAME = 40

compile_less()

# Examples take as long as a loaded machine lets them; the run's own time limit ends a hang.
hypothesis.settings.register_profile("project", deadline=None, max_examples=examples(100))
# A check judges the change in hand: the examples that it tries are the same each time. All other runs try new ones.
hypothesis.settings.register_profile("check", deadline=None, derandomize=True, max_examples=examples(100))
hypothesis.settings.load_profile("check" if os.environ.get("CI") == "true" else "project")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[Any]:
    """Tests and modules live as long as the run: keep the garbage collector from looking through them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@dataclass(frozen=True, slots=True)
class SharedBroker:
    """The run's broker. A test that stops or kills one starts its own EmbeddedBroker."""

    bootstrap_servers: str


@pytest.fixture(scope="session")
def broker() -> Iterator[SharedBroker]:
    """One real broker for all tests of a lane, started by the first that asks for it."""
    if address := os.environ.get(BOOTSTRAP_VARIABLE):
        yield SharedBroker(address)
        return
    from streams_runtime.kafka.broker.embedded_broker import EmbeddedBroker

    with (
        tempfile.TemporaryDirectory(prefix="streamsapp-test-broker-") as folder,
        EmbeddedBroker(Path(folder)) as running,
        logs_of(Path(folder)),
    ):
        yield SharedBroker(running.bootstrap_servers)


@pytest.fixture
def namespace(request: pytest.FixtureRequest) -> str:
    """A prefix for topics, groups and application ids that no other test has, on the same broker or not."""
    words = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).removeprefix("test-").strip("-")
    return f"{words[:_LONGEST_NAME].strip('-')}-{uuid.uuid4().hex[:8]}"


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one Spark session of the run, on two cores of this machine. It goes through expressions as they are."""
    from streams_runtime.testing.spark_for_tests import spark_session

    with spark_session("tests", master="local[2]") as session:
        yield session


@pytest.fixture
def compiled_queries(spark: SparkSession) -> Iterator[None]:
    """That session makes classes of queries, as it does in pods."""
    from streams_runtime.testing.spark_for_tests import INTERPRETED

    for name in INTERPRETED:
        spark.conf.unset(name)
    yield
    for name, value in INTERPRETED.items():
        spark.conf.set(name, value)


@pytest.fixture
def pytester(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Runs of pytest inside tests load no plugins of other packages, which takes a second each time."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    return pytester
