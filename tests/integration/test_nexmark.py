"""NEXMark's queries, as examples/nexmark has them: each file gives what DuckDB gives of the same events."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache

import pytest
from nexmark.events import Event, events
from nexmark_answers import FOLDER, SIDE_INPUT, Answers, rows_of

from streams_runtime.testing import TopologyTestDriver

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]

COUNT = 2000
GAPS: Mapping[str, timedelta] = {name: timedelta(seconds=60) for name in ("q10", "q14", "q15", "q16", "q17")}
"""Between two events: these queries tell days and hours apart, others 10 seconds."""
FILES = sorted(FOLDER.glob("q*.yaml"), key=lambda file: int(file.stem[1:]))


@cache
def made(gap: timedelta) -> tuple[list[Event], Answers]:
    given = list(events(COUNT, gap=gap))
    return given, Answers(given)


@pytest.mark.parametrize("query", [file.stem for file in FILES if file.stem != "q12"])
def test_a_query_gives_what_duckdb_gives(query: str) -> None:
    given, answers = made(GAPS.get(query, timedelta(milliseconds=50)))
    with TopologyTestDriver(FOLDER / f"{query}.yaml") as driver:
        feed(driver, given)
        written = [(record.key, record.value) for record in driver.output_topic(query).read_all()]
        assert driver.counters.late_records == 0
    expected = answers.of(query)
    assert expected
    assert rows_of(query, written) == expected


def test_by_processing_time_bids_count_when_they_are_read() -> None:
    given, answers = made(timedelta(milliseconds=50))
    counted, times = Counter[int](), list[datetime]()
    with TopologyTestDriver(FOLDER / "q12.yaml") as driver:
        for _ in range(2):
            times.append(datetime.now(UTC))
            feed(driver, given)
            records = driver.output_topic("q12").read_all()
            assert min(record.timestamp for record in records) >= times[-1] - timedelta(milliseconds=1)
            assert max(record.timestamp for record in records) <= datetime.now(UTC)
        assert driver.counters.late_records == 0
        with driver.store("by-clock").all() as windows:
            for key, value in windows:
                assert times[0] - timedelta(seconds=10) < key.window.start <= datetime.now(UTC)
                counted[value["bidder"]] += value["bid_count"]
    expected = {row["bidder"]: 2 * row["bid_count"] for row in map(json.loads, answers.of("q12"))}
    assert counted == expected


def feed(driver: TopologyTestDriver, given: list[Event]) -> None:
    """All that the query reads, as one batch."""
    with driver.batch():
        for topic in driver.topology.source_topics:
            records = [(each.key, each.value, each.time) for each in given if each.topic == topic]
            driver.input_topic(topic).pipe_all(records)
        for topic in driver.topology.global_topics:
            driver.input_topic(topic).pipe_all(SIDE_INPUT.items())
