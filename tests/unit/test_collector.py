"""Python's collector does not look through what a client has loaded by the time Spark is ready."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from streams_runtime.cli.process.client_process import freeze_loaded_objects


@pytest.fixture(autouse=True)
def _nothing_spared() -> Iterator[None]:
    gc.unfreeze()
    yield
    gc.unfreeze()


def test_what_is_loaded_is_spared_once_spark_is_ready() -> None:
    freeze_loaded_objects(spark_ready=False)
    assert not gc.get_freeze_count()
    freeze_loaded_objects(spark_ready=True)
    spared = gc.get_freeze_count()
    assert spared > 0


def test_what_comes_later_is_looked_through_also_after_it_has_run_again() -> None:
    freeze_loaded_objects(spark_ready=True)
    spared = gc.get_freeze_count()
    later = [[number] for number in range(1_000)]
    freeze_loaded_objects(spark_ready=True)
    assert gc.get_freeze_count() <= spared  # what is no longer used is freed all the same
    assert any(each is later for each in gc.get_objects())  # which has none of what is spared
