"""Records over which a step fails, under `onProcessingError`: left out or sent on, as if nobody had written them."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from long_runs import also_long
from topologies_refused import refusals
from topology_drivers import USERS, Made, document

from streams_runtime.api.sql.aggregate_parameters import MOST_DISTINCT
from streams_runtime.errors import FailedProcessingException, StreamsException
from streams_runtime.testing import START, Record, TopologyTestDriver

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]

CONTINUE = {"onProcessingError": "continue"}
LETTERS = {"onProcessingError": {"deadLetter": {"topic": "letters"}}}
IN = {
    "name": "in",
    "topic": "in",
    "key": {"format": "string"},
    "value": {"format": "json", "schema": "a BIGINT, g STRING"},
}
BAD = 13
KINDS: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "a cast": ({"select": {"a": "a", "g": "g", "x": f"cast(if(a = {BAD}, g, '1') as int)"}}, "[CAST_INVALID_INPUT]"),
    "a division": ({"select": {"a": "a", "g": "g", "x": f"1 div (a - {BAD})"}}, "[DIVIDE_BY_ZERO]"),
    "an overflow": (
        {"select": {"a": "a", "g": "g", "x": f"if(a = {BAD}, a, 0) * 4611686018427387904"}},
        "[ARITHMETIC_OVERFLOW]",
    ),
    "an index": ({"where": f"array(true)[if(a = {BAD}, 7, 0)]"}, "[INVALID_ARRAY_INDEX]"),
    "an error that is raised": ({"where": f"if(a = {BAD}, raise_error(concat('no ', g)), true)"}, "no one"),
    "a function": ({"select": {"a": "picky(a)", "g": "g"}}, "the function 'picky' (user_functions:picky) failed"),
    "a key": ({"keyBy": f"cast(if(a = {BAD}, g, '1') as bigint)"}, "[CAST_INVALID_INPUT]"),
    "what flatMap explodes": (
        {"flatMap": {"explode": f"array(1 div (a - {BAD}))", "as": "e"}},
        "[DIVIDE_BY_ZERO]",
    ),
    "a join": (
        {"join": {"table": "users", "type": "left", "select": {"x": f"1 div (a - {BAD})"}}},
        "[DIVIDE_BY_ZERO]",
    ),
    "what is aggregated": ({"aggregate": {"x": f"sum(1 div (a - {BAD}))"}, "store": "s"}, "[DIVIDE_BY_ZERO]"),
    "a class": ({"aggregate": {"x": "python('custom_classes:Failing', a)"}, "store": "s"}, "Failing failed in add"),
    "a reduce": (
        {"aggregate": {"x": f"reduce(cast(0 as bigint), (s, r) -> s + 1 div (r.a - {BAD}))"}, "store": "s"},
        "[DIVIDE_BY_ZERO]",
    ),
}
"""By the kind of error: the step, which fails over records with BAD, and what is said of it."""


def application(steps: Sequence[Mapping[str, Any]], **processing: Any) -> dict[str, Any]:
    needs_users = any("table" in each.get("join", {}) for each in steps)
    made = document(
        [IN, USERS] if needs_users else [IN], steps, {"out": steps[-1]["name"], "copy": "in"}, processing=processing
    )
    if "picky" in json.dumps(steps):
        made["spec"]["topology"]["functions"] = {"picky": {"python": "user_functions:picky", "returns": "BIGINT"}}
    return made


def records(numbers: Sequence[int]) -> list[Record]:
    return [
        Record(f"k{at % 3}", {"a": number, "g": "one"}, START + timedelta(seconds=at), [("at", str(at).encode())])
        for at, number in enumerate(numbers)
    ]


def seen(driver: TopologyTestDriver, topic: str) -> list[Any]:
    return [(each.key, each.value, each.timestamp) for each in driver.output_topic(topic).read_all()]


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_that_fails_leaves_nothing_but_its_letter(made: Made, kind: str) -> None:
    step, text = KINDS[kind]
    steps = [{"name": "s", "from": "in", **step}]
    numbers = [1, 2, BAD, 3, 4, 5, BAD, 6]
    driver, clean = made(application(steps, **LETTERS)), made(application(steps))
    with driver.batch():
        driver.input_topic("in").pipe_all(records(numbers))
    good = [each for each in records(numbers) if each.value["a"] != BAD]
    with clean.batch():
        clean.input_topic("in").pipe_all(good)
    assert seen(driver, "copy") == seen(clean, "copy")
    # Batches decide how often an aggregate is written, never what it is in the end.
    found, expected = seen(driver, "out"), seen(clean, "out")
    if "aggregate" in step:
        assert {key: value for key, value, _ in found} == {key: value for key, value, _ in expected}
    else:
        assert found == expected
    letters = driver.output_topic("letters").read_all()
    assert [(each.key, json.loads(each.value)["a"], each.timestamp) for each in letters] == [
        (b"k2", BAD, START + timedelta(seconds=2)),
        (b"k0", BAD, START + timedelta(seconds=6)),
    ]
    for at, letter in zip((2, 6), letters, strict=True):
        headers = dict(letter.headers)
        assert headers["at"] == str(at).encode()
        assert text in headers["__streams.errors.message"].decode()
        assert headers["__streams.errors.exception"].decode() in ("FailedProcessingException", "UserCodeException")
        assert b"Traceback" in headers["__streams.errors.stacktrace"]
        place = [headers[f"__streams.errors.{name}"] for name in ("topic", "partition", "offset")]
        assert place == [b"in", b"0", str(at).encode()]
    counters = driver.counters
    assert (counters.processing_errors, counters.dead_letters, counters.records_processed) == (2, 2, 8)
    assert counters.recorder.dropped_records(0.0)["in", "failed"] == 2


def test_it_fails_as_ever_where_nothing_else_is_declared(made: Made) -> None:
    driver = made(application([{"name": "s", "from": "in", **KINDS["a division"][0]}]))
    with pytest.raises(FailedProcessingException, match="DIVIDE_BY_ZERO"):
        driver.input_topic("in").pipe_all(records([1, BAD]))
    assert seen(driver, "copy") == []
    assert driver.counters.processing_errors == 0


def test_a_batch_of_which_every_record_fails_is_left_out_whole(made: Made) -> None:
    driver = made(application([{"name": "s", "from": "in", **KINDS["a division"][0]}], **CONTINUE))
    with driver.batch():
        driver.input_topic("in").pipe_all(records([BAD] * 5))
    assert seen(driver, "copy") == seen(driver, "out") == []
    assert (driver.counters.processing_errors, driver.counters.dead_letters) == (5, 0)
    driver.input_topic("in").pipe_all(records([1]))
    assert len(seen(driver, "out")) == 1


def test_behind_a_repartition_topic_the_letter_is_that_topics_record(made: Made) -> None:
    steps = [
        {"name": "by", "from": "in", "keyBy": "g"},
        {"name": "s", "from": "by", "aggregate": {"x": f"sum(1 div (a - {BAD}))", "n": "count(*)"}, "store": "s"},
    ]
    driver = made(application(steps, **LETTERS))
    with driver.batch():
        driver.input_topic("in").pipe_all(records([1, BAD, 2]))
    (letter,) = driver.output_topic("letters").read_all()
    headers = dict(letter.headers)
    assert (letter.key, json.loads(letter.value)["a"]) == (b"one", BAD)
    assert (headers["__streams.errors.topic"], headers["__streams.errors.offset"]) == (b"app-by-repartition", b"1")
    assert driver.store("s").get("one") == {"x": 0, "n": 2}
    assert len(seen(driver, "copy")) == 3, "the sub-topology before it has nothing to do with it"


def test_what_the_parts_of_a_batch_did_in_vain_is_not_counted(made: Made) -> None:
    steps = [
        {"name": "seen", "from": "in", "peek": {"metric": "all", "value": "a"}},
        {"name": "by", "from": "seen", "keyBy": "if(a = 2, null, g)"},
        {"name": "n", "from": "by", "aggregate": {"n": "count(*)"}, "store": "n"},
        {"name": "s", "from": "seen", **KINDS["a division"][0]},
    ]
    driver = made(application(steps, **CONTINUE))
    with driver.batch():
        driver.input_topic("in").pipe_all(records([1, 2, BAD, 3, 4]))
    assert driver.counters.records_dropped == 1
    assert driver.counters.records_processed == 5 + 3  # and what the repartition topic has of them
    assert driver.counters.peeks == {("seen", "all"): (4, 10)}


WINDOWS: Mapping[str, Mapping[str, Any]] = {
    "by key": {},
    "tumbling": {"window": {"tumbling": {"size": "1d"}}},
    "sliding": {"window": {"sliding": {"timeDifference": "1d", "grace": "1d"}}},
    "sessions": {"window": {"session": {"gap": "1d"}}},
}


@pytest.mark.parametrize("window", WINDOWS)
def test_the_value_that_is_one_too_many_is_left_out_alone(made: Made, window: str) -> None:
    aggregate = {"x": "count(distinct a)", "n": "count(*)"}
    steps = [{"name": "s", "from": "in", "aggregate": aggregate, "store": "s", **WINDOWS[window]}]
    driver = made(application(steps, **LETTERS))
    given = driver.input_topic("in")
    with driver.batch():
        given.pipe_all([Record("k0", {"a": number, "g": "full"}, START) for number in range(MOST_DISTINCT)])
    with driver.batch():
        given.pipe_all(records([7, -1, -2, -3, -4, 9, -5]))
    letters = driver.output_topic("letters").read_all()
    # k0 has -3 and -5 over its limit, and 7 in time; the other keys have all of theirs.
    assert [json.loads(each.value)["a"] for each in letters] == [-3, -5]
    text = dict(letters[0].headers)["__streams.errors.message"].decode()
    assert "spec.topology.steps[0].aggregate.x: count(distinct a) has more than 10,000 different values" in text
    assert "the key 'k0' in partition 0" in text
    shown = [(getattr(key, "key", key), value) for key, value, _ in seen(driver, "out") if value is not None]
    assert [value for key, value in shown if key == "k0"][-1] == {"x": MOST_DISTINCT, "n": MOST_DISTINCT + 1}
    assert ("k1", {"x": 2, "n": 2}) in shown


def test_a_total_that_leaves_its_range_still_ends_it(made: Made) -> None:
    steps = [{"name": "s", "from": "in", "aggregate": {"x": "sum(a)"}, "store": "s"}]
    driver = made(application(steps, **CONTINUE))
    driver.input_topic("in").pipe_all(records([2**63 - 1]))
    with pytest.raises(StreamsException, match=r"aggregate\.x.*BIGINT"):
        driver.input_topic("in").pipe_all(records([1]))


PASSING: Sequence[Mapping[str, Any]] = (
    {"select": {"a": "a + 1", "g": "g", "bad": "bad"}},
    {"flatMap": {"explode": "array(0, 1)", "as": "e"}},
    {"join": {"table": "users", "type": "left", "select": {"tier": "users.tier"}}},
    {"peek": {"metric": "all", "value": "a"}},
)
"""Steps that every record passes: those that are to fail as well."""
OTHERS = (
    *PASSING,
    {"where": "a % 5 <> 4"},
    {"keyBy": "concat('k', cast(a % 4 as string))"},
    {"dedupe": {"within": "2s"}},
)
FAILS: Sequence[Mapping[str, Any]] = (
    {"where": "if(bad, raise_error('bad'), true)"},
    {"select": {"a": "a + cast(if(bad, 'x', '0') as bigint)", "g": "g", "bad": "bad"}},
    {"keyBy": "concat('k', cast(1 div if(bad, 0, 1) as string))"},
)
COUNTS = {"aggregate": {"n": "count(*)", "t": "sum(a)"}, "store": "end"}
ENDS: Sequence[Mapping[str, Any]] = (
    {"where": "true"},
    COUNTS,
    {**COUNTS, "window": {"tumbling": {"size": "5s", "grace": "1s"}}},
    {**COUNTS, "window": {"session": {"gap": "2s", "grace": "1s"}}},
)


def composed(dice: random.Random) -> dict[str, Any]:
    while True:
        before, behind = dice.choices(PASSING, k=dice.randrange(3)), dice.choices(OTHERS, k=dice.randrange(3))
        steps: list[Mapping[str, Any]] = []
        for number, each in enumerate([*before, dice.choice(FAILS), *behind, dice.choice(ENDS)]):
            text = json.dumps(each).replace('"all"', f'"m{number}"').replace('"as": "e"', f'"as": "e{number}"')
            own = json.loads(text)
            steps.append({"name": f"s{number}", "from": f"s{number - 1}" if number else "in", **own})
        source = {**IN, "value": {"format": "json", "schema": "a BIGINT, g STRING, bad BOOLEAN"}}
        sources = [source, USERS] if any("join" in each for each in steps) else [source]
        made = document(sources, steps, {"out": steps[-1]["name"], "copy": "in"}, processing=CONTINUE)
        if not refusals(made):
            return made


def given_to(application: Mapping[str, Any], dice: random.Random) -> list[tuple[str, Record]]:
    """Records by their topics, some of them out of order, and some of the stream's bad."""
    found = []
    for at in range(40):
        when, key = START + timedelta(seconds=10 + at - dice.choice((0, 0, 2))), f"k{dice.randrange(3)}"
        if len(application["spec"]["topology"]["sources"]) > 1 and dice.random() < 0.2:
            found.append(("users", Record(key, {"tier": f"t{at}"}, when)))
        else:
            value = {"a": dice.randrange(20), "g": "x", "bad": dice.random() < 0.2}
            found.append(("in", Record(key, value, when)))
    return found


