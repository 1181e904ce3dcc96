"""Sums of doubles, averages and variances: those of record by record in each kind of window, wherever batches begin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import reduce
from itertools import pairwise
from operator import add
from typing import TYPE_CHECKING, Any

import pytest
from topology_drivers import document

from streams_runtime.testing import START, TopologyTestDriver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.integration

ADDED = {"total": "sum(d)", "mean": "avg(d)", "spread": "variance(d)"}
GRACE = "10m"
STEPS: dict[str, dict[str, Any]] = {
    "by-key": {"aggregate": ADDED},
    "hopping": {"aggregate": ADDED, "window": {"hopping": {"size": "10s", "advance": "5s", "grace": GRACE}}},
    "sliding": {"aggregate": ADDED, "window": {"sliding": {"timeDifference": "10s", "grace": GRACE}}},
    "sessions": {"aggregate": ADDED, "window": {"session": {"gap": "3s", "grace": GRACE}}},
    "elements": {"from": "each", "aggregate": {"total": "sum(e)"}},
    "changes": {"aggregate": {"total": "sum(d)"}},
}
APART = [0.1, 0.2, 0.3, 0.7, 1e16, 1.0, -1e16, 3.3, 0.1, 1e-9, 2.2, 0.6, 1e8, 0.3, -0.4, 0.1]
RECORDS = [(f"{'ab'[at % 3 % 2]}", value, (at * 7919) % 23) for at, value in enumerate(APART)]
"""Key, number and second of each record: out of order, so that sessions and windows meet."""


@pytest.fixture(scope="module")
def played(spark: SparkSession) -> Iterator[TopologyTestDriver]:
    sources = [
        {
            "name": "in",
            "topic": "in",
            "key": {"format": "string"},
            "value": {"format": "json", "schema": "d DOUBLE, more ARRAY<DOUBLE>"},
        }
    ]
    steps: list[dict[str, Any]] = [{"name": "each", "from": "in", "flatMap": {"explode": "more", "as": "e"}}]
    steps += [{"name": name, "from": "in", "store": name} | step for name, step in STEPS.items()]
    steps.append({"name": "told", "from": "changes", "toStream": {}})
    sinks = [{"from": "told" if name == "changes" else name, "topic": f"{name}-out"} for name in STEPS]
    with TopologyTestDriver(document(sources, steps, sinks, processing={"onDeserializationError": "continue"})) as made:
        yield made


def run(played: TopologyTestDriver, number: int, cuts: Sequence[int]) -> dict[str, dict[Any, Any]]:
    """What each step comes to, by key or by window; each run has keys and hours of its own."""
    begin = START + timedelta(hours=number)
    for start, end in pairwise([0, *cuts, len(RECORDS)]):
        with played.batch():
            for key, value, second in RECORDS[start:end]:
                columns = {"d": value, "more": [value, None, 0.1]}
                at = begin + timedelta(seconds=second)
                played.input_topic("in").pipe(f"{key}{number}", columns, timestamp=at)
            played.input_topic("in").pipe(f"c{number}", {"d": None}, timestamp=begin)
    found: dict[str, dict[Any, Any]] = {}
    for name in STEPS:
        rows = played.output_topic(f"{name}-out").read_all()
        latest = {plain(each.key, begin): each.value for each in rows}
        found[name] = {key: value for key, value in latest.items() if value is not None}
    return found


def plain(key: Any, begin: Any) -> Any:
    """A key without what is the run's own."""
    return key[0] if isinstance(key, str) else (key.key[0], *(time - begin for time in key.window))


def merging_sessions(key: str) -> dict[tuple[int, int], float]:
    """The sums of a key's sessions as Kafka Streams makes them: those that a record joins first, then the record."""
    there: dict[tuple[int, int], float] = {}
    for number, second in [(value, second) for each, value, second in RECORDS if each == key]:
        joined = sorted((e, s) for s, e in there if e >= second - 3 and s <= second + 3)
        total = reduce(add, [there.pop((start, end)) for end, start in joined], 0.0)
        start, end = min([second, *(s for _, s in joined)]), max([second, *(e for e, _ in joined)])
        there[start, end] = total + number
    return there


def test_doubles_are_added_record_by_record_in_every_window_wherever_batches_begin(played: TopologyTestDriver) -> None:
    whole = run(played, 0, [])
    assert run(played, 1, [4, 5, 11]) == whole
    for key in "ab":
        mine = [value for each, value, _ in RECORDS if each == key]
        assert whole["by-key"][key]["total"] == reduce(add, mine, 0.0)
        assert whole["changes"][key] == {"total": whole["by-key"][key]["total"]}
        assert whole["by-key"][key]["mean"] == reduce(add, mine, 0.0) / len(mine)
        elements = [number for value in mine for number in (value, 0.1)]
        assert whole["elements"][key]["total"] == reduce(add, elements, 0.0)
        found = {(s.seconds, e.seconds): v["total"] for (k, s, e), v in whole["sessions"].items() if k == key}
        assert {each: total for each, total in found.items() if total is not None} == merging_sessions(key)
    for name, length in ("hopping", 10), ("sliding", 10.001):
        for (key, start, _), value in whole[name].items():
            inside = [v for k, v, second in RECORDS if k == key and 0 <= second - start.total_seconds() < length]
            assert (value["total"] or 0.0) == reduce(add, inside, 0.0)
    assert len(whole["sliding"]) > 20


def test_what_json_has_no_number_for_is_left_out_where_it_comes_and_text_where_it_is_computed(
    played: TopologyTestDriver,
) -> None:
    before = played.counters.deserialization_errors
    topic, sums = played.input_topic("in"), played.output_topic("by-key-out")
    at = START + timedelta(days=1)
    sums.read_all()
    with played.batch():
        for value in (b'{"d":NaN}', b'{"d":-Infinity}', b'{"d":1e400}', b'{"d":1.5}'):
            topic.pipe("good", value, timestamp=at)
        topic.pipe("huge", {"d": 1.7e308}, timestamp=at)
    with played.batch():
        topic.pipe("huge", {"d": 1.7e308}, timestamp=at)
        topic.pipe("good", {"d": 1.5}, timestamp=at)
    assert played.counters.deserialization_errors - before == 3
    with played.batch():
        topic.pipe("huge", {"d": 1.0}, timestamp=at)
    rows = sums.read_latest_by_key()
    assert rows["good"] == {"total": 3.0, "mean": 1.5, "spread": 0.0}
    assert rows["huge"] == {"total": "Infinity", "mean": "Infinity", "spread": "Infinity"}
    assert played.store("by-key").get("huge") == rows["huge"]
