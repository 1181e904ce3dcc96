"""One resource, whatever stands in it and its pods' words, does not keep the operator from the others."""

from __future__ import annotations

from typing import Any

import pytest
from operator_cases import DEFAULTS, remembered
from operator_world import START, resource, running

from streams_operator.kube.pod_state import pod_state
from streams_operator.model import Observed
from streams_operator.names import ANNOTATION_NONCE, CONDITION_RESTORED, ordinal
from streams_operator.plan.pods.instances import instances
from streams_operator.plan.reconcile_context import ReconcileContext
from streams_operator.webhook import verdict
from streams_runtime.errors import Mistake


def reviewed(resource: dict[str, Any]) -> dict[str, Any]:
    """What the webhook answers to the resource's creation."""
    request = {"uid": "u", "operation": "CREATE", "object": resource}
    return dict(verdict({"apiVersion": "v1", "request": request}, DEFAULTS)["response"])


def test_the_webhook_refuses_a_resource_that_is_nested_too_deeply() -> None:
    deep: Any = "x"
    for _ in range(1_000):  # orjson reads 1,024
        deep = {"a": deep}
    answer = reviewed(resource({"template": {"affinity": deep}}))
    assert not answer["allowed"]
    assert answer["status"]["message"].startswith("the resource: more than 64 levels in each other")


def test_the_instances_of_an_invalid_resource_are_those_on_record_however_many_it_wants() -> None:
    status = remembered(running(0, "old"), running(1, "old"))
    given = {**resource({"replicas": 10**15}), "status": status}
    seen = Observed(given, None, (Mistake("spec.replicas", "found", "give"),), START)
    assert [each.ordinal for each in instances(ReconcileContext.of(seen))] == [0, 1]


@pytest.mark.parametrize("words", ["9" * 5_000 + " records left", "x" + "9" * 5_000 + " records left"])
def test_a_pod_says_no_number_that_an_answer_can_not_hold(words: str) -> None:
    condition = {"type": CONDITION_RESTORED, "status": "False", "message": words}
    metadata = {"name": "orders-0", "uid": "u", "annotations": {ANNOTATION_NONCE: "9" * 5_000}}
    seen = pod_state({"metadata": metadata, "status": {"conditions": [condition]}}, "orders")
    assert (seen.records_left, seen.nonce) == (0, 0)


@pytest.mark.parametrize("number", ["", "01", "-1", "٣", "9" * 200, "1 "])
def test_a_pod_of_another_name_has_no_ordinal(number: str) -> None:
    assert ordinal(f"orders-{number}", "orders") is None
