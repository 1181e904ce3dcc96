"""A pod's tags: its own labels, then its node's, and a warning with what to do where neither can be had."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from streams_runtime.kubernetes.pod_status_api import ApiAccess, PodIdentity
from streams_runtime.kubernetes.pod_tags import pod_tags

ZONE, RACK = "topology.kubernetes.io/zone", "example.com/rack"
POD, NODE = "/api/v1/namespaces/shop/pods/orders-0", "/api/v1/nodes/n1"


class ApiServer(httpx.BaseTransport):
    """Answers by path; an exception is raised once."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        assert request.headers["Authorization"] == "Bearer token"
        self.asked.append(request.url.path)
        answer = self.answers[request.url.path]
        if isinstance(answer, list):
            answer = answer.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, httpx.Response) else httpx.Response(200, json=answer)


def labelled(**more: Any) -> dict[str, Any]:
    return {"metadata": {"labels": more.pop("labels", None)}, "spec": {"nodeName": "n1"}, **more}


def ask(folder: Path, server: ApiServer, keys: Sequence[str] = (ZONE, RACK)) -> dict[str, str]:
    (folder / "token").write_text("token\n")
    access = ApiAccess("http://api:6443", folder / "token", folder / "ca.crt")
    return pod_tags(access, PodIdentity("orders-0", "shop"), keys, lambda _: None, server)


def test_the_pods_labels_come_before_its_nodes_and_other_labels_are_no_tags(tmp_path: Path) -> None:
    server = ApiServer(
        {POD: labelled(labels={ZONE: "a", "app": "x"}), NODE: labelled(labels={ZONE: "b", RACK: "7", "os": "linux"})}
    )
    assert ask(tmp_path, server) == {ZONE: "a", RACK: "7"}


def test_nobody_is_asked_without_tags_and_no_node_where_the_pod_has_all(tmp_path: Path) -> None:
    server = ApiServer({POD: labelled(labels={ZONE: "a"})})
    assert ask(tmp_path, server, []) == {}
    assert server.asked == []
    assert ask(tmp_path, server, [ZONE]) == {ZONE: "a"}
    assert server.asked == [POD]


def test_a_label_that_is_nowhere_or_empty_is_no_tag(tmp_path: Path) -> None:
    assert ask(tmp_path, ApiServer({POD: labelled(), NODE: labelled(labels={ZONE: ""})})) == {}


def test_a_pod_that_may_not_read_its_node_keeps_its_own_and_says_what_to_do(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = ApiServer({POD: labelled(labels={ZONE: "a"}), NODE: httpx.Response(403)})
    assert ask(tmp_path, server) == {ZONE: "a"}
    (said,) = [record.getMessage() for record in caplog.records]
    assert "has no label example.com/rack, and may not read those of its node n1" in said
    assert "rbac.nodeLabelNamespaces: [shop]" in said
    assert server.asked == [POD, NODE]


def test_an_api_server_that_is_away_is_asked_again_and_not_for_ever(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    away = httpx.ConnectError("refused")
    server = ApiServer({POD: [away, httpx.Response(503), labelled(labels={ZONE: "a", RACK: "7"})]})
    assert ask(tmp_path, server) == {ZONE: "a", RACK: "7"}
    assert not caplog.records
    assert ask(tmp_path, ApiServer({POD: [away] * 5})) == {}
    assert "the labels of the pod shop/orders-0 and its node are not known: refused" in caplog.text
