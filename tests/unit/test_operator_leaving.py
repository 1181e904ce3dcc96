"""Pods that are removed for good are to leave the group (KIP-812); those that come back under their names are not."""

from __future__ import annotations

from typing import Any

import pytest
from operator_cases import CRASH, ERROR, digest_of, observed, remembered, removed
from operator_world import START, running

from streams_operator.model import Observed, PodState
from streams_operator.names import ANNOTATION_LEAVE
from streams_operator.plan import plan

NOW, OLD = digest_of(), "0123456789"
LEAVES = {"leave_signaled": True}


def two(digest: str = NOW, **second: Any) -> list[PodState]:
    return [running(0, digest), running(1, digest, **second)]


def leaving(found: Observed) -> list[tuple[str, str | None]]:
    return [(each.pod, each.text) for each in plan(found).signals if each.annotation == ANNOTATION_LEAVE]


@pytest.mark.parametrize(
    "found",
    [
        observed({"replicas": 1}, two(), status=remembered(*two())),
        observed({"suspend": True}, two()),
        observed(pods=two(), metadata={"deletionTimestamp": "2027-01-15T08:00:00Z"}),
    ],
    ids=["scaled down", "suspended", "deleted"],
)
def test_a_pod_that_goes_for_good_is_signaled_in_the_round_that_removes_it(found: Observed) -> None:
    assert removed(plan(found)) == ["orders-1"]
    assert leaving(found) == [("orders-1", "true")]


def test_all_that_go_at_once_at_a_deletions_deadline_are_signaled() -> None:
    late = observed(pods=two(), metadata={"deletionTimestamp": "2027-01-15T08:00:00Z"}, now=START + 1e6)
    assert leaving(late) == [("orders-0", "true"), ("orders-1", "true")]


def test_a_signal_is_given_once_and_nothing_that_has_ended_gets_one() -> None:
    assert leaving(observed({"replicas": 1}, two(**LEAVES), status=remembered(*two()))) == []
    assert leaving(observed({"replicas": 1}, two(**ERROR), status=remembered(*two()))) == []


@pytest.mark.parametrize(
    "found",
    [
        observed(pods=two(OLD)),
        observed({"restartNonce": 1}, two()),
        observed(pods=two(**CRASH), now=START + 3600),
    ],
    ids=["new version", "restart", "crash"],
)
def test_a_pod_that_is_made_again_keeps_its_place_in_the_group(found: Observed) -> None:
    assert removed(plan(found))
    assert leaving(found) == []


def test_a_pod_that_stays_after_all_is_told_so() -> None:
    assert leaving(observed(pods=two(**LEAVES))) == [("orders-1", None)]
