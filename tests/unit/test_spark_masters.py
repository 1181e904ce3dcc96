"""Where an instance's Spark may run, and the properties of a session on a standalone cluster."""

from __future__ import annotations

import threading

import pytest

from streams_runtime.api.checks.spark_checks import is_cluster, is_kubernetes, spark_mistakes
from streams_runtime.api.spec.resource import SparkSpec
from streams_runtime.errors import EnvironmentException
from streams_runtime.pipeline.spark.spark_session import spark_settings
from streams_runtime.pipeline.spark.standalone import Standalone


@pytest.mark.parametrize(
    ("master", "cluster"),
    [("local[*]", False), ("local[2]", False), ("spark://one:7077", True), ("spark://one:7077,two:7078", True)],
)
def test_masters_that_there_are(master: str, cluster: bool) -> None:
    assert list(spark_mistakes(SparkSpec(master=master, config={"spark.cores.max": 2}))) == []
    assert is_cluster(master) is cluster
    assert not is_kubernetes(master)


@pytest.mark.parametrize(
    "master", ["k8s://https://kubernetes.default.svc", "k8s://https://10.0.0.1:6443", "k8s://https://[fd00::1]:6443"]
)
def test_api_servers_that_make_executors(master: str) -> None:
    assert list(spark_mistakes(SparkSpec(master=master, config={"spark.executor.instances": 2}))) == []
    assert is_cluster(master)
    assert is_kubernetes(master)


@pytest.mark.parametrize(
    "master",
    [
        *("yarn", "local[0]", "spark://", "spark://one", "spark://one:7077,two"),
        *("k8s://x:1", "k8s://http://x:1", "k8s://https://x:0", "k8s://https://x:65536", "k8s://https://x/path"),
    ],
)
def test_masters_that_there_are_not(master: str) -> None:
    assert [each.path for each in spark_mistakes(SparkSpec(master=master))] == ["spec.spark.master"]


def test_a_driver_is_reached_by_the_address_that_faces_the_cluster() -> None:
    config = {"spark.cores.max": "3", "spark.jars": "mine.jar"}
    cluster = Standalone("spark://no-such-host.invalid:7077,127.0.0.1:7078", config)
    settings = cluster.settings(threading.Event())
    assert settings["spark.driver.host"] == settings["spark.driver.bindAddress"] == "127.0.0.1"
    assert settings["spark.default.parallelism"] == settings["spark.sql.shuffle.partitions"] == "3"
    *own, last = settings["spark.jars"].split(",")
    assert last == "mine.jar"
    assert all(jar.startswith("file://") for jar in own)
    assert own


def test_what_the_user_gives_is_over_what_a_cluster_needs_but_for_the_jars() -> None:
    cluster = {"spark.jars": "ours.jar,mine.jar", "spark.driver.host": "10.0.0.1"}
    given = {"spark.jars": "mine.jar", "spark.driver.host": "10.0.0.2"}
    settings = spark_settings("spark://one:7077", given, cluster=cluster)
    assert settings["spark.jars"] == "ours.jar,mine.jar"
    assert settings["spark.driver.host"] == "10.0.0.2"


@pytest.mark.parametrize(
    ("master", "given", "daemon"),
    [
        ("local[2]", {}, "streams_runtime.pipeline.spark.worker_daemon"),
        ("local[2]", {"spark.python.daemon.module": "mine"}, "mine"),
        ("spark://one:7077", {}, None),
    ],
)
def test_workers_on_this_machine_are_forks_of_a_process_with_what_they_need(
    master: str, given: dict[str, str], daemon: str | None
) -> None:
    assert spark_settings(master, given).get("spark.python.daemon.module") == daemon


def test_no_way_to_any_master() -> None:
    cluster = Standalone("spark://no-such-host.invalid:7077", {"spark.cores.max": "1"})
    with pytest.raises(EnvironmentException, match=r"no way to spark://no-such-host.*spec\.spark\.master"):
        cluster.settings(threading.Event())


def test_masters_by_address() -> None:
    cluster = Standalone("spark://one:7077,[::1]:7078", {})
    assert cluster.addresses == (("one", 7077), ("[::1]", 7078))
