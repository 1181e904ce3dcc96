"""When the silence of a pod speaks against its conditions."""

from __future__ import annotations

import pytest

from streams_operator.reconcile.freshness import FRESH, SILENT, Freshness


class Clock:
    """Seconds that a test lets pass."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def freshness(clock: Clock) -> Freshness:
    return Freshness(clock)


def test_a_pod_that_never_answered_is_believed(freshness: Freshness, clock: Clock) -> None:
    freshness.failed("a", clock.now)
    freshness.answered("b")
    clock.now += 2 * SILENT
    assert not freshness.doubted("a")
    assert not freshness.silent("a")


def test_an_answer_vouches_for_a_moment_and_then_another_one_is_waited_for(freshness: Freshness, clock: Clock) -> None:
    freshness.answered("a")
    clock.now += FRESH
    assert not freshness.doubted("a")
    clock.now += 0.1
    assert freshness.doubted("a")
    assert not freshness.silent("a"), "nobody has asked it since"
    freshness.answered("a")
    assert not freshness.doubted("a")


def test_a_pod_that_is_silent_while_others_answer_counts_as_away_until_it_answers(
    freshness: Freshness, clock: Clock
) -> None:
    freshness.answered("a")
    clock.now += 60
    freshness.failed("a", clock.now)
    clock.now += SILENT / 2
    freshness.failed("a", clock.now)
    freshness.answered("b")
    assert not freshness.silent("a")
    clock.now += SILENT / 2
    assert freshness.silent("a")
    assert freshness.doubted("a")
    freshness.answered("a")
    assert not freshness.silent("a")
    assert not freshness.doubted("a")


def test_where_no_pod_answers_it_is_the_operator_that_is_cut_off(freshness: Freshness, clock: Clock) -> None:
    freshness.answered("a")
    freshness.answered("b")
    clock.now += 60
    for uid in ("a", "b"):
        freshness.failed(uid, clock.now)
    assert freshness.doubted("a")
    clock.now += SILENT
    assert not freshness.silent("a")
    assert not freshness.doubted("a"), "a change that waits goes on by Kubernetes' word"


def test_a_pod_that_has_gone_is_forgotten(freshness: Freshness, clock: Clock) -> None:
    freshness.answered("a")
    freshness.forget("a")
    clock.now += 60
    assert not freshness.doubted("a")
