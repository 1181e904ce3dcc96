"""Joins of two tables by a foreign key: what is asked, answered and kept, wherever batches begin."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from example_counts import examples
from foreign_keys_played import LEFT, RIGHT, Played
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pipeline_kit import json

from streams_runtime.errors import StreamsException
from streams_runtime.processors.joins.fk_subscription import subscriptions
from streams_runtime.state.subscriptions import (
    Instruction,
    Response,
    Subscription,
    behind,
    combined_key,
    hash_of,
    prefix_of,
)

GONE, ASKED = Instruction.DELETE_KEY_NO_PROPAGATE, Instruction.PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE
HASH = bytes(range(16))


@pytest.mark.parametrize(
    ("old", "new", "asked"),
    [
        (None, None, []),
        (None, b"a", [(b"a", ASKED)]),
        (b"a", None, [(b"a", GONE)]),
        (b"a", b"a", [(b"a", ASKED)]),
        (b"a", b"b", [(b"a", GONE), (b"b", ASKED)]),
        (b"", b"a", [(b"", GONE), (b"a", ASKED)]),
    ],
)
def test_a_row_unsubscribes_from_what_it_no_longer_names_and_asks_for_what_it_names(
    old: bytes | None, new: bytes | None, asked: list[tuple[bytes, Instruction]]
) -> None:
    assert subscriptions(old, new) == asked


@given(st.sampled_from(Instruction), st.sampled_from([None, HASH]), st.binary(), st.integers(0, 2**31))
def test_a_subscription_comes_as_it_was_sent(
    instruction: Instruction, hash: bytes | None, key: bytes, partition: int
) -> None:
    sent = Subscription(instruction, hash, key, partition)
    assert Subscription.of(sent.to_bytes()) == sent


@given(st.sampled_from([None, HASH]), st.sampled_from([None, b"{}", b'{"v":1}']))
def test_an_answer_comes_as_it_was_sent(hash: bytes | None, row: bytes | None) -> None:
    assert Response.of(Response(hash, row).to_bytes()) == Response(hash, row)


def test_subscriptions_and_answers_are_laid_out_as_in_kafka_streams() -> None:
    assert Subscription(ASKED, HASH, b"k", 3).to_bytes() == b"\x01\x02" + HASH + b"k" + b"\0\0\0\x03"
    assert Subscription(GONE, None, b"k", 3).to_bytes() == b"\x81\x00" + b"k" + b"\0\0\0\x03"
    assert Response(HASH, b"{}").to_bytes() == b"\0" + HASH + b"{}"
    assert combined_key(b"fk", b"k") == b"\0\0\0\x02fkk"


@pytest.mark.parametrize("read", [Subscription.of, Response.of])
@pytest.mark.parametrize("data", [b"", b"\x02\x00k\0\0\0\0"])
def test_what_another_version_has_written_is_refused(read: Callable[[bytes], object], data: bytes) -> None:
    with pytest.raises(StreamsException, match="of this version"):
        read(data)


@given(st.binary(max_size=3), st.binary(max_size=3), st.binary(max_size=3))
def test_a_prefix_finds_the_subscriptions_of_its_row_and_no_others(one: bytes, other: bytes, key: bytes) -> None:
    assert combined_key(other, key).startswith(prefix_of(one)) == (one == other)


@given(st.lists(st.sampled_from([0, 254, 255]), max_size=3), st.lists(st.sampled_from([0, 254, 255]), max_size=3))
def test_all_that_begin_with_a_prefix_lie_before_what_is_behind_it(foreign_key: list[int], key: list[int]) -> None:
    prefix = prefix_of(bytes(foreign_key))
    assert prefix <= combined_key(bytes(foreign_key), bytes(key)) < behind(prefix)


def test_a_row_has_another_hash_at_another_time() -> None:
    assert len({hash_of(b"1"), hash_of(b"2"), hash_of(None)}) == 3


Step = tuple[Any, ...]
"""A record (topic, key, number, foreign key, time), or a batch (side, records of each topic, whether it crashes)."""

_LEFT = st.builds(
    lambda key, number, foreign, time: (LEFT, key, number, foreign, time),
    st.sampled_from("abc"),
    st.one_of(st.none(), st.integers(1, 4)),
    st.sampled_from(["x", "y", None]),
    st.integers(0, 9),
)
_RIGHT = st.builds(
    lambda key, number, time: (RIGHT, key, number, None, time),
    st.sampled_from("xy"),
    st.one_of(st.none(), st.integers(1, 4)),
    st.integers(0, 9),
)
_BATCH = st.tuples(st.sampled_from([LEFT, RIGHT]), st.integers(0, 3), st.integers(0, 3), st.booleans())
STEPS = st.lists(st.one_of(_LEFT, _RIGHT, _BATCH), max_size=40)

# The old row's answer is on its way while the row changes under the same foreign key, and the other row is deleted.
LATE_ANSWER: list[Step] = [
    (RIGHT, "x", 1, None, 0),
    (LEFT, "a", 1, "x", 0),
    *[(side, 9, 9, False) for side in (RIGHT, LEFT, RIGHT, LEFT)],
    (RIGHT, "x", None, None, 1),
    (RIGHT, 9, 9, False),
    (LEFT, "a", 2, "x", 1),
    (LEFT, 9, 0, False),
]
# From one row to another and back, while answers to all three are under way.
THERE_AND_BACK: list[Step] = [
    (RIGHT, "x", 1, None, 0),
    (RIGHT, "y", 2, None, 0),
    (RIGHT, 9, 9, False),
    *[(LEFT, "a", 1, foreign, 0) for foreign in "xyx"],
    (LEFT, 1, 0, False),
    (RIGHT, 9, 1, False),
    (RIGHT, "x", 4, None, 0),
    (LEFT, 9, 9, False),
]
# A row of the result that comes and goes in one batch.
THERE_AND_GONE: list[Step] = [
    (RIGHT, "x", 1, None, 0),
    (LEFT, "a", 1, "x", 0),
    *[(side, 9, 9, False) for side in (LEFT, RIGHT)],
    (LEFT, "a", None, None, 5),
    (LEFT, 9, 9, False),
]
CRASHES: list[Step] = [
    (LEFT, "a", 1, "x", 0),
    (LEFT, "a", None, None, 0),
    (LEFT, 2, 0, True),
    (LEFT, 1, 0, False),
    (RIGHT, "x", 1, None, 0),
    (RIGHT, 2, 2, True),
    (RIGHT, 1, 1, False),
]


def expected(kind: str, filtered: bool, steps: Sequence[Step]) -> dict[bytes, Any]:
    """The join of what both tables come to."""
    tables: dict[str, dict[str, Mapping[str, Any]]] = {LEFT: {}, RIGHT: {}}
    for topic, key, number, foreign, _ in (each for each in steps if len(each) == 5):
        tables[topic].pop(key, None)
        if number is not None and not (filtered and number % 3 == 0):
            tables[topic][key] = {"v": number, "f": foreign}
    found = {}
    for key, row in tables[LEFT].items():
        other = tables[RIGHT].get(row["f"])
        if other is not None or kind == "left":
            found[key.encode()] = {"v": row["v"], "w": None if other is None else other["v"]}
    return found


@pytest.mark.parametrize("filtered", [False, True])
@pytest.mark.parametrize("kind", ["inner", "left"])
@settings(max_examples=examples(50))
@given(STEPS, st.sampled_from([(1, 1), (2, 3), (3, 1)]))
@example(LATE_ANSWER, (1, 1))
@example(THERE_AND_BACK, (1, 1))
@example(THERE_AND_GONE, (1, 1))
@example(CRASHES, (1, 1))
def test_the_result_is_the_join_of_what_both_tables_come_to(
    kind: str, filtered: bool, steps: list[Step], partitions: tuple[int, int]
) -> None:
    played = Played(kind, filtered, partitions)
    for step in steps:
        if len(step) == 4:
            played.batch(*step)
        else:
            topic, key, number, foreign, time = step
            value = None if number is None else json(v=number, f=foreign)
            played.tables[topic].add(key.encode(), value, time)
    played.settle()
    assert played.result() == expected(kind, filtered, steps)
    assert {key: row for key, (row, _) in played.sink.items() if row is not None} == played.result()
    named = {step[1]: _named(step, filtered) for step in steps if len(step) == 5 and step[0] == LEFT}
    assert played.subscriptions() == {
        combined_key(foreign.encode(), key.encode()) for key, foreign in named.items() if foreign is not None
    }


def _named(step: Step, filtered: bool) -> str | None:
    """The foreign key that a left record leaves its key with."""
    _, _, number, foreign, _ = step
    return None if number is None or (filtered and number % 3 == 0) else foreign
