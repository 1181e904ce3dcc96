"""What `spec.disruptionBudget` may say."""

from __future__ import annotations

from typing import Any

import pytest
from operator_world import resource

from streams_runtime.api import read_application


def mistakes(budget: Any) -> list[str]:
    return [str(each) for each in read_application(resource({"disruptionBudget": budget}), "here").mistakes]


@pytest.mark.parametrize("given", [0, 1, 10_000, "0%", "25%", "100%", None])
def test_a_number_of_pods_or_a_part_of_them(given: object) -> None:
    assert mistakes({"maxUnavailable": given}) == []


@pytest.mark.parametrize("given", [-1, 1.5, True, "1", "101%", "1.5%", "half", [], 2**31])
def test_another_value_is_refused_with_what_would_do(given: object) -> None:
    (mistake,) = mistakes({"maxUnavailable": given})
    assert mistake.startswith(f"spec.disruptionBudget.maxUnavailable: found {given!r}")
    assert mistake.endswith("write a number, or a part such as 25%")


def test_a_budget_that_is_off_tells_nothing() -> None:
    (mistake,) = mistakes({"enabled": False, "maxUnavailable": 1})
    assert mistake.startswith("spec.disruptionBudget.maxUnavailable: is given beside enabled: false")
    assert mistakes({"enabled": False}) == []
