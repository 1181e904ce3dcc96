"""What a release says of itself: its notes, and `helm test`, here with an operator that the test plays."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml
from helm import CHART, helm
from kube_cluster import Cluster
from waiting import eventually

from streams_runtime.api import parse_application

pytestmark = pytest.mark.cluster

GOLDEN = Path(__file__).parent / "golden"
SETS = sorted(file.name.removesuffix(".values.yaml") for file in GOLDEN.glob("*.values.yaml"))
_TIMEOUT = 60.0
Object = dict[str, Any]


@pytest.fixture(scope="module")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The chart with its notes as a manifest, since `helm template` shows no others."""
    folder = tmp_path_factory.mktemp("chart") / "chart"
    shutil.copytree(CHART, folder)
    templates = folder / "templates"
    text = (templates / "NOTES.txt").read_text(encoding="utf-8")
    (templates / "_notes.tpl").write_text(f'{{{{ define "notes" }}}}{text}{{{{ end }}}}', encoding="utf-8")
    (templates / "notes.yaml").write_text('notes: {{ include "notes" . | quote }}\n', encoding="utf-8")
    return folder


def notes(chart: Path, *options: str) -> str:
    """What `helm install` prints at its end."""
    common = ("--namespace", "streams-system", "--kube-version=1.34.4", "--show-only=templates/notes.yaml")
    return str(yaml.safe_load(helm("template", "release", str(chart), *common, *options).stdout)["notes"])


@pytest.mark.parametrize("values", SETS)
def test_the_application_of_the_notes_has_no_mistake_and_its_commands_name_what_is_there(chart: Path, values: str):
    text = notes(chart, f"--values={GOLDEN / values}.values.yaml")
    document = re.search(r"<<'END'\n(.*?)^  END$", text, re.MULTILINE | re.DOTALL)
    assert document is not None
    assert parse_application(yaml.safe_load(document[1])).metadata.name == "first"
    given = yaml.safe_load((GOLDEN / f"{values}.values.yaml").read_text()) or {}
    made = [each for each in yaml.safe_load_all((GOLDEN / f"{values}.expected.yaml").read_text()) if each]
    names = {(each["kind"], each["metadata"]["name"]) for each in made}
    for kind, name in re.findall(r"(deployment|service)/(\S+)", text):
        assert (kind.capitalize(), name) in names, text
    namespaces = {"streams-system", *(given.get("watchNamespaces") or ["default"])}
    assert set(re.findall(r"--namespace ([\w-]+)", text)) <= namespaces
    assert ("--all-namespaces" in text) == (not given.get("watchNamespaces"))
    assert ("kubectl apply --server-side" in text) == (given.get("crds") == {"install": False})


def test_the_notes_fit_the_values(chart: Path):
    usual = notes(chart)
    assert "WARNING" not in usual
    assert "serviceMonitor.enabled=true" in usual
    assert "webhook.enabled=true" in usual
    assert "takes their finalizer off" in usual
    opposite = "replicas=0,serviceMonitor.enabled=true,webhook.enabled=true,uninstall.releaseFinalizers=false"
    other = notes(chart, f"--set={opposite}")
    assert "WARNING: replicas is 0" in other
    assert "the ServiceMonitor release-streams-operator" in other
    assert "webhook.enabled=true" not in other
    assert "none of them can be deleted without an operator" in other


@pytest.fixture
def release(api_server: Cluster, namespace: str) -> Iterator[str]:
    """An installed release, whose name is also its namespace's and its objects'; gone afterwards."""
    name = f"streams-operator-{namespace[-8:]}"
    common = ("--namespace", name, "--create-namespace", "--take-ownership")
    helm("install", name, str(CHART), *common, cluster=api_server)
    eventually(lambda: api_server.is_established("streamsapplications.streamsoperator.io"), "it is established")
    yield name
    helm("uninstall", name, "--namespace", name, "--no-hooks", "--ignore-not-found", cluster=api_server)
    api_server.kubectl("delete", "namespace", name, "--ignore-not-found", "--wait=false")


