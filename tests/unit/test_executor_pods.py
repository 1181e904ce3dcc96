"""Executors as pods: what may be asked for, what they are made of, and how their processes begin."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import orjson
import pytest
from operator_cases import DEFAULTS
from operator_world import application_of, resource

from streams_operator import names
from streams_operator.plan.objects import pod_manifest as made_by_the_operator
from streams_operator.plan.objects.identity import Identity
from streams_operator.plan.objects.network import disruption_budget, service
from streams_runtime.api.checks.spark_checks import spark_mistakes
from streams_runtime.api.spec.disruption_spec import DisruptionBudgetSpec
from streams_runtime.api.spec.resource import SparkSpec
from streams_runtime.cli.process.executor import command, given_options
from streams_runtime.errors import (
    ConfigException,
    EnvironmentException,
    IllegalStateException,
    InvalidApplicationException,
)
from streams_runtime.kubernetes.own_pod import OwnPod
from streams_runtime.kubernetes.pod_status_api import ApiAccess, PodIdentity
from streams_runtime.pipeline.spark.executor_pods import ExecutorPods, pod_settings
from streams_runtime.pipeline.spark.executor_template import (
    CONTAINER,
    LABEL,
    NOT_THEIRS,
    executor_template,
    name_prefix,
)
from streams_runtime.spark_runtime import cluster_of

MASTER = "k8s://https://127.0.0.1:6443"
UID = "0a1b2c3d-0000-0000-0000-000000000000"
IDENTITY = Identity("orders", "shop", "uid-of-orders")


def pod(**spec: Any) -> dict[str, Any]:
    """An instance's pod as the operator makes it, with what an API server adds."""
    made = made_by_the_operator.pod(IDENTITY, application_of(resource(spec)), 0, "0" * 10, DEFAULTS)
    made["metadata"]["uid"] = UID
    account = {"name": "kube-api-access", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
    made["spec"]["containers"][0]["volumeMounts"].append(account)
    made["spec"]["volumes"].append({"name": "kube-api-access", "projected": {}})
    return made


def mistakes(**config: object) -> list[str]:
    given = {name.replace("__", "."): value for name, value in config.items()}
    spec = SparkSpec(master=MASTER, config={"spark.executor.instances": "2", **given})
    return [str(each) for each in spark_mistakes(spec)]


def test_how_many_executors_an_instance_has_must_be_said() -> None:
    (mistake,) = spark_mistakes(SparkSpec(master=MASTER))
    assert mistake.path == "spec.spark.config"
    assert "spark.executor.instances is missing" in mistake.found


@pytest.mark.parametrize("name", ["spark.executor.instances", "spark.executor.cores"])
@pytest.mark.parametrize("given", ["0", "two", "1.5", "-1"])
def test_numbers_that_are_none_are_told_by_their_field(name: str, given: str) -> None:
    (mistake,) = mistakes(**{name: given})
    assert mistake.startswith(f'spec.spark.config["{name}"]: found {given!r}')


@pytest.mark.parametrize(("given", "words"), [("much", "is no size"), ("450m", "less than 470m"), ("100000k", "470m")])
def test_memory_that_no_executor_starts_with_is_told(given: str, words: str) -> None:
    (mistake,) = mistakes(spark__executor__memory=given)
    assert mistake.startswith('spec.spark.config["spark.executor.memory"]')
    assert words in mistake


@pytest.mark.parametrize("given", ["470m", "1g", "2048", "1500MB", "1t"])
def test_memory_that_executors_start_with(given: str) -> None:
    assert mistakes(spark__executor__memory=given) == []


@pytest.mark.parametrize(
    "name",
    [
        "spark.cores.max",
        "spark.dynamicAllocation.enabled",
        "spark.kubernetes.namespace",
        "spark.kubernetes.container.image",
        "spark.kubernetes.executor.podTemplateFile",
        "spark.kubernetes.executor.deleteOnTermination",
        "spark.kubernetes.authenticate.oauthToken",
        "spark.kubernetes.trust.certificates",
        "spark.kubernetes.executor.label.streamsoperator.io/application",
        "spark.kubernetes.executor.volumes.persistentVolumeClaim.data.options.claimName",
    ],
)
def test_what_the_instance_decides_or_has_no_right_for_is_refused_by_name(name: str) -> None:
    (mistake,) = mistakes(**{name: "OnDemand"})
    assert mistake.startswith(f'spec.spark.config["{name}"]')


def test_other_properties_are_the_user_s() -> None:
    given = {
        "spark.executor.memory": "2g",
        "spark.kubernetes.executor.request.cores": "500m",
        "spark.kubernetes.executor.label.team": "a",
        "spark.kubernetes.executor.volumes.persistentVolumeClaim.data.options.claimName": "shared",
    }
    assert mistakes(**given) == []


def test_a_process_that_is_no_pod_has_no_executors_that_are() -> None:
    spark = {"master": MASTER, "config": {"spark.executor.instances": "1"}}
    with pytest.raises(InvalidApplicationException, match=r"spec\.spark\.master: .*; write local\[\*\] here"):
        cluster_of(application_of(resource({"spark": spark})), None)


def test_the_runtime_and_the_operator_agree_about_pods() -> None:
    assert CONTAINER == names.CONTAINER
    assert NOT_THEIRS == made_by_the_operator.RESERVED


def test_executors_are_none_of_the_application_s_own_pods() -> None:
    labels = executor_template(pod(), "orders")["metadata"]["labels"]
    assert labels == {LABEL: "orders"}
    assert LABEL != names.LABEL_APPLICATION
    assert LABEL == names.LABEL_EXECUTORS, "by which a NetworkPolicy lets them reach the driver"
    for selector in (
        service(IDENTITY)["spec"]["selector"],
        disruption_budget(IDENTITY, DisruptionBudgetSpec())["spec"]["selector"]["matchLabels"],
    ):
        assert not selector.items() <= labels.items()


def test_an_executor_goes_with_the_pod_that_it_was_made_for() -> None:
    (owner,) = executor_template(pod(), "orders")["metadata"]["ownerReferences"]
    assert owner == {"apiVersion": "v1", "kind": "Pod", "name": "orders-0", "uid": UID, "controller": True}


def test_an_executor_is_as_restricted_as_its_instance_and_has_no_token() -> None:
    instance = pod()
    spec = executor_template(instance, "orders")["spec"]
    (container,) = spec["containers"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"] == instance["spec"]["securityContext"]
    assert container["securityContext"] == instance["spec"]["containers"][0]["securityContext"]
    assert container["volumeMounts"] == [{"name": "tmp", "mountPath": "/tmp"}]
    assert spec["volumes"] == [{"name": "tmp", "emptyDir": {}}]


def test_an_executor_has_the_modules_and_files_that_records_are_read_with_and_nothing_of_the_state() -> None:
    kafka = {"bootstrapServers": "k:9092", "secretRef": {"name": "certificates"}}
    instance = pod(code={"configMap": "rules"}, kafka=kafka, state={"storage": {"size": "1Gi"}})
    spec = executor_template(instance, "orders")["spec"]
    assert [each["name"] for each in spec["volumes"]] == ["kafka", "code", "tmp"]
    mounts = {each["name"]: each["mountPath"] for each in spec["containers"][0]["volumeMounts"]}
    assert mounts == {"kafka": names.SECRET_MOUNT, "code": names.CODE_MOUNT, "tmp": "/tmp"}


def test_an_executor_has_the_volumes_of_the_template_which_functions_may_read() -> None:
    template = {
        "volumes": [{"name": "models", "configMap": {"name": "models"}}],
        "volumeMounts": [{"name": "models", "mountPath": "/mnt/models", "readOnly": True}],
    }
    spark = {"master": MASTER, "config": {"spark.executor.instances": "1"}}
    instance = pod(template=template, spark=spark)
    cluster = cluster_of(application_of(resource({"template": template, "spark": spark})), lambda *_: instance)
    assert isinstance(cluster, ExecutorPods)
    file = Path(urlsplit(cluster.settings(threading.Event())["spark.kubernetes.executor.podTemplateFile"]).path)
    spec = orjson.loads(file.read_bytes())["spec"]
    assert [each["name"] for each in spec["volumes"]] == ["models", "tmp"]
    assert [each["mountPath"] for each in spec["containers"][0]["volumeMounts"]] == ["/mnt/models", "/tmp"]


def test_an_executor_runs_where_instances_may_with_their_environment() -> None:
    term = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    nodes = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    apart = {"requiredDuringSchedulingIgnoredDuringExecution": []}
    template = {
        "env": [{"name": "REGION", "value": "north"}],
        "nodeSelector": {"pool": "streams"},
        "tolerations": [{"key": "streams", "operator": "Exists"}],
        "affinity": {"nodeAffinity": nodes, "podAntiAffinity": apart},
    }
    spec = executor_template(pod(template=template), "orders")["spec"]
    assert spec["containers"][0]["env"] == [{"name": "REGION", "value": "north"}]
    assert spec["nodeSelector"] == {"pool": "streams"}
    assert spec["tolerations"] == [{"key": "streams", "operator": "Exists"}]
    assert spec["affinity"] == {"nodeAffinity": nodes}


def test_a_pod_of_somebody_else_is_no_instance() -> None:
    other = pod()
    other["spec"]["containers"][0]["name"] = "main"
    with pytest.raises(EnvironmentException, match="no container streams"):
        executor_template(other, "orders")


def test_executors_of_two_pods_of_one_name_have_other_names_which_fit() -> None:
    one, other = pod(), pod()
    other["metadata"]["uid"] = "ffff" + UID[4:]
    assert name_prefix(one) == "orders-0-0a1b2c3d"
    assert name_prefix(other) != name_prefix(one)
    one["metadata"]["name"] = "a-name-that-goes-on-for-so-l-ng-as-it-may-be-for-an-application-9"
    assert len(name_prefix(one)) <= 38
    assert "--" not in name_prefix(one)


def test_executors_run_the_instance_s_image_in_its_namespace() -> None:
    settings = pod_settings(pod(image="shop/streams:7"), Path("/tmp/pod.json"))
    assert settings["spark.kubernetes.container.image"] == "shop/streams:7"
    assert settings["spark.kubernetes.namespace"] == "shop"
    assert settings["spark.kubernetes.executor.podTemplateFile"] == "file:///tmp/pod.json"
    assert "spark.kubernetes.driver.pod.name" not in settings, "Spark would wait for it to be ready"


def test_a_session_has_as_many_partitions_as_its_executors_have_cores() -> None:
    config = {"spark.executor.instances": "3", "spark.executor.cores": "2"}
    cluster = ExecutorPods(MASTER, config, "orders", lambda _server, _closing: pod())
    settings = cluster.settings(threading.Event())
    assert settings["spark.default.parallelism"] == settings["spark.sql.shuffle.partitions"] == "6"
    assert settings["spark.driver.host"] == settings["spark.driver.bindAddress"] == "127.0.0.1"
    assert settings["spark.executor.maxNumFailures"] == "10"
    assert settings["spark.executor.failuresValidityInterval"] == "10m", "what has failed long ago does not count"
    template = Path(urlsplit(settings["spark.kubernetes.executor.podTemplateFile"]).path)
    assert orjson.loads(template.read_bytes()) == executor_template(pod(), "orders")
    assert cluster.addresses == (("127.0.0.1", 6443),)


def test_who_is_closed_while_the_api_server_is_away_makes_no_executors() -> None:
    cluster = ExecutorPods(MASTER, {"spark.executor.instances": "1"}, "orders", lambda _server, _closing: None)
    with pytest.raises(IllegalStateException, match="closed"):
        cluster.settings(threading.Event())


class ApiServer(httpx.BaseTransport):
    """Answers with one response after the other; the last one for ever."""

    def __init__(self, *answers: httpx.Response | httpx.TransportError) -> None:
        self.answers, self.asked = list(answers), 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.asked += 1
        assert request.url == "https://api:6443/api/v1/namespaces/shop/pods/orders-0"
        assert request.headers["Authorization"] == "Bearer token"
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, httpx.TransportError):
            raise answer
        return answer


class Closing(threading.Event):
    """Waits for nothing, and is set after so many waits."""

    def __init__(self, waits: int = 100) -> None:
        super().__init__()
        self.left = waits

    def wait(self, timeout: float | None = None) -> bool:
        self.left -= 1
        if not self.left:
            self.set()
        return self.is_set()


@pytest.fixture
def access(tmp_path: Path) -> ApiAccess:
    (tmp_path / "token").write_text("token\n")
    (tmp_path / "ca.crt").write_text("")
    return ApiAccess("https://elsewhere", tmp_path / "token", tmp_path / "ca.crt")


@pytest.fixture(autouse=True)
def no_authority(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ssl.create_default_context", lambda cafile: True)


def ask(access: ApiAccess, server: ApiServer, closing: threading.Event | None = None) -> Any:
    return OwnPod(access, PodIdentity("orders-0", "shop", UID), server)("https://api:6443", closing or Closing())


def test_the_pod_is_read_from_the_api_server_that_the_user_names(access: ApiAccess) -> None:
    assert ask(access, ApiServer(httpx.Response(200, json=pod()))) == pod()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (httpx.Response(404), "it has no such pod"),
        (httpx.Response(200, json={"metadata": {"uid": "another"}}), "another pod of that name"),
        (httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] self-signed"), "its certificate is by another authority"),
    ],
)
def test_the_api_server_of_another_cluster_is_refused_with_what_to_write(
    access: ApiAccess, answer: httpx.Response | httpx.TransportError, words: str
) -> None:
    with pytest.raises(EnvironmentException, match=words) as refused:
        ask(access, ApiServer(answer))
    assert "write k8s://https://kubernetes.default.svc" in str(refused.value)


