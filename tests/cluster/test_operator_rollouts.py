"""A new default image goes to one application after the other, and stops where one does not get on with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from operator_kit import operator, resource
from operator_stage import Stage
from waiting import eventually

from streams_operator import names

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("crd")]


def images(stage: Stage, application: str) -> set[str]:
    pods = stage.kubelet.pods().values()
    own = [pod for pod in pods if pod["metadata"]["labels"][names.LABEL_APPLICATION] == application]
    return {pod["spec"]["containers"][0]["image"] for pod in own}


def condition(stage: Stage, application: str, type: str) -> tuple[str, str]:
    found = stage.cluster.get("streamsapp", application, namespace=stage.namespace)
    said: list[dict[str, Any]] = ((found or {}).get("status") or {}).get("conditions") or []
    return next(((each["status"], each["reason"]) for each in said if each["type"] == type), ("", ""))


def test_one_goes_first_and_the_other_waits_until_that_one_is_mended(stage: Stage, tmp_path: Path):
    stage.cluster.apply(
        *(
            resource(stage.namespace, stage.bootstrap, name, progressDeadline="10s", replicas=2)
            for name in ("app", "other")
        )
    )
    applications = ("app", "other")
    settings = {"rollout_max_applications": "1"}
    with operator(stage.cluster, stage.namespace, tmp_path, runtime_image="runtime:1", **settings) as process:
        for name in applications:
            eventually(lambda name=name: condition(stage, name, "Ready")[0] == "True", f"{name} runs")
        assert process.stop() == 0
    for name in applications:
        stage.kubelet.hold(f"{name}-1")
    with operator(stage.cluster, stage.namespace, tmp_path, runtime_image="runtime:2", **settings) as process:
        eventually(lambda: "runtime:2" in images(stage, "app") | images(stage, "other"), "one has begun")
        first, second = applications if "runtime:2" in images(stage, "app") else reversed(applications)
        eventually(
            lambda: condition(stage, second, "Progressing") == ("False", "ImageRolloutStopped"), "the other is held"
        )
        assert condition(stage, first, "Degraded") == ("True", "ProgressDeadlineExceeded")
        assert condition(stage, second, "Degraded")[0] == "False"
        assert condition(stage, second, "Ready")[0] == "True"
        assert images(stage, second) == {"runtime:1"}
        assert process.said(f"{stage.namespace}/{first} is Degraded with it")
        assert "streams_operator_image_rollout_stopped 1.0" in process.metrics()
        assert "streams_operator_image_waiting_applications 1.0" in process.metrics()
        for name in applications:
            stage.kubelet.let(f"{name}-1")
        for name in applications:
            eventually(lambda name=name: images(stage, name) == {"runtime:2"}, f"{name} has it")
            eventually(lambda name=name: condition(stage, name, "Progressing") == ("False", "Settled"), "it is there")
        assert "streams_operator_image_rollout_stopped 0.0" in process.metrics()
        assert process.stop() == 0
