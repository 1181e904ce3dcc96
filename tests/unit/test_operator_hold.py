"""The annotation pause-reconciliation: nothing is changed but the status, until it goes."""

from __future__ import annotations

from typing import Any

import pytest
from operator_cases import CRASH, ERROR, condition, digest_of, made, observed, remembered, status_of
from operator_world import START, ready_topics, running

from streams_operator.model import Observed, PodState, TopicsState
from streams_operator.names import ANNOTATION_HOLD
from streams_operator.plan import is_on_hold, plan

NOW, OLD = digest_of(), "0123456789"
HELD = {"annotations": {ANNOTATION_HOLD: "true"}}
MISSING = TopicsState(START, False, missing=("t",), tasks=4)


def two(digest: str = NOW, **second: Any) -> list[PodState]:
    return [running(0, digest), running(1, digest, **second)]


def held(spec: dict[str, Any] | None = None, pods: list[PodState] | None = None, **more: Any) -> Observed:
    return observed(spec, two() if pods is None else pods, metadata={**HELD, **more.pop("metadata", {})}, **more)


@pytest.mark.parametrize(
    "found",
    [
        held(),
        held(pods=[]),
        held(pods=[], topics=MISSING),
        held(topics=None),
        held(pods=two(OLD)),
        held(pods=two(**CRASH)),
        held(pods=two(**ERROR)),
        held({"replicas": 1}),
        held({"replicas": 5}),
        held({"suspend": True}),
        held({"paused": True}),
        held({"restartNonce": 3}),
        held({"rollback": "automatic"}, now=START + 3600),
    ],
)
def test_nothing_is_changed_whatever_there_is_to_do(found: Observed) -> None:
    todo = plan(found)
    assert (todo.apply, todo.remove, todo.signals, todo.kafka) == ((), (), (), None)
    held_back = condition(status_of(found), "Progressing")
    assert (held_back["status"], held_back["reason"]) == ("False", "ReconciliationPaused")
    assert ANNOTATION_HOLD in held_back["message"]


def test_the_status_goes_on_telling_the_truth_about_pods() -> None:
    before = remembered(*two())
    status = status_of(held(pods=two(**ERROR), status=before))
    assert status["state"] == "ERROR"
    assert condition(status, "Degraded")["status"] == "True"
    assert condition(status, "Ready")["status"] == "False"


def test_what_was_held_back_is_done_once_it_may_be() -> None:
    status = status_of(held(pods=[]))
    assert made(plan(observed(status=status, topics=ready_topics()))) == ["orders-0", "orders-1"]


def test_a_deletion_is_carried_out_all_the_same() -> None:
    todo = plan(held(metadata={"deletionTimestamp": "2027-01-15T08:00:00Z"}))
    assert [each.name for each in todo.remove] == ["orders-1"]


@pytest.mark.parametrize(
    ("text", "holds"), [("true", True), (" True ", True), ("false", False), ("", False), ("yes", False), (None, False)]
)
def test_only_true_holds(text: str | None, holds: bool) -> None:
    assert is_on_hold({"metadata": {"annotations": {ANNOTATION_HOLD: text}}}) is holds


def test_a_resource_without_annotations_is_not_on_hold() -> None:
    assert not is_on_hold({"metadata": {}})
    assert not is_on_hold({"metadata": {"annotations": None}})
