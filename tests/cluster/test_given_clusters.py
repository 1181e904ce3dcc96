"""Clusters that tests do not make themselves: one by a kubeconfig and a context of it, and one of kind.

kind and docker are stand-ins that note how they are called; the cluster that they hand out is a real API server.
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from kube_cluster import Cluster
from kube_sources import existing_cluster, kind_cluster

pytestmark = pytest.mark.cluster

STAND_IN = """#!/bin/sh
echo "$(basename "$0") $*" >> {calls}
case "$1 $2" in
  "create cluster") cat > {config}; cp {kubeconfig} "$6" ;;
esac
"""


@pytest.fixture
def two_contexts(api_server: Cluster, tmp_path: Path) -> Path:
    """A kubeconfig whose current context is of a cluster that nobody serves."""
    found = json.loads(api_server.kubectl("config", "view", "--raw", "--minify", "--flatten", "--output=json").stdout)
    (cluster,), (user,) = found["clusters"], found["users"]
    away = {"name": "away", "cluster": {"server": "https://127.0.0.1:1"}}
    contexts = [
        {"name": name, "context": {"cluster": of["name"], "user": user["name"]}}
        for name, of in (("here", cluster), ("gone", away))
    ]
    file = tmp_path / "kubeconfig"
    file.write_text(json.dumps({**found, "clusters": [cluster, away], "contexts": contexts, "current-context": "gone"}))
    return file


def account_is_there(api_server: Cluster) -> bool:
    return api_server.get("serviceaccount", "streams-operator-tests", namespace="kube-system") is not None


def test_a_context_of_a_kubeconfig_is_used_and_the_account_for_it_goes_with_the_block(
    api_server: Cluster, two_contexts: Path
) -> None:
    with existing_cluster(two_contexts, "here") as cluster:
        assert cluster.endpoint["server"] == api_server.endpoint["server"]
        assert cluster.kubectl("auth", "whoami").stdout.count("streams-operator-tests") == 1
        assert cluster.kubectl("auth", "can-i", "*", "*", "--all-namespaces").stdout.strip() == "yes"
        assert account_is_there(api_server)
    assert not account_is_there(api_server)


@pytest.mark.parametrize(("context", "words"), [("", "127.0.0.1:1"), ("nowhere", "cannot locate context nowhere")])
def test_a_context_that_leads_nowhere_is_named(two_contexts: Path, context: str, words: str) -> None:
    with pytest.raises(AssertionError, match=words), existing_cluster(two_contexts, context):
        pytest.fail("it was used")


def test_kind_makes_three_workers_which_get_the_images_and_takes_all_away(
    api_server: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, config = tmp_path / "calls", tmp_path / "config"
    words = STAND_IN.format(calls=calls, config=config, kubeconfig=api_server.kubeconfig)
    for name in ("kind", "docker"):
        program = tmp_path / "programs" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(words)
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path / 'programs'}:{os.environ['PATH']}")
    with kind_cluster() as node:
        assert node.cluster.kubectl("auth", "can-i", "*", "*", "--all-namespaces").stdout.strip() == "yes"
        image = node.load("runtime")
        assert node.load("runtime") == image
        assert node.machines == ()
    made = json.loads(config.read_text())
    assert [each["role"] for each in made["nodes"]] == ["control-plane", "worker", "worker", "worker"]
    create, build, load, delete = calls.read_text().splitlines()
    name = create.split()[4]
    assert create.startswith(f"kind create cluster --name {name} --kubeconfig ")
    assert create.endswith(" --wait 120s --config -")
    assert build.startswith(f"docker build --target=runtime --tag={image} ")
    assert load == f"kind load docker-image {image} --name {name}"
    assert delete == f"kind delete cluster --name {name}"
    assert not account_is_there(api_server)
