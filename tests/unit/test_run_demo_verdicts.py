"""The demonstration's verdicts: a difference is explained by flights read twice, or it is not."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def twice(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield importlib.import_module("demo_parts.twice")
    for name in [name for name in sys.modules if name.startswith("demo_parts")]:
        del sys.modules[name]


@pytest.fixture
def figures(twice):
    def make(flights, delay):
        found = sys.modules["demo_parts.figures"]
        return found.Figures(flights, flights, flights, delay, delay, delay, delay, delay)

    return make


def log(folder, name, *ranges):
    lines = [json.dumps({"event": "producing", "timestamp": at, "ranges": it}) for at, it in ranges]
    (folder / name).write_text("\n".join(["not json", *lines]))
    return folder / name


def test_a_batch_whose_offsets_a_later_one_begins_with_was_read_again(twice, tmp_path):
    killed = log(tmp_path, "a", ("T1", {"flights-0": [0, 10]}), ("T2", {"flights-0": [10, 20], "flights-1": [5, 9]}))
    other = log(tmp_path, "b", ("T0", {"flights-2": [0, 99]}), ("T3", {"flights-1": [5, 20]}))
    found = twice.batches([other, killed])
    assert [batch.at for batch in found] == ["T0", "T1", "T2", "T3"]
    assert [batch.at for batch in twice.read_again(found)] == ["T2"]


def test_rows_that_agree_need_no_explanation(twice, figures):
    expected = figures(10, 100.0)
    assert twice.judge(expected.row(), expected, [figures(3, 30.0)]) == twice.Verdict(0, ())


def test_a_sum_in_another_order_still_agrees(twice, figures):
    expected = figures(10, 0.1 + 0.2 + 0.3)
    assert twice.judge(figures(10, 0.3 + 0.2 + 0.1).row(), expected, []).unexplained == ()


def test_a_difference_of_exactly_one_batch_is_explained_by_it(twice, figures):
    expected, one, two = figures(10, 100.0), figures(3, 30.0), figures(4, 50.0)
    assert twice.judge((expected + two).row(), expected, [one, two]) == twice.Verdict(4, ())
    assert twice.judge((expected + one + two).row(), expected, [one, two]) == twice.Verdict(7, ())


def test_a_part_of_a_batch_explains_nothing(twice, figures):
    expected, batch = figures(10, 100.0), figures(3, 30.0)
    verdict = twice.judge((expected + figures(2, 20.0)).row(), expected, [batch])
    assert verdict.twice == 0
    assert "flights" in verdict.unexplained


def test_a_missing_row_is_unexplained(twice, figures):
    assert "flights" in twice.judge({}, figures(1, 1.0), []).unexplained
