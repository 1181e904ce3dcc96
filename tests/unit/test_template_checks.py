"""What `spec.template` may say, and what is refused by name."""

from __future__ import annotations

from typing import Any

import pytest
from operator_cases import DEFAULTS
from operator_world import application_of, resource

from streams_operator import names
from streams_operator.plan.objects.identity import Identity
from streams_operator.plan.objects.pod_manifest import pod
from streams_operator.plan.objects.volumes import RESERVED_FOLDERS, RESERVED_VOLUMES, folder_in_the_way
from streams_operator.plan.version.acceptance import cluster_mistakes
from streams_runtime.api import read_application
from streams_runtime.api.checks.label_checks import OUR_LABELS, OURS

SECRET = {"name": "given", "secret": {"secretName": "given"}}
MOUNT = {"name": "given", "mountPath": "/mnt/given"}


def mistakes(**template: Any) -> list[str]:
    return [str(each) for each in read_application(resource({"template": template}), "here").mistakes]


def in_a_cluster(**template: Any) -> list[str]:
    application = application_of(resource({"template": template}))
    return [str(each) for each in cluster_mistakes(application, DEFAULTS)]


def pod_of(spec: dict[str, Any] | None = None) -> dict[str, Any]:
    return pod(Identity("orders", "shop", "u"), application_of(resource(spec)), 0, "0" * 10, DEFAULTS)


@pytest.mark.parametrize("key", ["team", "A.b_c-d", "shop.example/tier", "1/1", "a" * 63, f"{'a' * 253}/b"])
@pytest.mark.parametrize("field", ["labels", "annotations", "nodeSelector"])
def test_keys_that_labels_may_have(field: str, key: str) -> None:
    assert mistakes(**{field: {key: "x"}}) == []


@pytest.mark.parametrize(
    "key", ["", "/a", "a/", "a/b/c", "-a", "a-", "a b", "Shop/a", "shop..example/a", "a" * 64, f"{'a' * 254}/b", "a\n"]
)
@pytest.mark.parametrize("field", ["labels", "annotations", "nodeSelector"])
def test_keys_that_no_label_can_have_are_refused_by_name(field: str, key: str) -> None:
    (mistake,) = mistakes(**{field: {key: "x"}})
    assert mistake.startswith(f"spec.template.{field}")
    assert "no qualified name" in mistake


@pytest.mark.parametrize("value", ["", "a", "A.b_c-1", "a" * 63])
def test_values_that_labels_may_have(value: str) -> None:
    assert mistakes(labels={"a": value}, nodeSelector={"a": value}) == []


@pytest.mark.parametrize("value", ["-", "a b", "a/b", "a" * 64, 5, True, "a\n"])
@pytest.mark.parametrize("field", ["labels", "nodeSelector"])
def test_values_that_no_label_can_have_are_refused_by_name(field: str, value: object) -> None:
    (mistake,) = mistakes(**{field: {"a": value}})
    assert mistake.startswith(f"spec.template.{field}.a: found {value!r}, which is no value of a label")


def test_an_annotation_says_anything() -> None:
    assert mistakes(annotations={"a": "any text: of, words\n" * 100}) == []


def test_the_operator_s_labels_and_annotations_are_refused_by_name() -> None:
    ours = [names.LABEL_APPLICATION, names.LABEL_ORDINAL, names.LABEL_MANAGED_BY, "app.kubernetes.io/name"]
    for key in [*ours, "streamsoperator.io/new", "x.streamsoperator.io/new"]:
        (mistake,) = mistakes(labels={key: "x"})
        assert f"{key} is set by the operator" in mistake
    for key in (names.ANNOTATION_SPEC, names.ANNOTATION_NONCE, names.ANNOTATION_SHUTDOWN):
        (mistake,) = mistakes(annotations={key: "x"})
        assert f"{key} is set by the operator" in mistake
    assert mistakes(labels={"app.kubernetes.io/component": "x"}, annotations={"app.kubernetes.io/name": "x"}) == []


def test_every_label_that_pods_have_is_one_that_a_template_may_not_give() -> None:
    labels = pod_of()["metadata"]["labels"]
    assert labels
    assert all(key in OUR_LABELS or key.startswith(f"{OURS}/") for key in labels)
    assert OURS == names.GROUP


@pytest.mark.parametrize(
    ("template", "field", "words"),
    [
        ({"imagePullSecrets": [{"name": "Registry"}]}, "imagePullSecrets[0].name", "no name of a Kubernetes object"),
        ({"imagePullSecrets": [{"name": "a"}, {"name": "a"}]}, "imagePullSecrets[1].name", "given twice"),
        ({"imagePullSecrets": ["a"]}, "imagePullSecrets[0]", "give fields with values"),
        ({"priorityClassName": "High One"}, "priorityClassName", "no name of a Kubernetes object"),
        ({"terminationGracePeriodSeconds": 0}, "terminationGracePeriodSeconds", "give at least 1"),
        ({"terminationGracePeriodSeconds": "75"}, "terminationGracePeriodSeconds", "give a whole number"),
        ({"hostNetwork": True}, "hostNetwork", "hold on its node"),
        ({"initContainers": []}, "initContainers", "made by the operator"),
    ],
)
def test_what_no_pod_can_have_is_refused_by_name(template: dict[str, Any], field: str, words: str) -> None:
    (mistake,) = mistakes(**template)
    assert mistake.startswith(f"spec.template.{field}: ")
    assert words in mistake


