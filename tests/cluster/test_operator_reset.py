"""spec.reset on a real API server and a real broker: rehearsed, carried out by two operators, and refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from clients import send
from operator_kit import operator
from operator_stage import Stage
from waiting import eventually

from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.types import TopicPartition

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("crd")]

RECORDS = 5
STORAGE = {"storage": {"size": "1Gi"}}
CLAIMS = ["state-app-0", "state-app-1"]


@pytest.fixture
def admin(stage: Stage) -> Iterator[Admin]:
    found = Admin({"bootstrap.servers": stage.bootstrap})
    yield found
    found.close()


def asked(stage: Stage, suspend: bool = True, **reset: Any) -> str:
    """Ask for a reset; what kubectl says."""
    patch = {"spec": {"suspend": suspend, "reset": {"to": "earliest", **reset}}}
    return stage.merge(json.dumps(patch)).stderr


def processed(stage: Stage, admin: Admin) -> None:
    """As if pods had processed what is in the source: the kubelet only plays them."""
    topic = f"{stage.namespace}-in"
    for number in range(2):
        send(stage.bootstrap, topic, [(f"k{each}", {"n": 1}) for each in range(RECORDS)], number)
    offsets = {TopicPartition(topic, number): RECORDS for number in range(2)}
    admin.move_offsets(f"{stage.namespace}-app", offsets, admin.topic_ids([topic]))
    assert committed(stage, admin) == {0: RECORDS, 1: RECORDS}


def committed(stage: Stage, admin: Admin) -> dict[int, int]:
    partitions = [TopicPartition(f"{stage.namespace}-in", number) for number in range(2)]
    found = admin.committed_offsets(f"{stage.namespace}-app", partitions)
    return {each.partition: offset for each, offset in found.items()}


def reset(stage: Stage) -> dict[str, Any]:
    return dict(stage.status().get("reset") or {})


def reached(stage: Stage, nonce: int, state: str) -> dict[str, Any]:
    eventually(
        lambda: (reset(stage).get("nonce"), reset(stage).get("state")) == (nonce, state),
        lambda: f"{state}; it is {reset(stage)}, {stage.condition('Progressing')}",
        60,
    )
    return reset(stage)


def test_a_reset_is_rehearsed_then_carried_out_also_over_the_end_of_an_operator_before_pods_come_back(
    stage: Stage, admin: Admin, tmp_path: Path
):
    with operator(stage.cluster, stage.namespace, tmp_path) as first:
        stage.apply(replicas=2, state=STORAGE)
        stage.reaches("RUNNING", "2/2")
        processed(stage, admin)
        changelog, before = stage.topics(), admin.topic_ids(stage.topics())
        asked(stage, suspend=False, nonce=1, dryRun=True)
        rehearsed = reached(stage, 1, "DryRun")
        assert (rehearsed["topics"], rehearsed["volumes"]) == (changelog, CLAIMS)
        (offsets,) = rehearsed["offsets"]
        assert (offsets["before"], offsets["after"]) == ("0:5 1:5", "0:0 1:0")
        assert "10 records back" in rehearsed["message"]
        assert committed(stage, admin) == {0: RECORDS, 1: RECORDS}
        assert admin.topic_ids(changelog) == before
        asked(stage, nonce=1, dryRun=False)
        # No controller of this API server takes off what protects a claim: the reset waits for them to go.
        eventually(lambda: reset(stage).get("step") == "Volumes", lambda: f"the last step: {reset(stage)}", 60)
        stage.kill(first)
    with operator(stage.cluster, stage.namespace, tmp_path):
        stage.merge('{"spec": {"suspend": false, "reset": null}}')
        eventually(
            lambda: stage.get()["status"]["observedGeneration"] == stage.get()["metadata"]["generation"], "it was seen"
        )
        assert (stage.pods(), reset(stage)["state"]) == ([], "Running"), "no pod before the end of the reset"
        assert stage.condition("Ready")[1] == "Resetting"
        for name in CLAIMS:
            unprotected = '{"metadata": {"finalizers": null}}'
            stage.cluster.kubectl(
                "patch", "pvc", name, f"--namespace={stage.namespace}", "--type=merge", f"--patch={unprotected}"
            )
        done = reached(stage, 1, "Done")
        assert "step" not in done
        assert "deleted and made anew 1 internal topic" in done["message"]
        assert committed(stage, admin) == {0: 0, 1: 0}
        assert admin.topic_ids(changelog).keys() == before.keys()
        assert not set(admin.topic_ids(changelog).values()) & set(before.values())
        stage.reaches("RUNNING", "2/2")
        assert stage.kinds("pvc") == CLAIMS
        said = [reason for reason, _ in stage.events() if reason.startswith("Reset")]
        assert {"ResetDryRun", "ResetRunning", "ResetDone"} <= set(said)


@pytest.mark.usefixtures("running")
def test_a_reset_of_a_running_application_and_impossible_ones_are_refused_and_change_nothing(
    stage: Stage, admin: Admin
):
    stage.apply(replicas=1)
    stage.reaches("RUNNING", "1/1")
    processed(stage, admin)
    before = admin.topic_ids(stage.topics())
    asked(stage, suspend=False, nonce=2)
    assert "set spec.suspend to true" in reached(stage, 2, "Refused")["message"]
    asked(stage, nonce=3, to={"offsets": {"in": {"0": 6}}})
    assert f"{stage.namespace}-in-0 has the offsets 0 to 5, and not 6" in reached(stage, 3, "Refused")["message"]
    assert stage.condition("Degraded")[:2] == ("True", "ResetRefused")
    for bad, said in (
        ({"nonce": 1}, "the nonce can only grow: each number is one reset"),
        ({"nonce": 4, "to": "soon"}, "spec.reset.to"),
        ({"nonce": 4, "to": {"offsets": {"in": {"0": -1}}}}, "spec.reset.to.offsets.in.0"),
        ({"nonce": 4, "internalTopics": "Burn"}, "spec.reset.internalTopics"),
    ):
        patch = {"spec": {"reset": {"to": "earliest", **bad}}}
        refused = stage.cluster.kubectl(
            "patch",
            "streamsapp",
            "app",
            f"--namespace={stage.namespace}",
            "--type=merge",
            f"--patch={json.dumps(patch)}",
            check=False,
        )
        assert refused.returncode != 0
        assert said in refused.stderr, refused.stderr
    assert committed(stage, admin) == {0: RECORDS, 1: RECORDS}
    assert admin.topic_ids(stage.topics()) == before
    stage.merge('{"spec": {"suspend": false}}')
    stage.reaches("RUNNING", "1/1")