def test_one_that_is_away_or_gives_no_right_yet_is_asked_again_and_told_of_once(
    access: ApiAccess, caplog: pytest.LogCaptureFixture
) -> None:
    forbidden = httpx.Response(403, text="pods is forbidden")
    server = ApiServer(httpx.ConnectError("refused"), forbidden, forbidden, httpx.Response(200, json=pod()))
    with caplog.at_level("WARNING", "streams_runtime.kubernetes"):
        assert ask(access, server) == pod()
    assert server.asked == 4
    assert len(caplog.messages) == 2
    assert "does not answer (refused)" in caplog.messages[0]
    assert "403: pods is forbidden. Let the pod's account" in caplog.messages[1]


def test_closing_ends_the_asking(access: ApiAccess) -> None:
    assert ask(access, ApiServer(httpx.Response(503)), Closing(waits=3)) is None


ENVIRONMENT = {
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@10.0.0.1:7078",
    "SPARK_EXECUTOR_ID": "3",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_EXECUTOR_MEMORY": "600m",
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.2",
    "SPARK_EXECUTOR_POD_NAME": "orders-0-exec-3",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_JAVA_OPT_10": "-Dlast=1",
    "SPARK_JAVA_OPT_9": "-Dname=two words",
}


def test_an_executor_s_process_is_java_with_what_spark_says_by_the_environment() -> None:
    words = command(ENVIRONMENT, Path("/java"), ["-Down=1"], "a.jar:b/*")
    assert " ".join(words) == (
        "/java -Down=1 -Dname=two words -Dlast=1 -Xms600m -Xmx600m -cp a.jar:b/*"
        " org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
        " --driver-url spark://CoarseGrainedScheduler@10.0.0.1:7078 --executor-id 3 --cores 2 --app-id spark-1"
        " --hostname 10.0.0.2 --resourceProfileId 0 --podName orders-0-exec-3"
    )


def test_java_s_options_go_by_their_numbers() -> None:
    assert given_options(ENVIRONMENT) == ["-Dname=two words", "-Dlast=1"]


def test_a_process_that_spark_has_not_started_says_what_is_missing() -> None:
    with pytest.raises(ConfigException, match="SPARK_DRIVER_URL, SPARK_EXECUTOR_MEMORY not set"):
        command({**ENVIRONMENT, "SPARK_DRIVER_URL": "", "SPARK_EXECUTOR_MEMORY": ""}, Path("/java"), [], "")
