"""How long tests pause between two looks at what they wait for."""

from __future__ import annotations

import pytest
import waiting


@pytest.mark.parametrize(
    ("took", "waited", "pause"),
    [
        (0.00005, 60.0, 0.001),  # a field of this process
        (0.004, 0.0, 0.008),  # a request
        (0.004, 1.0, 0.028),
        (0.004, 60.0, 0.08),
        (0.006, 60.0, 0.12),  # several requests
        (0.06, 60.0, 0.25),  # a command
        (1.0, 0.0, 0.25),
        (1.0, 60.0, 0.25),
    ],
)
def test_a_look_that_takes_long_or_was_taken_often_leaves_more_time(took: float, waited: float, pause: float) -> None:
    assert waiting._pause(took, waited) == pytest.approx(pause)


def test_a_condition_is_looked_at_until_it_is_true() -> None:
    looks = iter([False, False, True])
    waiting.eventually(lambda: next(looks))
    assert next(looks, None) is None


def test_what_never_comes_fails_and_says_what_it_was() -> None:
    with pytest.raises(AssertionError, match=r"not within 0\.02 s: spring"):
        waiting.eventually(lambda: False, lambda: "spring", 0.02)
