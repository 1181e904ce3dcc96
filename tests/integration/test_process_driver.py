"""Processors of one's own in the test driver: Spark before and behind them, stores that queries see, and the clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from topology_drivers import Made, document

from streams_runtime.errors import IllegalStateException, InvalidApplicationException, UserCodeException
from streams_runtime.testing import START, Record, TopologyTestDriver

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]

IN = {
    "name": "in",
    "topic": "in",
    "key": {"format": "string"},
    "value": {"format": "json", "schema": "op STRING, n BIGINT"},
}
STORES = {"seen": {"key": "STRING", "value": "n BIGINT"}}


def step(source: str = "in", key: str | None = "STRING", of: str = "Everything", **more: Any) -> dict[str, Any]:
    given = {"python": f"processor_classes:{of}", "value": "seen STRING", "stores": STORES, **more}
    return {"name": "p", "from": source, "process": given | ({} if key is None else {"key": key})}


def told(driver: TopologyTestDriver, topic: str = "out") -> list[tuple[Any, Any, int]]:
    """Key, text and time (ms behind START) of what has come to a sink."""
    found = driver.output_topic(topic).read_all()
    return [
        (
            each.key,
            None if each.value is None else each.value["seen"],
            (each.timestamp - START) // timedelta(milliseconds=1),
        )
        for each in found
    ]


def test_a_processor_between_steps_of_spark_is_called_in_order_and_by_stream_time(made: Made) -> None:
    steps = [
        {"name": "some", "from": "in", "where": "op != 'no'", "select": {"op": "lower(op)", "n": "n + 1"}},
        step("some"),
        {"name": "loud", "from": "p", "select": {"seen": "upper(seen)"}},
    ]
    driver = made(document([IN], steps, {"out": "p", "loud": "loud"}))
    topic = driver.input_topic("in", auto_advance=timedelta(milliseconds=4))
    given = [("a", "PUT"), ("b", "no"), ("a", "GET")]
    topic.pipe_all(Record(key, {"op": op, "n": 1}) for key, op in given)
    start = round(START.timestamp() * 1000)
    # 1,704,067,200,000 is a multiple of 10 and not of 7: sweeps are due at once, and 3 and 10 ms behind START.
    expected = [
        f"0@0 at {start}: None",
        "swept [('a', {'n': 2})]",
        f"0 at {start}",
        "swept []",
        f"0@2 at {start + 8}: None",
    ]
    assert [seen for _, seen, _ in told(driver)] == expected
    assert [seen for _, seen, _ in told(driver, "loud")] == [each.upper() for each in expected]


def test_batches_change_nothing(made: Made) -> None:
    records = [Record(key, {"op": op, "n": n}) for key in "abc" for op in ("put", "all", "twice") for n in (1, 2)]
    found = []
    for size in (1, 4, len(records)):
        driver = made(document([IN], [step()], {"out": "p"}))
        topic = driver.input_topic("in", auto_advance=timedelta(milliseconds=3))
        for first in range(0, len(records), size):
            with driver.batch():
                topic.pipe_all(records[first : first + size])
        found.append(told(driver))
    assert found[0] == found[1] == found[2]


def test_keys_that_a_processor_gives_are_counted_behind_a_repartition_topic(made: Made) -> None:
    count = {"name": "counts", "from": "p", "aggregate": {"n": "count(*)"}, "store": "counts"}
    driver = made(document([IN], [step(), count], {"out": "counts"}))
    driver.input_topic("in").pipe_all([Record("a", {"op": "twice", "n": 1})])
    counts = driver.store("counts")
    assert {each.key: each.value["n"] for each in counts.all()} == {"a": 1, "a!": 1, "sweep": 1, "count": 1}


def test_a_repartition_topic_keeps_the_order_of_forwarding_whatever_the_times(made: Made) -> None:
    """Of each task: what several of them forward is mixed by time."""
    lists = {"name": "lists", "from": "p", "aggregate": {"all": "collect_list(seen, 100)"}, "store": "lists"}
    for more in ({}, {"merge": ["in", "other"]}):
        sources = [IN] if not more else [IN, {**IN, "name": "other", "topic": "other"}]
        steps = [{"name": "both", **more}] if more else []
        scattering = step("both" if more else "in", of="Scattering")
        driver = made(
            document(sources, [*steps, scattering, lists], {"out": "lists"}),
            partitions={"in": 3, "other": 3} if more else 3,
        )
        with driver.batch():
            for number in range(24):
                topic = driver.input_topic("in" if not more or number % 3 else "other")
                topic.pipe_all(
                    [Record("k", {"op": "get", "n": 1}, START + timedelta(minutes=number % 7), partition=number % 2)]
                )
        found = driver.store("lists").get("k")["all"]
        by_task: dict[str, list[tuple[str, int, int]]] = {}
        for text in found:
            where, _, number = text.rpartition(".")
            log, _, offset = where.rpartition("@")
            by_task.setdefault(log, []).append((log, int(offset), int(number)))
        assert sorted(by_task) == (["in-0", "in-1"] if not more else ["in-0", "in-1", "other-0", "other-1"])
        for rows in by_task.values():
            assert rows == sorted(rows)
            assert len(rows) % 3 == 0
        assert sum(map(len, by_task.values())) == 72


ASKED = [Record("k", {"op": op, "n": 1}) for op in ("small", "all", "large", "large", "small")]


def test_outputs_lead_to_a_topic_of_their_own_and_to_a_sink_and_the_clock_chooses_one(made: Made) -> None:
    count = {"name": "counts", "from": "p.large", "aggregate": {"n": "count(*)"}, "store": "counts"}
    steps = [step(of="Addressed", outputs=["large", "small"]), count]
    driver = made(document([IN], steps, {"out": "p.small", "counts": "counts"}))
    driver.input_topic("in").pipe_all(ASKED)
    driver.advance_wall_clock(timedelta(seconds=1))
    assert [(key, seen) for key, seen, _ in told(driver)] == [("k", "0"), ("k", "1"), ("k", "4")]
    assert {each.key: each.value["n"] for each in driver.store("counts").all()} == {"k": 3, "tick": 1}
    assert [each.key for each in driver.output_topic("counts").read_all()][-1] == "tick"


def test_outputs_that_go_on_in_several_stages_meet_in_the_order_of_records_wherever_batches_end(made: Made) -> None:
    steps = [
        step(of="Addressed", key=None, outputs=["large", "small"]),
        {"name": "s", "from": "p.small", "select": {"op": "concat('small ', seen)"}},
        {"name": "q", "from": "s", "process": {"python": "processor_classes:Echo", "value": "seen STRING"}},
        {"name": "l", "from": "p.large", "select": {"seen": "concat('large ', seen)"}},
        {"name": "both", "merge": ["q", "l"]},
    ]
    for size in (1, 2, len(ASKED)):
        driver = made(document([IN], steps, {"out": "both"}))
        for first in range(0, len(ASKED), size):
            with driver.batch():
                driver.input_topic("in").pipe_all(ASKED[first : first + size])
        seen = [text for _, text, _ in told(driver)]
        assert seen == ["small 0", "large 1", "small 1", "large 2", "large 3", "small 4"]


def test_an_output_that_is_not_there_ends_the_batch_with_the_nearest(made: Made) -> None:
    driver = made(document([IN], [step(of="Addressed", outputs=["large", "small"])], {"out": "p.small"}))
    with pytest.raises(UserCodeException, match="the step declares no output 'smal'; did you mean 'small'"):
        driver.input_topic("in").pipe_all([Record("k", {"op": "smal", "n": 1})])


def test_queries_see_windows_of_a_processor(made: Made) -> None:
    windows = {"windows": {"key": "STRING", "value": "n BIGINT", "window": {"size": "10ms", "retention": "1h"}}}
    keeping = step(stores=windows)
    keeping["process"]["python"] = "scripted_processor:Windowing"
    driver = made(document([IN], [keeping], {"out": "p"}))
    given = [("a", 3), ("a", 4), ("b", 5)]  # the first sweep, at 3, deletes what the first one has put
    driver.input_topic("in").pipe_all(
        Record(key, {"op": "put", "n": at}, START + timedelta(milliseconds=at)) for key, at in given
    )
    found = [
        (each.key.key, each.key.window.start, each.key.window.end, each.value) for each in driver.store("windows").all()
    ]
    end = START + timedelta(milliseconds=10)
    assert found == [("a", START, end, {"n": 4}), ("b", START, end, {"n": 5})]


def test_queries_see_sessions_of_a_processor_wherever_batches_end(made: Made) -> None:
    sessions = {"sessions": {"key": "STRING", "value": "n BIGINT", "session": {"retention": "1h"}}}
    keeping = step(stores=sessions)
    keeping["process"]["python"] = "scripted_processor:Sessioning"
    at = lambda ms: START + timedelta(milliseconds=ms)  # noqa: E731
    # Sweeps are due at 0, 3 and 10, and each removes the first session, which is that of A.
    given = [("A", 0), ("A", 1), ("a", 1), ("a", 4), ("b", 5), ("A", 6), ("a", 20)]
    for size in (1, len(given)):
        driver = made(document([IN], [keeping], {"out": "p"}))
        for first in range(0, len(given), size):
            with driver.batch():
                driver.input_topic("in").pipe_all(
                    Record(key, {"op": "absent", "n": 1}, at(ms)) for key, ms in given[first : first + size]
                )
        store = driver.store("sessions")
        found = [
            (each.key.key, each.key.window.start, each.key.window.end, each.value) for each in store.fetch(None, None)
        ]
        assert found == [("a", at(1), at(4), {"n": 2}), ("a", at(20), at(20), {"n": 1}), ("b", at(5), at(5), {"n": 1})]
        assert store.fetch_session("b", at(5), at(5)) == {"n": 1}
        assert store.fetch_session("A", at(6), at(6)) is None


def test_queries_see_what_is_committed(made: Made) -> None:
    driver = made(document([IN], [step(of="Keeping", key=None)], {"out": "p"}))
    driver.input_topic("in").pipe_all([Record("a", {"op": "put", "n": 5})])
    assert driver.store("seen").get("a") == {"n": 5}


def test_the_clock_calls_what_is_due(made: Made) -> None:
    driver = made(document([IN], [step()], {"out": "p"}))
    driver.advance_wall_clock(timedelta(milliseconds=49))
    assert told(driver) == []
    driver.advance_wall_clock(timedelta(milliseconds=1))
    start = round(START.timestamp() * 1000)
    assert told(driver) == [("tick", f"tick {start + 50}", 50)]
    assert driver.store("seen").get("tick") == {"n": start + 50}
    driver.advance_wall_clock(timedelta(seconds=1))
    assert len(told(driver)) == 1


def test_the_clock_stands_still_in_a_batch_and_never_goes_back(made: Made) -> None:
    driver = made(document([IN], [step()], {"out": "p"}))
    with pytest.raises(ValueError, match="at least a millisecond"):
        driver.advance_wall_clock(timedelta(0))
    with driver.batch(), pytest.raises(IllegalStateException, match="a batch is open"):
        driver.advance_wall_clock(timedelta(seconds=1))


def test_a_failure_ends_the_batch_and_names_the_record(made: Made) -> None:
    driver = made(document([IN], [step(of="Failing")], {"out": "p"}))
    topic = driver.input_topic("in", start=datetime(1970, 1, 1, tzinfo=UTC))  # its punctuator fails from 200 ms on
    with pytest.raises(
        UserCodeException, match="failed in process for the key 'k' of in-0@0: ValueError: a bad record"
    ):
        topic.pipe_all([Record("k", {"op": "raise", "n": 1})])
    topic.pipe_all([Record("k", {"op": "fine", "n": 1})])
    assert driver.counters.records_processed == 1


@pytest.mark.parametrize("policy", ["continue", {"deadLetter": {"topic": "letters"}}], ids=["continue", "deadLetter"])
def test_a_record_that_fails_is_left_out_where_that_is_asked_for_wherever_batches_end(made: Made, policy: Any) -> None:
    application = document([IN], [step(of="Keeping", key=None)], {"out": "p"}, processing={"onProcessingError": policy})
    ops = [("a", "put"), ("b", "raise"), ("c", "put"), ("d", "raise"), ("a", "put")]
    for size in (1, 2, 5):
        driver = made(application)
        topic = driver.input_topic("in")
        for first in range(0, len(ops), size):
            with driver.batch():
                topic.pipe_all(
                    Record(key, {"op": op, "n": number})
                    for number, (key, op) in [*enumerate(ops)][first : first + size]
                )
        assert {each.key: each.value["n"] for each in driver.store("seen").all()} == {"a": 4, "c": 2}
        assert driver.counters.processing_errors == 2
        if policy != "continue":
            letters = driver.output_topic("letters").read_all()
            assert [each.key for each in letters] == [b"b", b"d"]


def test_a_punctuator_that_fails_ends_the_batch_whatever_becomes_of_records_that_fail(made: Made) -> None:
    driver = made(document([IN], [step(of="Failing")], {"out": "p"}, processing={"onProcessingError": "continue"}))
    with pytest.raises(
        UserCodeException, match=r"failed in a punctuator at the stream-time \d+ of the task 0_0: TypeError"
    ):
        driver.input_topic("in").pipe_all([Record("k", {"op": "fine", "n": 1})])
    assert driver.counters.processing_errors == 0


def test_a_class_whose_init_fails_ends_the_driver_before_any_record(made: Made) -> None:
    with pytest.raises(UserCodeException, match="failed in init of the task 0_0: RuntimeError: forward is for process"):
        made(document([IN], [step(of="FailingInit")], {"out": "p"}))


def test_records_without_keys_or_values_go_through(made: Made) -> None:
    driver = made(document([IN], [step(of="Echo", key=None)], {"out": "p"}))
    topic = driver.input_topic("in")
    topic.pipe_all(
        [Record(None, {"op": "x", "n": 1}), Record("k", None), Record(None, None), Record("k", {"op": None})]
    )
    found = driver.output_topic("out").read_all()
    assert [(each.key, each.value) for each in found] == [
        (None, {"seen": "x"}),
        ("k", {"seen": None}),
        (None, {"seen": None}),
        ("k", {"seen": None}),
    ]


def test_a_class_that_is_not_there_is_a_mistake_at_its_field(made: Made) -> None:
    with pytest.raises(InvalidApplicationException) as refused:
        made(document([IN], [step(of="Misnamed")], {"out": "p"}))
    assert [each.path for each in refused.value.mistakes] == ["spec.topology.steps[0].process.python"]
