"""Where an instance's Spark may run, and the properties of a session on a cluster."""

from __future__ import annotations

import pytest

from streams_runtime.api.models import SparkSpec
from streams_runtime.api.spark_checks import is_cluster, spark_mistakes
from streams_runtime.pipeline.cluster import cluster_settings, masters_of


@pytest.mark.parametrize(
    ("master", "cluster"),
    [("local[*]", False), ("local[2]", False), ("spark://one:7077", True), ("spark://one:7077,two:7078", True)],
)
def test_masters_that_there_are(master: str, cluster: bool) -> None:
    assert list(spark_mistakes(SparkSpec(master=master, config={"spark.cores.max": 2}))) == []
    assert is_cluster(master) is cluster


@pytest.mark.parametrize("master", ["yarn", "local[0]", "spark://", "spark://one", "spark://one:7077,two", "k8s://x:1"])
def test_masters_that_there_are_not(master: str) -> None:
    assert [each.path for each in spark_mistakes(SparkSpec(master=master))] == ["spec.spark.master"]


def test_a_driver_is_reached_by_the_address_that_faces_the_cluster() -> None:
    config = {"spark.cores.max": "3", "spark.jars": "mine.jar"}
    settings = cluster_settings("spark://no-such-host.invalid:7077,127.0.0.1:7078", config)
    assert settings["spark.driver.host"] == settings["spark.driver.bindAddress"] == "127.0.0.1"
    assert settings["spark.default.parallelism"] == settings["spark.sql.shuffle.partitions"] == "3"
    *own, last = settings["spark.jars"].split(",")
    assert last == "mine.jar"
    assert all(jar.startswith("file://") for jar in own)
    assert own


def test_no_way_to_any_master() -> None:
    with pytest.raises(OSError, match=r"not known|resolution"):
        cluster_settings("spark://no-such-host.invalid:7077", {"spark.cores.max": "1"})


def test_masters_by_address() -> None:
    assert masters_of("spark://one:7077,[::1]:7078") == (("one", 7077), ("[::1]", 7078))