def played(driver: TopologyTestDriver, given: Sequence[tuple[str, Record]], ends: set[int]) -> dict[str, list[Any]]:
    """What goes to each sink, where a batch ends before each of `ends`."""
    topics = {topic: driver.input_topic(topic) for topic, _ in given}
    for start, end in pairwise([0, *sorted(ends), len(given)]):
        with driver.batch():
            for topic, record in given[start:end]:
                topics[topic].pipe_all([record])
    return {topic: seen(driver, topic) for topic in ("out", "copy")}


@pytest.mark.parametrize("seed", also_long(range(3), range(3, 6)))
def test_composed_steps_give_what_they_give_without_the_records_that_fail(made: Made, seed: int) -> None:
    dice = random.Random(seed)
    application = composed(dice)
    given = given_to(application, dice)
    good = [(topic, record) for topic, record in given if not record.value.get("bad")]
    failing = made(application)
    found = played(failing, given, {at for at in range(1, len(given)) if dice.random() < 0.1})
    expected = played(made(application), good, {at for at in range(1, len(good)) if dice.random() < 0.1})
    assert failing.counters.processing_errors == len(given) - len(good) > 0
    assert found["copy"] == expected["copy"]
    if "aggregate" in application["spec"]["topology"]["steps"][-1]:
        found["out"], expected["out"] = in_the_end(found["out"]), in_the_end(expected["out"])
    assert found["out"] == expected["out"]


