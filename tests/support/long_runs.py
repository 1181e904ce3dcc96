"""Pytest plugin: tests with the marker `long` run with STREAMSAPP_TEST_LONG=1 only, which `make test-long` sets,
and where they are named.

They are further ways to a claim that a shorter test makes, too: other seeds, other moments of a fault, the same in
pods. All else is in each run.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import pytest

VARIABLE = "STREAMSAPP_TEST_LONG"


def also_long(few: Sequence[Any], more: Sequence[Any]) -> list[Any]:
    """For `parametrize`: the values of each run, and those of a long one."""
    values = [each if isinstance(each, tuple) else (each,) for each in more]
    return [*few, *(pytest.param(*each, marks=pytest.mark.long) for each in values)]


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", "long: runs in `make test-long` only")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the long ones, and say how many; a test that is named runs, whatever it is."""
    if os.environ.get(VARIABLE) == "1" or any("::" in each for each in config.args):
        return
    config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("long")])
    items[:] = [item for item in items if not item.get_closest_marker("long")]
