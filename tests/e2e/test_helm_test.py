"""`helm test` of the release that this folder's tests use, in a pod of its own."""

from __future__ import annotations

import pytest
from e2e_kit import OPERATOR_NAMESPACE, RELEASE
from helm import helm
from kube_node import Node

pytestmark = pytest.mark.e2e


def test_helm_test_passes_shows_what_it_saw_and_takes_its_rights_back(node: Node, installed_operator: None):
    where = ("--namespace", OPERATOR_NAMESPACE)
    done = helm("test", RELEASE, *where, "--timeout=180s", cluster=node.cluster)
    assert "Phase:          Succeeded" in done.stdout
    log = node.cluster.kubectl("logs", f"{RELEASE}-streams-operator-test", *where).stdout
    assert f"acts by the Lease {RELEASE}-streams-operator" in log
    assert f"the API server takes a StreamsApplication in {OPERATOR_NAMESPACE}" in log
    assert log in done.stdout + done.stderr, "Helm shows the log by itself"
    left = node.cluster.kubectl("get", "serviceaccounts,roles,rolebindings", *where, "--output=name").stdout
    assert f"{RELEASE}-streams-operator-test" not in left
