"""What peeks have seen becomes log lines, so many a second, and sums."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from streams_runtime.batch.peeks import Line, Seen
from streams_runtime.pipeline.steps.peek_observations import seen as read_of
from streams_runtime.processing.peek_log import PeekLog, added_up, rows_of
from streams_runtime.topology.nodes.stream_nodes import PeekNode

NODE = PeekNode("seen", "in", "text", "info", 3, "cents", "a", "spec.topology.steps[0]")
DEBUG = PeekNode("quiet", "in", "text", "debug", 3, None, None, "spec.topology.steps[1]")


def seen(texts: int, node: PeekNode = NODE, records: int = 0, total: float = 0.0) -> Seen:
    """Of a batch with so many texts, numbered."""
    lines = (Line("in", 1, offset, f"text {offset}") for offset in range(min(texts, node.at_most)))
    return Seen(node, records, total, tuple(lines), texts)


def observed_of(*records: tuple[int, int]) -> Any:
    """What Spark has observed of records of these partitions and offsets: each of its partitions gives as many lines as
    a peek may log.
    """
    lines = [{"_topic": "in", "_partition": number, "_offset": at, "text": f"{number}@{at}"} for number, at in records]
    return {"records": 9, "total": 9.0, "lines": orjson.dumps(lines).decode(), "texts": 9}


class Moments:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = 50.0

    def __call__(self) -> float:
        return self.now


def test_texts_are_logged_with_the_record_that_they_are_of(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "streams_runtime.peek")
    PeekLog(Moments()).take([seen(2)])
    first, second = caplog.records
    assert (first.getMessage(), first.levelname, first.name) == (
        "peek seen: text 0",
        "INFO",
        "streams_runtime.peek",
    )
    where: Any = second
    assert (where.topic, where.partition, where.offset) == ("in", 1, 1)


def test_of_the_lines_of_several_workers_the_first_ones_are_seen() -> None:
    found = read_of(NODE, observed_of((2, 5), (2, 6), (0, 8), (1, 3), (1, 2), (0, 9)))
    assert [line.text for line in found.lines] == ["0@8", "0@9", "1@2"]
    assert found.texts == 9


def test_no_more_lines_are_logged_a_second_than_allowed_however_many_batches_there_are(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "streams_runtime.peek")
    clock = Moments()
    log = PeekLog(clock)
    for _ in range(4):
        log.take([seen(2)])
        clock.now += 0.25
    assert len(caplog.records) == 3
    caplog.clear()
    log.take([seen(100)])
    assert caplog.messages == [
        "peek seen: 5 more records were not shown; atMost allows 3 a second",
        *(f"peek seen: text {number}" for number in range(3)),
    ]
    caplog.clear()
    clock.now += 1
    log.take([seen(1)])
    assert caplog.messages[0] == "peek seen: 97 more records were not shown; atMost allows 3 a second"


def test_each_peek_has_an_allowance_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "streams_runtime.peek")
    PeekLog(Moments()).take([seen(5), seen(5, DEBUG)])
    assert [record.levelname for record in caplog.records] == ["INFO"] * 3 + ["DEBUG"] * 3


def test_lines_of_a_level_that_is_not_logged_are_not_counted_as_left_out(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "streams_runtime.peek")
    clock = Moments()
    log = PeekLog(clock)
    log.take([seen(100, DEBUG)])
    clock.now += 2
    caplog.set_level("DEBUG", "streams_runtime.peek")
    log.take([seen(1, DEBUG)])
    assert caplog.messages == ["peek quiet: text 0"]


def test_metrics_are_added_up_over_batches_and_peeks_without_one_are_not() -> None:
    first = added_up({}, [seen(0, records=2, total=1.5), seen(0, DEBUG, records=9)])
    assert first == {("seen", "cents"): (2, 1.5)}
    assert added_up(first, [seen(0, records=1, total=-0.5)]) == {("seen", "cents"): (3, 1.0)}
    assert first == {("seen", "cents"): (2, 1.5)}, "others may be reading it"


def test_the_account_has_the_metrics_of_all_threads() -> None:
    threads = [{("seen", "cents"): (2, 1.5)}, {("seen", "cents"): (1, 2.0), ("other", "n"): (1, 1.0)}]
    assert rows_of(threads) == [
        {"step": "other", "metric": "n", "records": 1, "sum": 1.0},
        {"step": "seen", "metric": "cents", "records": 3, "sum": 3.5},
    ]
