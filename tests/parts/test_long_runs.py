"""Tests with the marker `long` are left out of a run unless it is a long one."""

from __future__ import annotations

from pathlib import Path

import long_runs
import pytest

TESTS = """
import pytest
from long_runs import also_long

@pytest.mark.parametrize("seed", also_long(range(2), range(2, 5)))
def test_seeds(seed): pass
@pytest.mark.parametrize(("policy", "partitions"), also_long([("fail", 1)], [("continue", 3)]))
def test_pairs(policy, partitions): assert policy in ("fail", "continue")
@pytest.mark.long
def test_hours(): pass
"""


@pytest.mark.parametrize(("variable", "passed", "left_out"), [(None, 3, 5), ("1", 8, 0), ("0", 3, 5)])
def test_further_ways_run_in_a_long_run_only(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, variable: str | None, passed: int, left_out: int
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(long_runs.__file__).parent))
    monkeypatch.delenv(long_runs.VARIABLE, raising=False)
    if variable is not None:
        monkeypatch.setenv(long_runs.VARIABLE, variable)
    pytester.makepyfile(test_inner=TESTS)
    ran = pytester.runpytest_subprocess("-p", "long_runs", "--strict-markers")
    ran.assert_outcomes(passed=passed, deselected=left_out)


def test_a_test_that_is_named_runs(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(long_runs.__file__).parent))
    monkeypatch.delenv(long_runs.VARIABLE, raising=False)
    file = pytester.makepyfile(test_inner=TESTS)
    pytester.runpytest_subprocess("-p", "long_runs", f"{file}::test_hours").assert_outcomes(passed=1)
    pytester.runpytest_subprocess("-p", "long_runs", f"{file}::test_seeds").assert_outcomes(passed=5)
