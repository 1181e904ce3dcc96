"""Delays before something that failed is tried again."""

from __future__ import annotations

from streams_runtime.retry_backoff import backoff_delay


def test_each_failure_doubles_the_delay_until_the_longest() -> None:
    assert [backoff_delay(earlier, 0.5, 5.0) for earlier in range(6)] == [0.5, 1.0, 2.0, 4.0, 5.0, 5.0]


def test_the_first_delay_is_never_over_the_longest() -> None:
    assert backoff_delay(0, 10.0, 5.0) == 5.0


def test_any_number_of_failures_has_a_delay() -> None:
    assert backoff_delay(1_000_000, 0.25, 10.0) == 10.0


def test_no_first_delay_is_no_delay_ever() -> None:
    assert backoff_delay(7, 0.0, 30.0) == 0.0
