"""Pods of an application with snapshots: credentials, folders, and what status says of a Secret that is missing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from operator_cases import DEFAULTS
from operator_world import NAME, World, application_of, resource

from streams_operator import names
from streams_operator.plan import followed
from streams_operator.plan.objects.document import digest
from streams_operator.plan.objects.identity import Identity
from streams_operator.plan.objects.pod_manifest import pod
from streams_operator.plan.version.acceptance import cluster_mistakes
from streams_runtime.pipeline.spark.executor_template import executor_template

URL, SECRET = "s3://bucket/shop", "orders-snapshots"
SNAPSHOTS: dict[str, Any] = {"url": URL, "secretRef": {"name": SECRET}}
CLAIM = {"name": "shared", "persistentVolumeClaim": {"claimName": "shared"}}


def container_of(spec: dict[str, Any]) -> dict[str, Any]:
    made = pod(Identity(NAME, "shop", "u"), application_of(resource(spec)), 0, "0" * 10, DEFAULTS)
    (container,) = made["spec"]["containers"]
    assert container["name"] == names.CONTAINER
    found: dict[str, Any] = container
    return found


def test_the_secret_s_keys_become_variables_and_it_has_to_be_there() -> None:
    assert container_of({"state": {"snapshots": SNAPSHOTS}})["envFrom"] == [{"secretRef": {"name": SECRET}}]


@pytest.mark.parametrize("state", [{}, {"snapshots": {"url": URL}}])
def test_without_a_secret_pods_are_as_ever(state: dict[str, Any]) -> None:
    assert "envFrom" not in container_of({"state": state})


def test_executors_get_no_credentials_of_snapshots() -> None:
    application = application_of(
        resource({"state": {"snapshots": SNAPSHOTS}, "template": {"env": [{"name": "A", "value": "1"}]}})
    )
    instance = pod(Identity(NAME, "shop", "u"), application, 0, "0" * 10, DEFAULTS)
    instance["metadata"]["uid"] = "u"
    (executor,) = executor_template(instance, NAME)["spec"]["containers"]
    assert executor["env"] == [{"name": "A", "value": "1"}]
    assert "envFrom" not in executor
    assert SECRET not in str(executor)


def test_a_change_of_the_settings_replaces_pods() -> None:
    digests = {
        digest(application_of(resource({"state": {"snapshots": each}})), "shop", DEFAULTS)
        for each in (None, {"url": URL}, {"url": URL, "keep": 3}, SNAPSHOTS, {**SNAPSHOTS, "interval": "1m"})
    }
    assert len(digests) == 5


def test_changes_of_the_secret_are_followed() -> None:
    spec = {"state": {"snapshots": SNAPSHOTS}}
    assert followed(application_of(resource({**spec, "restartOnChange": ["secrets"]}))) == (("Secret", SECRET),)
    assert followed(application_of(resource({**spec, "restartOnChange": ["code"]}))) == ()


def test_status_names_a_secret_that_is_missing_and_what_to_do() -> None:
    world = World({"replicas": 2, "state": {"snapshots": SNAPSHOTS}, "progressDeadline": "10m"})
    for _ in range(5):
        world.reconcile()
    waits = {"reason": "CreateContainerConfigError", "message": f'secret "{SECRET}" not found'}
    world.pods = {name: replace(each, phase="Pending", **waits) for name, each in world.pods.items()}
    assert len(world.pods) == 2
    world.reconcile()
    says = f"Create the Secret {SECRET}, which spec.state.snapshots.secretRef names, or correct the name"
    assert says in message(world, "Progressing")
    world.now += 3600
    world.reconcile()
    assert world.condition("Degraded")[0] == "True"
    assert says in message(world, "Degraded")


def test_status_says_nothing_of_snapshots_where_another_secret_is_missing() -> None:
    world = World({"state": {"snapshots": SNAPSHOTS}})
    for _ in range(5):
        world.reconcile()
    waits = {"reason": "CreateContainerConfigError", "message": 'secret "other" not found'}
    world.pods = {name: replace(each, phase="Pending", **waits) for name, each in world.pods.items()}
    world.reconcile()
    assert 'secret "other" not found' in message(world, "Progressing")
    assert "spec.state.snapshots" not in message(world, "Progressing")


def message(world: World, condition: str) -> str:
    (found,) = (each for each in world.status["conditions"] if each["type"] == condition)
    text: str = found["message"]
    return text


def in_a_cluster(url: str, *volumes: dict[str, Any], **mount: Any) -> list[str]:
    mounts = [{"name": each["name"], "mountPath": "/mnt/shared", **mount} for each in volumes]
    template = {"volumes": list(volumes), "volumeMounts": mounts}
    application = application_of(resource({"state": {"snapshots": {"url": url}}, "template": template}))
    return [str(each) for each in cluster_mistakes(application, DEFAULTS)]


@pytest.mark.parametrize("url", ["file:///mnt/shared", "file:///mnt/shared/shop/orders/"])
def test_a_folder_on_a_claim_will_do(url: str) -> None:
    assert in_a_cluster(url, CLAIM) == []


def test_a_folder_on_an_inline_volume_of_a_driver_will_do() -> None:
    assert in_a_cluster("file:///mnt/shared", {"name": "nfs", "csi": {"driver": "nfs.csi.k8s.io"}}) == []


@pytest.mark.parametrize("url", ["file:///mnt", "file:///mnt/sharedother", "file:///var/lib/streams/snapshots"])
def test_a_folder_of_the_pod_itself_is_refused(url: str) -> None:
    (mistake,) = in_a_cluster(url, CLAIM)
    assert mistake.startswith(f"spec.state.snapshots.url: found {url!r}, and no volume of spec.template is mounted at")
    assert mistake.endswith("or give the url of a bucket")


@pytest.mark.parametrize("kind", [{"emptyDir": {}}, {"configMap": {"name": "a"}}, {"ephemeral": {}}])
def test_a_volume_that_goes_with_its_pod_is_refused(kind: dict[str, Any]) -> None:
    (mistake,) = in_a_cluster("file:///mnt/shared/a", {"name": "own", **kind})
    assert "where own is mounted, a volume that goes with its pod" in mistake


def test_a_volume_for_reading_only_is_refused() -> None:
    read_only = {"name": "shared", "persistentVolumeClaim": {"claimName": "shared", "readOnly": True}}
    for mistakes in (
        in_a_cluster("file:///mnt/shared", CLAIM, readOnly=True),
        in_a_cluster("file:///mnt/shared", read_only),
    ):
        (mistake,) = mistakes
        assert "where shared is mounted for reading only" in mistake


def test_the_innermost_of_two_mounts_counts() -> None:
    inner = {"name": "own", "emptyDir": {}}
    template = {
        "volumes": [CLAIM, inner],
        "volumeMounts": [{"name": "shared", "mountPath": "/mnt"}, {"name": "own", "mountPath": "/mnt/a/"}],
    }
    snapshots = {"url": "file:///mnt/a/b"}
    application = application_of(resource({"state": {"snapshots": snapshots}, "template": template}))
    (mistake,) = cluster_mistakes(application, DEFAULTS)
    assert "where own is mounted" in str(mistake)
