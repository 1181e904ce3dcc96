"""The embedded broker's settings and its folder, before any JVM starts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from streams_runtime.errors import EnvironmentException
from streams_runtime.kafka.broker.broker_cluster import EmbeddedCluster
from streams_runtime.kafka.broker.broker_config import (
    ClusterNode,
    Ports,
    as_properties_file,
    cluster_properties,
    logging_properties,
    server_properties,
)
from streams_runtime.kafka.broker.broker_folder import BrokerFolder

HOLDER = """
import pathlib, sys
from streams_runtime.kafka.broker.broker_folder import BrokerFolder

folder = BrokerFolder(pathlib.Path(sys.argv[1]))
folder.acquire()
print("held", flush=True)
sys.stdin.read()
"""


def test_the_broker_listens_on_the_loopback_address_only():
    listeners = server_properties(Path("/d"), 9092, 9093)["listeners"]
    assert listeners == "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"


def test_a_property_that_is_given_replaces_the_projects_own():
    assert (
        server_properties(Path("/d"), 1, 2, {"auto.create.topics.enable": "true"})["auto.create.topics.enable"]
        == "true"
    )


@pytest.mark.parametrize("name", ["listeners", "advertised.listeners", "log.dirs", "controller.quorum.voters"])
def test_a_property_can_not_contradict_port_and_folder(name):
    plain = server_properties(Path("/d"), 1, 2)
    assert server_properties(Path("/d"), 1, 2, {name: "elsewhere"}) == plain


def test_one_node_replicates_nothing_and_keeps_old_records():
    properties = server_properties(Path("/d"), 1, 2)
    factors = {name: value for name, value in properties.items() if name.endswith(("replication.factor", "min.isr"))}
    assert set(factors.values()) == {"1"}
    assert properties["log.retention.ms"] == "-1"


def test_each_node_of_a_cluster_listens_at_its_own_ports_and_is_found_where_it_says():
    advertised = {1: Ports(11, 12, 13), 2: Ports(21, 22, 23), 3: Ports(31, 32, 33)}
    properties = cluster_properties(Path("/d"), ClusterNode(2, "id", Ports(4, 5, 6), advertised))
    listeners = "PLAINTEXT://127.0.0.1:{},BROKERS://127.0.0.1:{},CONTROLLER://127.0.0.1:{}"
    assert properties["node.id"] == "2"
    assert properties["listeners"] == listeners.format(4, 5, 6)
    assert properties["advertised.listeners"] == listeners.format(21, 22, 23)
    assert properties["controller.quorum.voters"] == "1@127.0.0.1:13,2@127.0.0.1:23,3@127.0.0.1:33"


def test_a_cluster_replicates_three_times_and_needs_two_replicas_unless_told_otherwise():
    node = ClusterNode(1, "id", Ports(1, 2, 3), {1: Ports(1, 2, 3)})
    properties = cluster_properties(Path("/d"), node, {"min.insync.replicas": "3", "listeners": "elsewhere"})
    factors = {name: value for name, value in properties.items() if name.endswith("replication.factor")}
    assert set(factors.values()) == {"3"}
    assert {value for name, value in properties.items() if name.endswith("min.isr")} == {"2"}
    assert properties["min.insync.replicas"] == "3"
    assert properties["listeners"].startswith("PLAINTEXT://127.0.0.1:1,")


@pytest.mark.parametrize("size", [0, 1, 2, 4])
def test_brokers_that_could_not_go_on_without_one_are_no_cluster(tmp_path, size):
    with pytest.raises(EnvironmentException, match=rf"{size} brokers can't be a cluster.*1, 3 or 5"):
        EmbeddedCluster(tmp_path, size)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_keeps_the_number_of_its_brokers_and_their_ids(tmp_path):
    made = EmbeddedCluster(tmp_path, 3)
    assert sorted(made.brokers) == [1, 2, 3]
    with pytest.raises(EnvironmentException, match=r"holds the data of 3 brokers, and 5 are to start.*--brokers 3"):
        EmbeddedCluster(tmp_path, 5)
    first = (tmp_path / "cluster.json").read_bytes()
    EmbeddedCluster(tmp_path, 3)
    assert (tmp_path / "cluster.json").read_bytes() == first


def test_a_single_brokers_folder_does_not_become_a_clusters(tmp_path):
    BrokerFolder(tmp_path).data.mkdir()
    with pytest.raises(EnvironmentException, match="holds the data of 1 broker, and 3 are to start"):
        EmbeddedCluster(tmp_path, 3)
    assert not (tmp_path / "cluster.json").exists()


def test_a_clusters_folder_that_can_not_be_made_is_refused_by_name(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(EnvironmentException, match="file/d can't be used: not a directory"):
        EmbeddedCluster(tmp_path / "file" / "d")


def test_brokers_of_a_cluster_have_the_given_port_and_those_behind_it(tmp_path):
    assert EmbeddedCluster(tmp_path, port=9092).bootstrap_servers == "127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:9094"


def test_a_cluster_is_found_where_its_advertiser_says(tmp_path):
    found = EmbeddedCluster(tmp_path, port=9092, advertise=lambda node, ports: Ports(node, ports.brokers, 7))
    assert found.bootstrap_servers == "127.0.0.1:1,127.0.0.1:2,127.0.0.1:3"


def test_heartbeats_come_several_times_in_a_session():
    properties = server_properties(Path("/d"), 1, 2)
    session = int(properties["group.consumer.session.timeout.ms"])
    assert int(properties["group.consumer.heartbeat.interval.ms"]) * 3 <= session
    assert int(properties["group.consumer.min.session.timeout.ms"]) <= session


def test_special_characters_survive_a_properties_file():
    text = as_properties_file({"log.dirs": "/a b/ü:\\x", "key with = and #": "!"})
    assert text == "key\\ with\\ \\=\\ and\\ \\#=\\!\nlog.dirs=/a\\ b/\\u00fc\\:\\\\x\n"


def test_the_log_goes_to_the_folder_and_not_to_the_console():
    text = logging_properties(Path("/d/logs"))
    assert "fileName = /d/logs/server.log\n" in text
    assert "Console" not in text


def test_a_folder_in_use_is_refused_with_the_process_that_uses_it(tmp_path):
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(EnvironmentException, match=f"in use by process {holder.pid}"):
            BrokerFolder(tmp_path).acquire()
        holder.kill()
    folder = BrokerFolder(tmp_path)
    folder.acquire()
    assert (tmp_path / "broker.lock").read_text() == str(os.getpid())
    folder.release()


def test_a_folder_that_can_not_be_made_is_refused_by_name(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(EnvironmentException, match="file/d can't be used: not a directory"):
        BrokerFolder(tmp_path / "file" / "d").acquire()


def test_an_unfinished_format_is_done_again(tmp_path):
    folder = BrokerFolder(tmp_path)
    assert folder.needs_format()
    folder.data.mkdir()
    (folder.data / "meta.properties").touch()
    assert folder.needs_format()
    assert not folder.data.exists()


def test_storage_that_a_broker_has_used_is_not_formatted(tmp_path):
    folder = BrokerFolder(tmp_path)
    (folder.data / "__cluster_metadata-0").mkdir(parents=True)
    assert not folder.needs_format()
    assert folder.data.exists()


def test_a_folder_with_other_files_is_never_wiped(tmp_path):
    folder = BrokerFolder(tmp_path)
    folder.data.mkdir()
    (folder.data / "thesis.tex").touch()
    with pytest.raises(EnvironmentException, match=r"thesis\.tex"):
        folder.needs_format()
    assert (folder.data / "thesis.tex").exists()


def test_the_last_words_are_the_end_of_both_logs(tmp_path):
    folder = BrokerFolder(tmp_path)
    folder.logs.mkdir()
    folder.log.write_text("one\ntwo\nthree\n")
    folder.console.write_text("four\n")
    assert folder.last_words(2) == "two\nthree\nfour"
