"""Tests are in lanes by the fixtures that they ask for, and the lanes have an order."""

from __future__ import annotations

from pathlib import Path

import lanes
import pytest
from lanes import BROKER, CLIENTS, NODE, ORACLE, REST, SERVER, SPARK, lane_of

TESTS = """
import pytest

@pytest.fixture(scope="session")
def spark(): return 1
@pytest.fixture
def pipeline(spark): return 2
@pytest.fixture(scope="session")
def api_server(): return 3

def test_rest(): pass
def test_more(): pass
def test_most(): pass
def test_pods(api_server): pass
def test_pipeline(pipeline): pass
@pytest.mark.spark
def test_marked(): pass
"""


@pytest.mark.parametrize(
    ("fixtures", "markers", "lane"),
    [
        (["broker", "spark"], ["integration"], CLIENTS),
        (["spark", "api_server"], [], SPARK),
        ([], ["spark"], SPARK),
        (["spark", "driver"], [], ORACLE),
        (["driver"], [], REST),
        (["broker", "api_server"], ["cluster"], SERVER),
        (["api_server"], [], SERVER),
        ([], ["cluster"], SERVER),
        (["node"], ["e2e"], NODE),
        (["node", "api_server"], [], NODE),
        ([], ["e2e"], NODE),
        (["broker"], ["integration"], BROKER),
        ([], ["integration"], BROKER),
        (["broker"], [], REST),
        ([], [], REST),
    ],
)
def test_the_lane_of_a_test(fixtures: list[str], markers: list[str], lane: str) -> None:
    assert lane_of(fixtures, markers) == lane


def test_tests_of_one_cluster_share_a_lane() -> None:
    assert lane_of(["node"], ["e2e"], one_cluster=True) == lane_of(["api_server"], ["cluster"], one_cluster=True)


def test_each_lane_has_one_worker_and_they_begin_in_their_order(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(lanes.__file__).parent))
    pytester.makepyfile(test_inner=TESTS)
    ran = pytester.runpytest_subprocess("-p", "xdist", "-p", "lanes", "-n", "3", "--dist", "loadscope", "-v")
    ran.assert_outcomes(passed=6)
    workers = {}
    for line in ran.outlines:
        if " PASSED " in line:
            worker, *_, test = line.split()
            workers[test.partition("::")[2]] = worker
    assert workers.pop("test_pipeline") == workers["test_marked"]
    assert workers.pop("test_more") == workers.pop("test_most") == workers["test_rest"]
    assert len(set(workers.values())) == 3


def test_a_single_worker_takes_the_lanes_in_their_order(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(lanes.__file__).parent))
    pytester.makepyfile(test_inner=TESTS)
    ran = pytester.runpytest_subprocess("-p", "xdist", "-p", "lanes", "-n", "1", "--dist", "loadscope", "-v")
    ran.assert_outcomes(passed=6)
    tests = [line.split()[-1].partition("::")[2] for line in ran.outlines if " PASSED " in line]
    assert tests == ["test_pods", "test_pipeline", "test_marked", "test_rest", "test_more", "test_most"]


@pytest.mark.parametrize(
    "marker",
    ["", "pytestmark = pytest.mark.integration", "pytestmark = pytest.mark.spark"],
    ids=["shares nothing", "of brokers", "of Spark"],
)
def test_some_tests_go_file_by_file_to_workers_that_are_through_with_their_lanes(
    marker: str, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(lanes.__file__).parent))
    # Each of the two waits for the other: they end only if they are under way at the same time.
    meet = """
import pathlib
import time

import pytest
MARKER

def test_meets():
    here = pathlib.Path(__file__)
    here.with_suffix(".here").touch()
    end = time.monotonic() + 60
    while len(list(here.parent.glob("test_meet_*.here"))) < 2:
        assert time.monotonic() < end, "the other file has not begun"
        time.sleep(0.01)

def test_one(): pass
def test_two(): pass
def test_three(): pass
""".replace("MARKER", marker)
    # A worker that has no more than two tests left gets its next piece.
    pytester.makepyfile(test_meet_one=meet, test_meet_two=meet)
    ran = pytester.runpytest_subprocess("-p", "xdist", "-p", "lanes", "-n", "2", "--dist", "loadscope", "-v")
    ran.assert_outcomes(passed=8)


def test_without_lanes_the_order_stays(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_inner=TESTS)
    ran = pytester.runpytest_inprocess("-p", "lanes", "-v")
    ran.assert_outcomes(passed=6)
    tests = [line.split()[0].partition("::")[2] for line in ran.outlines if " PASSED " in line]
    assert tests == ["test_rest", "test_more", "test_most", "test_pods", "test_pipeline", "test_marked"]