def spread(**fields: Any) -> dict[str, Any]:
    return {"topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway", **fields}


@pytest.mark.parametrize(
    ("constraints", "field", "words"),
    [
        ([spread(topologyKey="a b")], "[0].topologyKey", "no label of a node"),
        ([spread(maxSkew=0)], "[0].maxSkew", "give at least 1"),
        ([spread(whenUnsatisfiable="Never")], "[0].whenUnsatisfiable", "'DoNotSchedule'"),
        ([spread(minDomains=2)], "[0].minDomains", "leave it out, or use DoNotSchedule"),
        ([spread(), spread(maxSkew=2)], "[1].topologyKey", "given twice"),
        ([spread(labelSelector={"matchLabels": {"a b": "c"}})], '[0].labelSelector.matchLabels["a b"]', "qualified"),
        (
            [spread(labelSelector={"matchExpressions": [{"key": "a", "operator": "In"}]})],
            "[0].labelSelector.matchExpressions[0].values",
            "list the values",
        ),
        (
            [spread(labelSelector={"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]})],
            "[0].labelSelector.matchExpressions[0].values",
            "leave it out",
        ),
    ],
)
def test_constraints_that_mean_nothing_are_refused_by_name(constraints: list[Any], field: str, words: str) -> None:
    (mistake,) = mistakes(topologySpreadConstraints=constraints)
    assert mistake.startswith(f"spec.template.topologySpreadConstraints{field}: ")
    assert words in mistake


@pytest.mark.parametrize("constraints", [[], [spread()], [spread(), spread(whenUnsatisfiable="DoNotSchedule")]])
def test_constraints_that_pods_may_have(constraints: list[Any]) -> None:
    assert mistakes(topologySpreadConstraints=constraints) == []


@pytest.mark.parametrize(
    ("context", "field", "words"),
    [
        ({"runAsUser": 0}, "runAsUser", "give at least 1"),
        ({"runAsNonRoot": False}, "runAsNonRoot", "never run as root"),
        ({"supplementalGroups": [1, -1]}, "supplementalGroups[1]", "no group"),
        ({"privileged": True}, "privileged", "restricted Pod Security Standard"),
        ({"capabilities": {"add": ["SYS_ADMIN"]}}, "capabilities", "restricted Pod Security Standard"),
        ({"seccompProfile": {"type": "Unconfined"}}, "seccompProfile.type", "'RuntimeDefault'"),
        ({"seccompProfile": {"type": "Localhost"}}, "seccompProfile.localhostProfile", "name the profile's file"),
        (
            {"seccompProfile": {"type": "RuntimeDefault", "localhostProfile": "a"}},
            "seccompProfile.localhostProfile",
            "leave it out",
        ),
    ],
)
def test_what_a_restricted_pod_may_not_be_is_refused_by_name(context: dict[str, Any], field: str, words: str) -> None:
    (mistake,) = mistakes(securityContext=context)
    assert mistake.startswith(f"spec.template.securityContext.{field}: ")
    assert words in mistake


@pytest.mark.parametrize("kind", ["hostPath", "nfs", "iscsi", "gcePersistentDisk", "image", "gitRepo"])
def test_volumes_that_a_restricted_pod_can_not_have_are_refused_with_the_reason(kind: str) -> None:
    found = mistakes(volumes=[{"name": "given", kind: {"path": "/"}}], volumeMounts=[MOUNT])
    assert found[0].startswith(f"spec.template.volumes[0].{kind}: {kind} ")
    assert "restricted Pod Security Standard" in found[0]


@pytest.mark.parametrize(
    "source",
    [
        {"configMap": {"name": "a"}},
        {"secret": {"secretName": "a"}},
        {"emptyDir": {}},
        {"projected": {"sources": []}},
        {"persistentVolumeClaim": {"claimName": "a"}},
        {"ephemeral": {"volumeClaimTemplate": {}}},
        {"csi": {"driver": "a"}},
        {"downwardAPI": {"items": []}},
    ],
    ids=lambda source: next(iter(source)),
)
def test_volumes_that_a_restricted_pod_may_have_reach_it_as_they_are(source: dict[str, Any]) -> None:
    template = {"volumes": [{"name": "given", **source}], "volumeMounts": [MOUNT]}
    assert mistakes(**template) == []
    assert in_a_cluster(**template) == []
    made = pod_of({"template": template})["spec"]
    (volume,) = (each for each in made["volumes"] if each["name"] == "given")
    # Not for everybody in the container.
    wanted = {"secret": {"secretName": "a", "defaultMode": 0o440}} if "secret" in source else source
    assert volume == {"name": "given", **wanted}
    assert MOUNT in made["containers"][0]["volumeMounts"]


@pytest.mark.parametrize(
    ("volumes", "mounts", "field", "words"),
    [
        ([{"name": "given"}], [MOUNT], "volumes[0]", "no kind of volume that is allowed"),
        ([{**SECRET, "emptyDir": {}}], [MOUNT], "volumes[0]", "names secret and emptyDir"),
        ([SECRET, SECRET], [MOUNT], "volumes[1].name", "given twice"),
        ([SECRET], [], "volumes[0].name", "mounted nowhere"),
        ([], [MOUNT], "volumeMounts[0].name", "no volume 'given'"),
        ([{**SECRET, "name": "A"}], [{**MOUNT, "name": "A"}], "volumes[0].name", "no name of a volume"),
        ([SECRET], [MOUNT, {**MOUNT, "mountPath": "/mnt/given/"}], "volumeMounts[1].mountPath", "mounted at twice"),
        *(
            ([SECRET], [{**MOUNT, "mountPath": path}], "volumeMounts[0].mountPath", "no path to mount at")
            for path in ("", "mnt", "/mnt/../tmp", "/mnt//a", "//mnt", "/mnt/./a", "/mnt/a:b")
        ),
        *(
            ([SECRET], [{**MOUNT, "subPath": path}], "volumeMounts[0].subPath", "no path below the volume")
            for path in ("/a", "..", "a/../../b")
        ),
    ],
)
def test_volumes_and_mounts_that_do_not_fit_are_refused_by_name(
    volumes: list[Any], mounts: list[Any], field: str, words: str
) -> None:
    (mistake,) = mistakes(volumes=volumes, volumeMounts=mounts)
    assert mistake.startswith(f"spec.template.{field}: ")
    assert words in mistake


@pytest.mark.parametrize("name", [*RESERVED_VOLUMES, "kube-api-access-7xk2p"])
def test_the_operator_s_volumes_are_refused_by_name(name: str) -> None:
    (mistake,) = in_a_cluster(volumes=[{"name": name, "emptyDir": {}}], volumeMounts=[{**MOUNT, "name": name}])
    assert mistake.startswith("spec.template.volumes[0].name: ")


def test_the_stores_of_an_instance_are_nobody_else_s() -> None:
    def claim(name: str) -> list[str]:
        volume = {"name": "given", "persistentVolumeClaim": {"claimName": name}}
        return in_a_cluster(volumes=[volume], volumeMounts=[MOUNT])

    (mistake,) = claim("state-orders-1")
    assert mistake.startswith("spec.template.volumes[0].persistentVolumeClaim.claimName: ")
    assert claim("state-orders-old") == []


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/etc", "/etc/streams", "/etc/streams/application", "/etc/streams/more", "/tmp", "/tmp/more", "/var"),
        *("/var/lib", "/var/lib/streams", "/var/lib/streams/more/", "/var/run/secrets", "/opt", "/opt/streams/venv"),
        *("/usr/lib/jvm", "/dev/termination-log", "/proc", "/run", "/lib"),
    ],
)
def test_what_the_runtime_needs_is_not_mounted_over(path: str) -> None:
    (mistake,) = in_a_cluster(volumes=[SECRET], volumeMounts=[{**MOUNT, "mountPath": path}])
    assert mistake.startswith("spec.template.volumeMounts[0].mountPath: ")
    assert "which the runtime needs as it is" in mistake


@pytest.mark.parametrize(
    "path", ["/mnt", "/data", "/etc/ssl/certs", "/etc/streams-more", "/var/lib/streams-2", "/tmpx"]
)
def test_other_paths_are_free(path: str) -> None:
    assert in_a_cluster(volumes=[SECRET], volumeMounts=[{**MOUNT, "mountPath": path}]) == []


def test_all_volumes_and_paths_of_a_pod_are_reserved() -> None:
    everything = {
        "kafka": {
            "bootstrapServers": "k:1",
            "secretRef": {"name": "a"},
            "schemaRegistry": {"url": "https://r", "secretRef": {"name": "b"}},
        },
        "code": {"configMap": "c"},
        "queries": {"access": {"token": {"secretRef": {"name": "d"}}}, "tls": {"secretRef": {"name": "e"}}},
    }
    made = pod_of(everything)["spec"]
    assert {each["name"] for each in made["volumes"]} == set(RESERVED_VOLUMES)
    for mount in made["containers"][0]["volumeMounts"]:
        assert folder_in_the_way(mount["mountPath"]) in RESERVED_FOLDERS
