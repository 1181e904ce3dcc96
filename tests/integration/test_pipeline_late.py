"""Late records of sessions and sliding windows: each in its topic once, with what it missed, wherever batches begin."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pipeline_bench import Bench, open_tasks
from pipeline_kit import Pipeline, Record, source, topology_of
from shared_cases import EXAMPLES, shared, shared_batches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

KINDS: dict[str, dict[str, Any]] = {
    "session": {"session": {"gap": "5s", "grace": "2s"}},
    "session kept long": {"session": {"gap": "5s", "grace": "2s"}, "retention": "1h"},
    "sliding": {"sliding": {"timeDifference": "5s", "grace": "4s"}},
}
Given = tuple[str | None, int, int]
"""Key, time (ms) and partition of a record."""
Case = tuple[Sequence[Given], Iterable[int]]
"""Records, and before which of them a batch begins."""
Late = tuple[bytes | None, bytes | None, int, str, str]
"""Key, value, time, place, and the starts of what a late record missed."""


@pytest.fixture(scope="module")
def pipelines(spark: SparkSession) -> dict[str, Pipeline]:
    return {name: Pipeline(spark, topology_of([source(schema="a BIGINT")], *steps(name))) for name in KINDS}


def steps(kind: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The window takes what a step made of the records, so that it can be told from what was read."""
    before = {"name": "doubled", "from": "in", "select": {"a": "a * 2"}, "where": "a >= 0"}
    window = {**KINDS[kind], "late": {"topic": "late"}}
    windows = {"name": "w", "from": "doubled", "window": window, "aggregate": {"n": "count(*)"}, "store": "w"}
    return [before, windows], [{"from": "w", "topic": "out"}]


def late_of(pipeline: Pipeline, cases: Sequence[Case]) -> tuple[list[list[Late]], int]:
    """What of each case went to the topic of late records, and how often records of all came too late. A case has two
    partitions, and its values are their offsets.
    """
    rows = [
        (
            [
                Record(key and key.encode(), b'{"a": %d}' % at, partition=2 * case + partition, offset=at, time=time)
                for at, (key, time, partition) in enumerate(given)
            ],
            cuts,
        )
        for case, (given, cuts) in enumerate(cases)
    ]
    found: list[list[Late]] = [[] for _ in cases]
    with ExitStack() as stack:
        bench = Bench(pipeline, open_tasks(stack, pipeline.topology, 2 * len(cases)))
        for together in shared_batches(rows):
            bench.store(bench.process(*together))
            for topic, _, key, value, time, headers in bench.producer.records:
                if topic == "late":
                    facts = {name.removeprefix("__streams.late."): text.decode() for name, text in headers or []}
                    assert (facts["step"], facts["topic"]) == ("w", "in")
                    case, partition = divmod(int(facts["partition"]), 2)
                    found[case].append((key, value, time, f"{partition}@{facts['offset']}", facts["windows"]))
        return [sorted(each, key=lambda late: late[3]) for each in found], bench.counters.late_records


records = st.lists(
    st.tuples(st.sampled_from(["a", "b", None]), st.integers(0, 40_000), st.integers(0, 1)), min_size=1, max_size=20
)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=EXAMPLES)
@given(shared(st.tuples(records, st.lists(st.integers(0, 20), max_size=4))))
@example(
    [
        (
            [("a", 0, 0), ("a", 30_000, 0), ("a", 9_000, 0), ("b", 20_000, 0), ("b", 22_999, 0), ("b", 24_000, 1)],
            [2],
        ),
        ([(None, 90_000, 0), ("a", 20_000, 0), ("b", 12_000, 0), ("b", 12_999, 0), ("b", 14_000, 0)], [1, 3]),
    ]
)
def test_late_records_are_the_same_wherever_batches_begin(
    pipelines: dict[str, Pipeline], kind: str, cases: list[Case]
) -> None:
    one_by_one = [(given, range(len(given))) for given, _ in cases]
    found, counted = late_of(pipelines[kind], [*cases, *one_by_one])
    assert found[: len(cases)] == found[len(cases) :]
    assert counted == sum(len(windows.split(",")) for late in found for *_, windows in late)
    for late in found:
        assert len(late) == len({place for *_, place, _ in late}), "each record once"


def test_a_late_record_says_which_session_it_would_have_come_to(pipelines: dict[str, Pipeline]) -> None:
    given = [("a", 20_000, 0), ("a", 12_999, 0), ("a", 13_000, 0), ("a", 30_000, 0), ("a", 7_000, 0)]
    # 12,999 has closed at 20,000: the gap and the grace after it. 13,000 has not, and 7,000 would have begun anew.
    late = [(b"a", b'{"a":2}', 12_999, "0@1", "12999"), (b"a", b'{"a":8}', 7_000, "0@4", "7000")]
    cases: list[Case] = [(given, []), (given, [1, 2, 3, 4])]
    assert late_of(pipelines["session kept long"], cases) == ([late, late], 4)


def test_a_record_that_only_some_sliding_windows_take_is_late_for_the_others(pipelines: dict[str, Pipeline]) -> None:
    given = [("a", 20_000, 0), ("a", 30_000, 0), ("a", 21_500, 0), ("b", 3_000, 0)]
    # At 30,000 windows that end before 26,000 have closed: [16,500, 21,500] has, [20,001, 25,001] too.
    late = [(b"a", b'{"a":4}', 21_500, "0@2", "20001,16500"), (b"b", b'{"a":6}', 3_000, "0@3", "0")]
    cases: list[Case] = [(given, []), (given, [1, 2, 3])]
    assert late_of(pipelines["sliding"], cases) == ([late, late], 6)
