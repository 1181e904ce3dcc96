"""Pairs of steps, of every kind there is: what can't stand behind what is refused by name, before anything runs."""

from __future__ import annotations

import pytest
from topologies_made import KINDS, PROCESSED, REFUSED, STREAM, Pair, alone, made_of, pairs, places
from topologies_refused import refusals

FIT = frozenset(pairs())
EVERY = {**KINDS, **PROCESSED}
GIVEN = {EVERY[name].gives(before): (name, before) for name, before in places()}
"""Of everything that a step may give one kind that gives it."""
UNFIT = [(place, name) for place in GIVEN.values() for name in EVERY if (place, name) not in FIT]


def told(pair: Pair) -> list[str]:
    """What is said of the shortest application with a pair."""
    chain, begins = alone(pair)
    return [str(mistake) for mistake in refusals(made_of(chain, begins))]


@pytest.mark.parametrize(("place", "name"), UNFIT, ids=str)
def test_a_step_behind_what_it_does_not_take_is_refused_with_its_place(place: tuple[str, str], name: str) -> None:
    found = told((place, name))
    assert found
    assert all(each.startswith("spec.topology.steps[") for each in found)


@pytest.mark.parametrize(("pair", "words"), REFUSED.items(), ids=str)
def test_a_pair_that_fits_and_is_not_there_is_refused_by_name(pair: Pair, words: str) -> None:
    assert pair in FIT
    assert any(words in each for each in told(pair))


def test_pairs_that_fit_are_not_refused_and_the_others_are_named() -> None:
    """All others run (integration/test_composed_steps.py); here the steps without state and processors do."""
    stateless = ("where", "select", "flatMap", "split", "peek", "headers", "merge", *PROCESSED)
    for name in stateless:
        for other in stateless:
            assert told(((name, STREAM), other)) == []
