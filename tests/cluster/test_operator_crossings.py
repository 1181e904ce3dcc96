"""Two things at once on a real API server: autoscaling beside a reset, beside a pause, beside a new default image."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from operator_kit import operator
from operator_stage import Stage
from played_load import PlayedLoad, played_load
from waiting import eventually

from streams_operator import names

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("crd")]

SPEC = {"replicas": 2, "autoscaling": {"maxReplicas": 3, "targetCatchUp": "10s", "stabilization": "10s"}}
SETTINGS = {"rollout_max_applications": "1"}
MUCH = 200_000
"""Records that three instances would need more than a minute for."""


@pytest.fixture
def load(stage: Stage) -> Iterator[PlayedLoad]:
    """As much as two instances can process, and one can't."""
    with played_load(stage.kubelet, "app", pods=3, arrival=1500.0, rate=1000.0) as load:
        yield load


def scaling(stage: Stage) -> dict[str, Any]:
    return dict(stage.status().get("autoscaling") or {})


def waiting(stage: Stage, records: int) -> dict[str, Any]:
    """A status that says that more than so many wait, and what was decided by it."""
    found: list[dict[str, Any]] = []
    eventually(lambda: found.append(stage.status()) or (found[-1].get("lag") or 0) > records, lambda: str(found[-1]))
    return found[-1]


def never_scaled(stage: Stage) -> bool:
    return not [each for each in stage.events() if each[0] in ("ScaledUp", "ScaledDown")] and "lastScaleTime" not in (
        scaling(stage)
    )


def images(stage: Stage, application: str = "app") -> list[str]:
    pods = stage.kubelet.pods().values()
    own = [pod for pod in pods if pod["metadata"]["labels"][names.LABEL_APPLICATION] == application]
    return sorted(pod["spec"]["containers"][0]["image"] for pod in own)


@pytest.mark.usefixtures("running")
def test_a_reset_leaves_the_number_of_an_autoscaled_application_and_is_no_load(stage: Stage, load: PlayedLoad) -> None:
    stage.apply(**SPEC)
    stage.reaches("RUNNING", "2/2")
    eventually(lambda: load.asked >= 4, "the operator has seen how far they are")
    stage.merge(json.dumps({"spec": {"suspend": True, "reset": {"nonce": 1, "to": "earliest"}}}))
    eventually(lambda: (stage.status().get("reset") or {}).get("state") == "Done", lambda: str(stage.status()))
    assert stage.pods() == []
    assert (scaling(stage)["reason"], scaling(stage)["replicas"]) == ("Suspended", 2)
    load.read_anew()
    stage.merge('{"spec": {"suspend": false}}')
    stage.reaches("RUNNING", "2/2")
    said = waiting(stage, 1000)["autoscaling"]
    assert (said["reason"], said["replicas"]) == ("Observing", 2), "from before the reset nothing is known"
    assert never_scaled(stage)


@pytest.mark.usefixtures("running")
def test_a_pause_is_no_reason_for_more_instances_however_much_waits(stage: Stage, load: PlayedLoad) -> None:
    stage.apply(**SPEC)
    stage.reaches("RUNNING", "2/2")
    stage.merge('{"spec": {"paused": true}}')
    eventually(lambda: scaling(stage).get("reason") == "Paused", lambda: str(stage.status()))
    load.rate, load.arrival = 0.0, 100_000.0
    said = waiting(stage, MUCH)["autoscaling"]
    assert (said["reason"], said["replicas"], never_scaled(stage)) == ("Paused", 2, True)
    load.rate, load.arrival = 1000.0, 1500.0
    stage.merge('{"spec": {"paused": false}}')
    eventually(lambda: scaling(stage)["reason"] == "Observing", lambda: str(stage.status()))
    assert never_scaled(stage), "what the pause has left is measured anew before anything is decided by it"


def test_a_new_default_image_replaces_as_many_instances_as_the_load_has_asked_for(
    stage: Stage, load: PlayedLoad, tmp_path: Path
) -> None:
    stage.apply(**SPEC)
    with operator(stage.cluster, stage.namespace, tmp_path, runtime_image="runtime:1", **SETTINGS) as process:
        stage.reaches("RUNNING", "2/2")
        eventually(lambda: "replicas" in scaling(stage), "the number is on record")
        assert process.stop() == 0
    stage.kubelet.hold("app-1", "REBALANCING")
    with operator(stage.cluster, stage.namespace, tmp_path, runtime_image="runtime:2", **SETTINGS) as process:
        eventually(lambda: images(stage) == ["runtime:1", "runtime:2"], lambda: str(images(stage)))
        load.arrival = 100_000.0
        eventually(lambda: scaling(stage)["reason"] == "RollingOut", lambda: str(stage.status()))
        said = waiting(stage, MUCH)["autoscaling"]
        assert (said["reason"], said["replicas"]) == ("RollingOut", 2)
        load.arrival = 100.0
        stage.kubelet.let("app-1")
        eventually(lambda: images(stage) == ["runtime:2", "runtime:2"], lambda: str(images(stage)))
        stage.reaches("RUNNING", "2/2")
        assert never_scaled(stage)
        assert process.stop() == 0