@contextmanager
def answering(status: int) -> Iterator[int]:
    """The port of a server at 127.0.0.1 that gives every request this status."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/readyz" else 404)
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class HelmTest:
    """The hook's own account and script, without the pod that there is no node for."""

    def __init__(self, cluster: Cluster, release: str, *options: str) -> None:
        self.cluster, self.release = cluster, release
        common = ("--namespace", release, "--show-only", "templates/tests/release.yaml", "--kube-version=1.34.4")
        made = helm("template", release, str(CHART), *common, *options).stdout
        parts = [each for each in yaml.safe_load_all(made) if each]
        (pod,) = (each for each in parts if each["kind"] == "Pod")
        cluster.apply(*(each for each in parts if each["kind"] != "Pod"))
        self._container = pod["spec"]["containers"][0]
        self._kubeconfig = cluster.kubeconfig_for(f"{release}:{pod['spec']['serviceAccountName']}")

    def run(self, port: int, patience: float) -> subprocess.CompletedProcess[str]:
        """`port`: where the operator of the test answers. `patience`: seconds."""
        given = {each["name"]: each["value"] for each in self._container["env"]}
        given |= {"KUBECONFIG": str(self._kubeconfig), "OPERATOR_HEALTH_PORT": str(port)}
        return subprocess.run(
            [sys.executable, *self._container["command"][1:], *self._container["args"]],
            env=given | {"TEST_PATIENCE": str(patience)},
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
            check=False,
        )

    def play_operator(self) -> None:
        """A pod of the operator that has an address, and its Lease."""
        labels = {"app.kubernetes.io/name": "streams-operator", "app.kubernetes.io/instance": self.release}
        container = {"name": "operator", "image": "operator"}
        self.cluster.apply(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "operator-0", "namespace": self.release, "labels": labels},
                "spec": {"serviceAccountName": self.release, "containers": [container]},
            }
        )
        status = {"status": {"phase": "Running", "podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}}
        options = ("--namespace", self.release, "--subresource=status", "--type=merge")
        self.cluster.kubectl("patch", "pod", "operator-0", *options, f"--patch={json.dumps(status)}")
        self.renew()

    def renew(self, year: int | None = None) -> None:
        """The Lease, as its holder renews it; `year`: another one than this."""
        now = datetime.now(UTC)
        at = now if year is None else now.replace(year=year, day=1)
        self.cluster.apply(
            {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": self.release, "namespace": self.release},
                "spec": {"holderIdentity": "operator-0", "renewTime": at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")},
            }
        )


def test_helm_test_says_everything_that_is_wrong(api_server: Cluster, release: str):
    test = HelmTest(api_server, release, "--set=webhook.enabled=true")
    with answering(200) as port:
        done = test.run(port, patience=0)
        assert done.returncode == 1
        assert f"no pod of the operator in {release}" in done.stderr
        assert f"the Lease {release} can't be read: 404" in done.stderr
        assert f"the webhook does not refuse an unknown column in {release}: it was accepted" in done.stderr
        test.play_operator()
        test.renew(year=2001)
        assert f"no operator has renewed the Lease {release} within 15 s" in test.run(port, patience=0).stderr
    with answering(500) as port:
        assert "operator-0 is not ready: HTTP Error 500" in test.run(port, patience=0).stderr


def test_helm_test_passes_where_an_operator_answers_and_acts(api_server: Cluster, release: str, kube_namespace: str):
    test = HelmTest(api_server, release, f"--set=watchNamespaces={{{kube_namespace}}}")
    test.play_operator()
    with answering(200) as port:
        done = test.run(port, patience=30)
    assert done.returncode == 0, done.stderr
    assert f"the API server takes a StreamsApplication in {kube_namespace}" in done.stdout
    assert api_server.find("streamsapps", kube_namespace) == [], "nothing is created"
