"""Resources that can't be accepted: what stands in their condition, and what the webhook says."""

from __future__ import annotations

import base64
import copy
import json
import subprocess
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from kube_cluster import Cluster
from kube_reads import connection
from operator_kit import IMAGE, Object, operator, resource
from operator_stage import Stage
from refused_applications import REFUSED
from refused_groups import REFUSED_GROUPS
from waiting import eventually

from streams_operator.kube.kinds import APPLICATION
from streams_operator.model import Defaults
from streams_operator.webhook import verdict
from streams_runtime.api import KIND, read_application

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("crd")]


_OTHER_WORDS = ("select-twice", "internal-collision", "where-cut-at-a-comma", "field-cut-at-a-comma")
"""Their messages name the application, or hang on what the API server does not keep: the order of fields, and nulls."""


def _documents(namespace: str) -> dict[str, tuple[Object, str, str, str]]:
    """By the resource's name: the document, the field, parts of what was found and of the remedy."""
    documents = {}
    for number, (case, (given, *expected)) in enumerate((REFUSED | REFUSED_GROUPS).items()):
        document = copy.deepcopy(given)
        spec = document.get("spec")
        if (
            case in _OTHER_WORDS
            or not isinstance(spec, dict)
            or set(document) - {"apiVersion", "kind", "metadata", "spec"}
        ):
            continue
        if document.get("kind") != KIND or set(document["metadata"]) != {"name"} or "applicationId" in spec:
            continue
        spec.setdefault("kafka", {}).setdefault("bootstrapServers", "127.0.0.1:9")
        document["metadata"] = {"name": f"wrong-{number}", "namespace": namespace}
        if not read_application(document).mistakes:
            continue  # what was wrong with it has just been put right
        documents[f"wrong-{number}"] = (document, *expected)
    return documents


def test_each_mistake_is_told_by_the_api_server_or_in_the_condition_and_by_the_webhook(
    api_server: Cluster, kube_namespace: str, tmp_path: Path
):
    documents = _documents(kube_namespace)
    with operator(api_server, kube_namespace, tmp_path), connection(api_server.endpoint, api_server.token) as requests:
        path = f"{APPLICATION.path(kube_namespace)}?fieldValidation=Strict"
        answers = {name: requests.post(path, json=each[0]) for name, each in documents.items()}
        accepted = {name for name, answer in answers.items() if answer.status_code == HTTPStatus.CREATED}
        assert len(accepted) >= 30

        def told() -> bool:
            return all(
                each.get("status", {}).get("conditions") for each in api_server.find("streamsapps", kube_namespace)
            )

        eventually(told, "each has its condition")
        for found in api_server.find("streamsapps", kube_namespace):
            field, what, remedy = documents[found["metadata"]["name"]][1:]
            ready = next(each for each in found["status"]["conditions"] if each["type"] == "Ready")
            assert (ready["status"], ready["reason"], found["status"]["state"]) == ("False", "InvalidSpec", "INVALID")
            line = next((line for line in ready["message"].splitlines() if line.startswith(f"{field}: ")), "")
            assert what in line, (found["metadata"]["name"], ready["message"])
            assert remedy in line
            answer = verdict(_review(found), Defaults(IMAGE))["response"]
            assert (answer["allowed"], answer["status"]["message"]) == (False, ready["message"])
        # The rest is refused by the definition's schema, in words of its own.
        assert {answers[name].status_code for name in documents.keys() - accepted} <= {400, 422}
        assert not api_server.find("pods", kube_namespace)


def _review(resource: Object, operation: str = "CREATE") -> Object:
    given = {name: value for name, value in resource.items() if name != "status"}
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {"uid": "u", "operation": operation, "object": given},
    }


def test_running_pods_stay_as_they_are_while_the_spec_is_invalid(stage: Stage, tmp_path: Path):
    with operator(stage.cluster, stage.namespace, tmp_path):
        stage.apply(replicas=2)
        stage.reaches("RUNNING", "2/2")
        before = stage.uids()
        stage.merge('{"spec": {"spark": {"master": "yarn"}}}')
        eventually(lambda: stage.condition("Ready")[1] == "InvalidSpec", "the mistake is told")
        assert "spec.spark.master" in stage.condition("Ready")[2]
        stage.merge('{"spec": {"spark": {"master": "local[*]"}}}')
        stage.reaches("RUNNING", "2/2")
        assert stage.uids() == before


def test_an_application_without_brokers_is_told_so_in_a_cluster(stage: Stage, tmp_path: Path):
    given: dict[str, Any] = {"kafka": {"config": {"client.rack": "a"}}}
    with operator(stage.cluster, stage.namespace, tmp_path):
        stage.apply(**given)
        eventually(lambda: "spec.kafka.bootstrapServers" in stage.condition("Ready")[2], "the field is named")
        assert not verdict(_review(stage.get() or {}), Defaults(IMAGE))["response"]["allowed"]


def test_the_webhook_refuses_at_kubectl_apply_in_the_words_of_the_condition(stage: Stage, tmp_path: Path):
    authority = _certificate(tmp_path)
    with operator(
        stage.cluster, stage.namespace, tmp_path, webhook_port="0", webhook_certificate=str(tmp_path)
    ) as process:
        configuration = _configuration(stage.namespace, process.port("webhook"), authority)
        stage.cluster.apply(configuration)
        try:
            wrong = resource(stage.namespace, stage.bootstrap, spark={"master": "yarn"})
            said = read_application(wrong).mistakes[0]

            def refused() -> bool:
                done = stage.cluster.kubectl("apply", "--filename=-", input=json.dumps(wrong), check=False)
                return str(said) in done.stderr

            eventually(refused, "it is refused with its message")
            assert stage.get() is None
            # Read anew for the next connection.
            configuration["webhooks"][0]["clientConfig"]["caBundle"] = _certificate(tmp_path)
            stage.cluster.apply(configuration)
            eventually(refused, "it is refused under the new certificate")
            stage.apply()
            stage.reaches("RUNNING", "1/1")
        finally:
            stage.cluster.kubectl("delete", f"validatingwebhookconfiguration/{stage.namespace}")


def _certificate(folder: Path) -> str:
    """Makes tls.crt and tls.key for the loopback address; returns what a webhook's configuration trusts."""
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=webhook"]
    files = ["-keyout", str(folder / "tls.key"), "-out", str(folder / "tls.crt")]
    names = ["-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*command, *names, *files], check=True, capture_output=True, timeout=30)
    return base64.b64encode((folder / "tls.crt").read_bytes()).decode()


def _configuration(namespace: str, port: int, authority: str) -> Object:
    rule = {
        "apiGroups": ["streamsoperator.io"],
        "apiVersions": ["v1alpha1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["streamsapplications"],
    }
    hook = {
        "name": "validate.streamsoperator.io",
        "clientConfig": {"url": f"https://127.0.0.1:{port}/validate", "caBundle": authority},
        "rules": [rule],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Fail",
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": namespace},
        "webhooks": [hook],
    }
