"""The objects that an application is made of."""

from __future__ import annotations

import base64
import gzip
import inspect
from dataclasses import replace
from typing import Any

import orjson
import pytest
from operator_cases import DEFAULTS, digest_of, made, observed, removed
from operator_world import IMAGE, NAME, application_of, resource

from streams_operator import names
from streams_operator.model import Defaults
from streams_operator.plan import plan
from streams_operator.plan.objects.config_map import config_map
from streams_operator.plan.objects.document import digest, document
from streams_operator.plan.objects.identity import Identity
from streams_runtime.api import parse_application
from streams_runtime.api.spec.template_spec import ResourcesSpec


def objects(spec: dict[str, Any] | None = None, defaults: Defaults = DEFAULTS) -> dict[str, dict[str, Any]]:
    """By kind and name."""
    todo = plan(observed(spec, defaults=defaults))
    return {f"{each['kind']} {each['metadata']['name']}": dict(each) for each in todo.apply}


def pod(spec: dict[str, Any] | None = None, ordinal: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = objects(spec)[f"Pod {NAME}-{ordinal}"]
    return found


def container(spec: dict[str, Any] | None = None) -> dict[str, Any]:
    found: dict[str, Any] = pod(spec)["spec"]["containers"][0]
    return found


def test_the_objects_of_an_application() -> None:
    made_from = digest_of({"state": {"storage": {"size": "1Gi"}}})
    assert list(objects({"state": {"storage": {"size": "1Gi"}}})) == [
        f"ConfigMap orders-{made_from}",
        "ServiceAccount orders-streams",
        "Role orders-streams",
        "RoleBinding orders-streams",
        "Service orders",
        "PodDisruptionBudget orders",
        "PersistentVolumeClaim state-orders-0",
        "PersistentVolumeClaim state-orders-1",
        "Pod orders-0",
        "Pod orders-1",
    ]


def test_every_object_has_the_labels_and_goes_with_the_resource() -> None:
    for name, found in objects({"state": {"storage": {"size": "1Gi"}}}).items():
        metadata = found["metadata"]
        assert metadata["namespace"] == "shop"
        assert metadata["labels"].items() >= {
            ("streamsoperator.io/application", NAME),
            ("app.kubernetes.io/managed-by", "streams-operator"),
            ("app.kubernetes.io/name", NAME),
        }
        (owner,) = metadata["ownerReferences"]
        assert owner["uid"] == "uid-of-orders"
        assert owner.get("controller", False) is not name.startswith("PersistentVolumeClaim")
        assert owner.get("blockOwnerDeletion", False) is not name.startswith("PersistentVolumeClaim")


def test_the_same_application_gives_the_same_objects() -> None:
    assert objects() == objects()


@pytest.mark.parametrize(
    "change",
    [
        {"replicas": 5},
        {"suspend": True},
        {"restartNonce": 3},
        {"internalTopics": {"setup": "automatic", "deletionPolicy": "Delete"}},
        {"processing": {"commitInterval": "100ms"}},
        {"disruptionBudget": {"maxUnavailable": "50%"}},
    ],
)
def test_what_a_pod_is_not_made_of_does_not_change_the_digest(change: dict[str, Any]) -> None:
    assert digest_of(change) == digest_of()


def test_a_new_nonce_of_init_does_not_change_the_digest() -> None:
    manual = {"internalTopics": {"setup": "manual"}}
    assert digest_of({"internalTopics": {"setup": "manual", "init": {"nonce": 4}}}) == digest_of(manual)


def test_a_larger_volume_does_not_change_the_digest() -> None:
    small, large = ({"state": {"storage": {"size": size}}} for size in ("1Gi", "2Gi"))
    assert digest_of(small) == digest_of(large)


@pytest.mark.parametrize(
    "change",
    [
        {"image": "runtime:2"},
        {"state": {"storage": {"size": "1Gi"}}},
        {"processing": {"maxBatchRecords": 7}},
        {"kafka": {"bootstrapServers": "other:9092"}},
        {"template": {"env": [{"name": "A", "value": "b"}]}},
        {"internalTopics": {"setup": "manual"}},
    ],
)
def test_what_a_pod_is_made_of_changes_the_digest(change: dict[str, Any]) -> None:
    assert digest_of(change) != digest_of()


@pytest.mark.parametrize("defaults", [Defaults("runtime:2"), Defaults("runtime:1", grace_seconds=5)])
def test_what_the_chart_decides_changes_the_digest(defaults: Defaults) -> None:
    assert digest(application_of(resource()), "shop", defaults) != digest_of()


def test_pods_read_the_application_that_was_applied() -> None:
    spec = {"replicas": 3, "processing": {"onDeserializationError": {"deadLetter": {"topic": "dead"}}}}
    given = application_of(resource(spec))
    read = parse_application(document(given, "shop").decode())
    assert read.spec.model_copy(update={"replicas": 3}) == given.spec
    assert (read.name, read.metadata.namespace) == (NAME, "shop")


def test_a_config_map_is_immutable_and_holds_sorted_json() -> None:
    found = objects()[f"ConfigMap {NAME}-{digest_of()}"]
    text = found["data"]["application.json"]
    assert found["immutable"] is True
    assert text.encode() == orjson.dumps(orjson.loads(text), option=orjson.OPT_SORT_KEYS)
    assert set(orjson.loads(text)) == {"apiVersion", "kind", "metadata", "spec"}


def test_an_application_above_256_kib_is_compressed_and_keeps_what_says_the_same() -> None:
    text = b'{"x": "%s"}' % (b"y" * 256 * 1024)
    made = config_map(Identity("orders", "shop", "u"), "0" * 10, text, None)
    assert "data" not in made
    packed = made["binaryData"]["application.json.gz"]
    assert gzip.decompress(base64.b64decode(packed)) == text
    other = base64.b64encode(gzip.compress(text, 1, mtime=7)).decode()
    existing = {"binaryData": {"application.json.gz": other}}
    again = config_map(Identity("orders", "shop", "u"), "0" * 10, text, existing)
    assert again["binaryData"]["application.json.gz"] == other != packed


def test_the_service_is_headless_and_names_pods_that_are_not_ready() -> None:
    spec = objects()["Service orders"]["spec"]
    assert spec["clusterIP"] == "None"
    assert spec["publishNotReadyAddresses"] is True
    assert [(port["name"], port["port"]) for port in spec["ports"]] == [("queries", 8080)]


def test_the_role_names_the_application_s_own_pods_and_nothing_else() -> None:
    assert objects()["Role orders-streams"]["rules"] == [
        {"apiGroups": [""], "resources": ["pods"], "resourceNames": ["orders-0", "orders-1"], "verbs": ["get"]},
        {
            "apiGroups": [""],
            "resources": ["pods/status"],
            "resourceNames": ["orders-0", "orders-1"],
            "verbs": ["patch"],
        },
    ]


def test_the_role_of_no_pods_gives_no_right_at_all() -> None:
    assert objects({"replicas": 0})["Role orders-streams"]["rules"] == []


@pytest.mark.parametrize("given", [None, 2, 0, "25%"])
def test_one_pod_or_as_many_as_the_resource_says_may_be_taken_away(given: int | str | None) -> None:
    spec = {} if given is None else {"disruptionBudget": {"maxUnavailable": given}}
    assert objects(spec)["PodDisruptionBudget orders"]["spec"] == {
        "maxUnavailable": 1 if given is None else given,
        "selector": {"matchLabels": {"streamsoperator.io/application": NAME}},
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
    }


OFF = {"disruptionBudget": {"enabled": False}}


@pytest.mark.parametrize(("owner", "gone"), [("uid-of-orders", ["orders"]), ("somebody", [])])
def test_a_budget_that_is_not_asked_for_is_not_made_and_goes_if_it_is_ours(owner: str, gone: list[str]) -> None:
    there = {"metadata": {"name": NAME, "uid": "u", "ownerReferences": [{"uid": owner}]}, "spec": {}}
    todo = plan(observed(OFF, objects={("PodDisruptionBudget", NAME): there}))
    assert made(todo, "PodDisruptionBudget") == []
    assert removed(todo, "PodDisruptionBudget") == gone
    assert removed(plan(observed(OFF)), "PodDisruptionBudget") == []
    assert removed(plan(observed(objects={("PodDisruptionBudget", NAME): there})), "PodDisruptionBudget") == []


def test_a_pod_as_it_is_made() -> None:
    made = pod({"restartNonce": 3})
    spec, box = made["spec"], made["spec"]["containers"][0]
    assert made["metadata"]["annotations"] == {
        names.ANNOTATION_SPEC: digest_of(),
        names.ANNOTATION_NONCE: "3",
        names.ANNOTATION_IMAGE: IMAGE,
    }
    assert (spec["restartPolicy"], spec["hostname"], spec["subdomain"]) == ("Never", "orders-0", "orders")
    assert spec["readinessGates"] == [{"conditionType": "streamsoperator.io/Running"}]
    assert (spec["terminationGracePeriodSeconds"], spec["enableServiceLinks"]) == (75, False)
    assert spec["serviceAccountName"] == "orders-streams"
    assert (box["name"], box["command"]) == ("streams", ["python", "-m", "streams_runtime.cli.process.pod"])
    assert box["terminationMessagePath"] == "/dev/termination-log"
    assert {each["name"]: each.get("value") for each in box["env"]} == {
        "POD_NAME": None,
        "POD_NAMESPACE": None,
        "POD_UID": None,
        "STREAMSAPP_SERVICE": "orders",
        "STREAMSAPP_GRACE_SECONDS": "75",
    }


def test_a_pod_is_restricted() -> None:
    spec, box = pod()["spec"], container()
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert {spec["securityContext"][key] for key in ("runAsUser", "runAsGroup", "fsGroup")} == {10001}
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert box["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }


def test_the_probes_of_a_pod() -> None:
    box = container()
    assert box["startupProbe"]["httpGet"] == box["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "queries"}
    assert (box["startupProbe"]["periodSeconds"], box["startupProbe"]["failureThreshold"]) == (2, 90)
    liveness = box["livenessProbe"]
    assert (liveness["periodSeconds"], liveness["timeoutSeconds"], liveness["failureThreshold"]) == (10, 5, 6)
    assert box["readinessProbe"] == {"httpGet": {"path": "/readyz", "port": "queries"}, "periodSeconds": 2}


def test_the_volumes_of_a_pod() -> None:
    spec = {"kafka": {"bootstrapServers": "k:1", "secretRef": {"name": "sec"}}, "state": {"storage": {"size": "1Gi"}}}
    made = pod(spec, 1)["spec"]
    volumes = {each["name"]: each for each in made["volumes"]}
    assert volumes["application"]["configMap"] == {"name": f"orders-{digest_of(spec)}"}
    assert volumes["kafka"]["secret"]["secretName"] == "sec"
    assert volumes["state"]["persistentVolumeClaim"] == {"claimName": "state-orders-1"}
    assert volumes["tmp"]["emptyDir"] == {}
    told, pause = volumes["told"]["downwardAPI"]["items"]
    assert pause == {
        "path": "paused",
        "fieldRef": {"fieldPath": "metadata.annotations['streamsoperator.io/paused']"},
    }
    assert told == {
        "path": "shutdown-application",
        "fieldRef": {"fieldPath": "metadata.annotations['streamsoperator.io/shutdown-application']"},
    }
    assert {each["name"]: each["mountPath"] for each in made["containers"][0]["volumeMounts"]} == {
        "application": "/etc/streams/application",
        "kafka": "/etc/streams/kafka",
        "state": "/var/lib/streams",
        "told": "/etc/streams/told",
        "tmp": "/tmp",
    }


def test_code_is_mounted_from_its_config_map_and_another_one_replaces_pods() -> None:
    spec = {"kafka": {"bootstrapServers": "k:1"}, "code": {"configMap": "rules-1"}}
    made = pod(spec)["spec"]
    assert {"name": "code", "configMap": {"name": "rules-1"}} in made["volumes"]
    assert {"name": "code", "mountPath": "/etc/streams/code", "readOnly": True} in made["containers"][0]["volumeMounts"]
    assert digest_of(spec) != digest_of({**spec, "code": {"configMap": "rules-2"}})
    assert "code" not in {each["name"] for each in pod()["spec"]["volumes"]}


def test_without_storage_the_state_is_an_empty_folder() -> None:
    assert {"name": "state", "emptyDir": {}} in pod()["spec"]["volumes"]
    assert not any(name.startswith("PersistentVolumeClaim") for name in objects())


def test_the_template_is_laid_over_the_pods() -> None:
    template = {
        "resources": {"requests": {"cpu": "500m"}, "limits": {"memory": "2Gi"}},
        "env": [{"name": "A", "value": "b"}, {"name": "C", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
        "nodeSelector": {"disk": "fast"},
        "tolerations": [{"key": "spot", "operator": "Exists"}],
        "affinity": {"podAntiAffinity": {}},
        "serviceAccountName": "mine",
        "annotations": {"note": "x"},
    }
    made = pod({"template": template})
    spec, box = made["spec"], made["spec"]["containers"][0]
    assert box["resources"] == {"requests": {"cpu": "500m"}, "limits": {"memory": "2Gi"}}
    assert box["env"][-2:] == template["env"]
    assert (spec["nodeSelector"], spec["affinity"]) == ({"disk": "fast"}, {"podAntiAffinity": {}})
    assert spec["tolerations"] == template["tolerations"]
    assert spec["serviceAccountName"] == "mine"
    assert made["metadata"]["annotations"]["note"] == "x"
    assert made["metadata"]["annotations"][names.ANNOTATION_SPEC] == digest_of({"template": template})
    subjects = objects({"template": template})["RoleBinding orders-streams"]["subjects"]
    assert [each["name"] for each in subjects] == ["orders-streams", "mine"]


def claim_for(size: str, existing: dict[str, Any]) -> list[dict[str, Any]]:
    found = {"metadata": {"name": "state-orders-0"}, "spec": existing}
    seen = observed(
        {"replicas": 1, "state": {"storage": {"size": size, "storageClassName": "a"}}},
        objects={("PersistentVolumeClaim", "state-orders-0"): found},
    )
    return [dict(each["spec"]) for each in plan(seen).apply if each["kind"] == "PersistentVolumeClaim"]


@pytest.mark.parametrize(("size", "then"), [("2Gi", "2Gi"), ("1024Mi", "1Gi"), ("512Mi", "1Gi")])
def test_a_claim_grows_and_never_shrinks_and_keeps_its_class(size: str, then: str) -> None:
    existing = {"resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "b"}
    (spec,) = claim_for(size, existing)
    assert spec["resources"]["requests"]["storage"] == then
    assert spec["storageClassName"] == "b"


def test_names_and_folders_are_those_of_the_runtime() -> None:
    from streams_runtime.cli.process.pod import pod
    from streams_runtime.kubernetes import mounted, pod_conditions, query_guard

    default = {name: each.default for name, each in inspect.signature(pod).parameters.items()}
    assert (mounted.CONFIG_FILE, str(default["application"])) == (names.CONFIG_FILE, names.CONFIG_MOUNT)
    assert (str(default["secret"]), str(default["state_dir"])) == (names.SECRET_MOUNT, names.STATE_MOUNT)
    assert str(default["code"]) == names.CODE_MOUNT
    assert str(default["schema_registry"]) == names.REGISTRY_MOUNT
    assert str(default["request_path"]) == f"{names.SHUTDOWN_MOUNT}/{names.SHUTDOWN_FILE}"
    folder = default["queries"]
    assert str(folder / query_guard.ACCESS_FOLDER) == names.QUERY_ACCESS_MOUNT
    assert (str(folder / query_guard.TLS_FOLDER), query_guard.TOKEN_FILE) == (
        names.QUERY_TLS_MOUNT,
        names.QUERY_TOKEN_FILE,
    )
    assert names.CONDITION_RUNNING == pod_conditions.CONDITION_RUNNING
    assert DEFAULTS.grace_seconds == 75


def test_the_secret_of_the_schema_registry_is_mounted_where_a_pod_looks_for_it() -> None:
    registry = {"url": "https://r:8081", "secretRef": {"name": "registry"}}
    spec = {"kafka": {"bootstrapServers": "k:1", "schemaRegistry": registry}}
    assert mounted_secrets(spec) == {names.REGISTRY_MOUNT: {"secretName": "registry", "defaultMode": 0o440}}
    del registry["secretRef"]
    assert mounted_secrets(spec) == {}


def mounted_secrets(spec: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """By where they are mounted."""
    volumes = {each["name"]: each["secret"] for each in pod(spec)["spec"]["volumes"] if "secret" in each}
    return {
        each["mountPath"]: volumes[each["name"]] for each in container(spec)["volumeMounts"] if each["name"] in volumes
    }


def test_the_secrets_of_queries_are_mounted_as_folders_that_are_renewed() -> None:
    access = {"token": {"secretRef": {"name": "orders-queries", "key": "password"}}}
    spec = {"queries": {"access": access, "tls": {"secretRef": {"name": "orders-tls"}}}}
    assert mounted_secrets(spec) == {
        "/etc/streams/queries/access": {
            "secretName": "orders-queries",
            "defaultMode": 0o440,
            "items": [{"key": "password", "path": "token"}],
        },
        "/etc/streams/queries/tls": {"secretName": "orders-tls", "defaultMode": 0o440},
    }
    assert all("subPath" not in each for each in container(spec)["volumeMounts"])
    assert mounted_secrets({"queries": {"access": {"kubernetes": {"groups": ["auditors"]}}}}) == {}
    assert mounted_secrets({}) == {}


def test_probes_speak_what_the_pod_answers_by_and_the_operator_sees_it() -> None:
    from streams_operator.kube.pod_state import pod_state

    with_tls = {"queries": {"tls": {"secretRef": {"name": "orders-tls"}}}}
    for spec, scheme in (({}, None), (with_tls, "HTTPS")):
        probes = [container(spec)[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")]
        assert [probe.get("scheme") for probe in probes] == [scheme] * 3
        seen = pod_state({**pod(spec), "status": {}, "metadata": {**pod(spec)["metadata"], "uid": "u"}}, NAME)
        assert seen.tls is (scheme is not None)


def test_who_may_query_is_part_of_what_a_pod_is_made_from() -> None:
    open_to_all, guarded = (pod(spec)["metadata"]["annotations"][names.ANNOTATION_SPEC] for spec in ({}, GUARDED))
    assert open_to_all != guarded


GUARDED = {"queries": {"access": {"token": {"secretRef": {"name": "orders-queries"}}}}}


def rules(spec: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    allowed = replace(DEFAULTS, executors_as_pods=True)
    found: list[dict[str, Any]] = objects(spec, allowed)["Role orders-streams"]["rules"]
    return found


def test_the_pods_of_an_application_may_make_pods_only_where_its_executors_are_pods() -> None:
    standalone = {"master": "spark://x:7077", "config": {"spark.cores.max": "1"}}
    for spec in (None, {"spark": standalone}):
        assert all("resourceNames" in rule for rule in rules(spec))
    pods = {"master": "k8s://https://kubernetes.default.svc", "config": {"spark.executor.instances": "1"}}
    *others, last = rules({"spark": pods})
    assert others == rules()
    assert last["resources"] == ["pods"]
    assert sorted(last["verbs"]) == ["create", "delete", "deletecollection", "get", "list", "watch"]


def test_an_application_without_instances_has_no_rights_at_all() -> None:
    pods = {"master": "k8s://https://kubernetes.default.svc", "config": {"spark.executor.instances": "1"}}
    assert rules({"replicas": 0, "spark": pods}) == []


def test_labels_and_what_a_pod_is_pulled_and_scheduled_by_come_from_the_template() -> None:
    template = {
        "labels": {"team": "shop"},
        "imagePullSecrets": [{"name": "registry"}],
        "priorityClassName": "high",
        "terminationGracePeriodSeconds": 120,
    }
    made = pod({"template": template})
    assert made["metadata"]["labels"] == {"team": "shop", **pod()["metadata"]["labels"]}
    spec = made["spec"]
    assert (spec["imagePullSecrets"], spec["priorityClassName"]) == ([{"name": "registry"}], "high")
    assert spec["terminationGracePeriodSeconds"] == 120
    grace = {each["name"]: each.get("value") for each in spec["containers"][0]["env"]}["STREAMSAPP_GRACE_SECONDS"]
    assert grace == "120"
    for field in template:
        changed = {"template": {name: value for name, value in template.items() if name != field}}
        assert digest_of(changed) != digest_of({"template": template}), f"{field} is what pods are made of"
    assert not {"imagePullSecrets", "priorityClassName"} & set(pod()["spec"])


def spread(**template: Any) -> list[dict[str, Any]] | None:
    found: list[dict[str, Any]] | None = pod({"template": template})["spec"].get("topologySpreadConstraints")
    return found


def test_pods_are_spread_over_nodes_unless_the_template_says_otherwise() -> None:
    own = {"labelSelector": {"matchLabels": {"streamsoperator.io/application": NAME}}}
    hosts = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
    assert spread() == [{**hosts, **own}]
    assert spread(topologySpreadConstraints=[]) is None
    zones = {"topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 3}
    assert spread(topologySpreadConstraints=[zones]) == [{**zones, "maxSkew": 1, **own}]
    others = {"matchLabels": {"team": "shop"}, "matchExpressions": []}
    assert spread(topologySpreadConstraints=[{**zones, "labelSelector": {"matchLabels": {"team": "shop"}}}]) == [
        {**zones, "maxSkew": 1, "labelSelector": others}
    ]
    assert digest_of({"template": {"topologySpreadConstraints": []}}) != digest_of()


ONLY_RESTRICTED = {
    "runAsNonRoot": True,
    "fsGroupChangePolicy": "OnRootMismatch",
    "seccompProfile": {"type": "RuntimeDefault"},
}
OPENSHIFT = replace(DEFAULTS, run_as_user=None)


def security(context: dict[str, Any] | None, defaults: Defaults = DEFAULTS) -> dict[str, Any]:
    spec = {} if context is None else {"template": {"securityContext": context}}
    found: dict[str, Any] = objects(spec, defaults)[f"Pod {NAME}-0"]["spec"]["securityContext"]
    return found


def test_the_cluster_chooses_the_user_where_chart_or_template_leave_it() -> None:
    assert security(None, OPENSHIFT) == ONLY_RESTRICTED
    assert security({}) == ONLY_RESTRICTED


def test_the_template_says_whose_process_a_pod_is() -> None:
    assert security({"runAsUser": 7}, OPENSHIFT) == {**ONLY_RESTRICTED, "runAsUser": 7, "runAsGroup": 7, "fsGroup": 7}
    given = {
        "runAsUser": 7,
        "runAsGroup": 0,
        "fsGroup": 8,
        "supplementalGroups": [9],
        "fsGroupChangePolicy": "Always",
        "seccompProfile": {"type": "Localhost", "localhostProfile": "a.json"},
    }
    assert security(given) == {"runAsNonRoot": True, **given}


def test_another_user_of_the_chart_replaces_the_pods_that_have_it() -> None:
    plain = application_of(resource())
    own = application_of(resource({"template": {"securityContext": {"runAsUser": 7}}}))
    assert digest(plain, "shop", OPENSHIFT) != digest(plain, "shop", DEFAULTS)
    assert digest(own, "shop", OPENSHIFT) == digest(own, "shop", DEFAULTS)


def test_the_chart_s_resources_are_those_of_pods_whose_template_has_none() -> None:
    chart = replace(DEFAULTS, resources=ResourcesSpec(requests={"cpu": "250m", "memory": "1536Mi"}))

    def resources(spec: dict[str, Any]) -> object:
        return objects(spec, chart)[f"Pod {NAME}-0"]["spec"]["containers"][0].get("resources")

    own = {"template": {"resources": {"limits": {"memory": "2Gi"}}}}
    assert resources({}) == {"requests": {"cpu": "250m", "memory": "1536Mi"}}
    assert resources(own) == {"limits": {"memory": "2Gi"}}, "as a whole"
    assert resources({"template": {"resources": {}}}) == {}
    plain, given = application_of(resource()), application_of(resource(own))
    assert digest(plain, "shop", chart) != digest(plain, "shop", DEFAULTS)
    assert digest(given, "shop", chart) == digest(given, "shop", DEFAULTS)
