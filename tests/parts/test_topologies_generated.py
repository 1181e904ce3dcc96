"""The topologies that histories of faults are given: of any kind, and the same ones for a seed."""

from __future__ import annotations

import random
from collections import Counter

from topologies_generated import STEPS, generated, portion
from topologies_made import KINDS, STREAM, TABLE

SEEDS = range(200)


def test_two_hundred_seeds_have_every_kind_of_step_length_and_policy_and_most_kinds_often() -> None:
    made = [generated(seed) for seed in SEEDS]
    kinds = Counter(kind for each in made for kind in set(each.chain))
    print(dict(kinds.most_common()))
    assert kinds.keys() == KINDS.keys()
    assert sum(count >= 5 for count in kinds.values()) >= 0.9 * len(KINDS)
    assert {len(each.chain) for each in made} == set(range(STEPS[0], STEPS[1] + 1))
    assert {each.begins for each in made} == {STREAM, TABLE}
    assert {each.has_bad_records for each in made} == {True, False}
    assert sum("keyBy" in str(each.document) for each in made) >= 50


def test_a_seed_has_one_application() -> None:
    assert generated(7) == generated(7)
    assert generated(7) != generated(8)


def test_records_of_one_key_have_one_partition_and_some_come_out_of_order() -> None:
    source = generated(1).sources[0]
    records = portion(source, random.Random(1), 200, 1_000_000, 4, bad=True)
    places: dict[bytes, set[int | None]] = {}
    for each in records:
        if each.key is not None:
            places.setdefault(each.key, set()).add(each.partition)
    assert {len(each) for each in places.values()} == {1}
    assert {each.partition for each in records} == set(range(4))
    times = [each.time for each in records]
    assert times != sorted(times)