ROWS = {"name": "in", "topic": "in", "key": {"format": "string"}, "table": {"store": "in"}}
OVER_ROWS: Sequence[Mapping[str, Any]] = (*FAILS[:2], {"where": "if(bad, raise_error('bad'), a % 3 <> 0)"})


IN_JOINS: Sequence[Mapping[str, Any]] = tuple(
    {"join": {"table": "users", "type": kind, "select": {"a": "if(bad, cast(1 div (a - a) as bigint), a)"}}}
    for kind in ("left", "outer")
)
"""Joins of two tables that fail over a row of the left one, whether it has a partner or not."""


def over_tables(dice: random.Random, failing: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Steps over a table of a topic, of which one fails, and over its changes; beside another one at times."""
    source = {**ROWS, "value": {"format": "json", "schema": "a BIGINT, g STRING, bad BOOLEAN"}}
    kind = dice.choice(("inner", "left", "outer"))
    beside: Mapping[str, Any] = {"join": {"table": "users", "type": kind, "select": {"a": "a", "tier": "users.tier"}}}
    first = dice.choice(failing)
    chosen = [first, *([beside] if dice.random() < 0.6 and "join" not in first else [])]
    chosen += [{"toStream": {}}, *dice.choices(({"where": "true"}, {"keyBy": "'all'"}), k=1), dice.choice(ENDS[:2])]
    steps = [
        {
            "name": f"s{at}",
            "from": f"s{at - 1}" if at else "in",
            **json.loads(json.dumps(each).replace("sum(a)", "sum(1)")),
        }
        for at, each in enumerate(chosen)
    ]
    sinks = {"out": steps[-1]["name"], "copy": "in", "rows": "s0"}
    sources = [source, USERS] if any("join" in each for each in chosen) else [source]
    return document(sources, steps, sinks, processing=LETTERS)


def rows_given(application: Mapping[str, Any], dice: random.Random) -> list[tuple[str, Record]]:
    """Records in the order of their times, so that those of two topics have one order in any batches."""
    found = []
    for at, (topic, record) in enumerate(given_to(application, dice)[:20]):
        value = None if dice.random() < 0.15 else record.value
        found.append((topic, dataclasses.replace(record, value=value, timestamp=START + timedelta(seconds=at))))
    return found


@pytest.mark.parametrize(
    ("failing", "seed"), also_long([(OVER_ROWS, 0), (IN_JOINS[:1], 2)], [(OVER_ROWS, 1), (IN_JOINS[1:], 3)])
)
def test_a_table_leaves_out_the_records_over_which_a_step_fails(
    made: Made, failing: Sequence[Mapping[str, Any]], seed: int
) -> None:
    dice = random.Random(seed)
    application = over_tables(dice, failing)
    given = rows_given(application, dice)
    good = [(topic, record) for topic, record in given if not (record.value or {}).get("bad")]
    failing, clean = made(application), made(application)
    found = played(failing, given, {at for at in range(1, len(given)) if dice.random() < 0.1})
    expected = played(clean, good, {at for at in range(1, len(good)) if dice.random() < 0.1})
    assert failing.counters.processing_errors == len(given) - len(good) > 0
    assert len(failing.output_topic("letters").read_all()) == len(given) - len(good)
    if "aggregate" in application["spec"]["topology"]["steps"][-1]:
        found["out"], expected["out"] = in_the_end(found["out"]), in_the_end(expected["out"])
    assert found == expected
    assert seen(failing, "rows") == seen(clean, "rows")
    assert dict(failing.store("in").all()) == dict(clean.store("in").all())


def in_the_end(rows: Sequence[tuple[Any, Any, Any]]) -> list[tuple[str, Any]]:
    """What a table has at last: batches decide how often it is written."""
    last = {repr(key): value for key, value, _ in rows}
    return sorted((key, value) for key, value in last.items() if value is not None)
