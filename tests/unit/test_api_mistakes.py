"""What a StreamsApplication may not say: each mistake with its field, what was found, and what would do."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import pytest
from refused_applications import CLICKS, ORDERS, REFUSED, USERS, S, application, step, total

from streams_runtime.api import parse_application, read_application
from streams_runtime.errors import InvalidApplicationException, Mistake


@functools.cache
def mistakes_of(case: str) -> Sequence[Mistake]:
    return read_application(REFUSED[case][0]).mistakes


@pytest.mark.parametrize("case", REFUSED)
def test_a_mistake_names_its_field_what_was_found_and_what_would_do(case: str) -> None:
    _, field, found, remedy = REFUSED[case]
    mistakes = [mistake for mistake in mistakes_of(case) if mistake.path == field]
    assert mistakes, mistakes_of(case)
    assert found in mistakes[0].found
    assert remedy in mistakes[0].remedy


@pytest.mark.parametrize("case", sorted(set(REFUSED) - {"no-spec"}))
def test_one_mistake_does_not_cause_others(case: str) -> None:
    assert len({mistake.path for mistake in mistakes_of(case)}) == 1


@pytest.mark.parametrize(
    ("written", "field", "remedy"),
    [
        (total(window={"tumbling": "10s"}), f"{S}.window.tumbling", "give fields with values: {size: 10s}"),
        (total(window={"session": "30m"}), f"{S}.window.session", "give fields with values: {gap: 30m}"),
        (step(toTable="users"), f"{S}.toTable", "give fields with values: {store: users}"),
        (total(window={"hopping": "10s"}), f"{S}.window.hopping", "give fields with values"),
        (
            step(select="user, amount"),
            f"{S}.select",
            "give fields with values (the new value: column name to Spark SQL expression)",
        ),
    ],
)
def test_a_text_in_place_of_fields_is_told_where_it_belongs(written: dict[str, Any], field: str, remedy: str) -> None:
    mistakes = [mistake for mistake in read_application(application(written)).mistakes if mistake.path == field]
    assert [mistake.remedy for mistake in mistakes] == [remedy]


def test_all_mistakes_come_at_once_and_in_the_order_of_the_file() -> None:
    document = application(
        step(name="a", wher="true", select={"x": "cast(amount as"}),
        step(name="b", where="amuont > 0"),
        total(name="c", store="users"),
        sinks=[{"from": "nowhere", "topic": "out"}],
        sources=[{**ORDERS, "topic": "a b"}, USERS, CLICKS],
        processing={"commitInterval": 5, "guarantee": "exactly_once"},
    )
    document["spec"] = {"replicas": "x", **document["spec"]}
    with pytest.raises(InvalidApplicationException) as caught:
        parse_application(document)
    assert [mistake.path for mistake in caught.value.mistakes] == [
        "spec.replicas",
        "spec.topology.sources[0].topic",
        "spec.topology.steps[0].wher",
        "spec.topology.steps[0].select.x",
        "spec.topology.steps[1].where",
        "spec.topology.steps[2].store",
        "spec.topology.sinks[0].from",
        "spec.processing.commitInterval",
        "spec.processing.guarantee",
    ]
    assert all(str(mistake) in str(caught.value) for mistake in caught.value.mistakes)


def test_what_cannot_be_read_does_not_make_others_wrong() -> None:
    unreadable = {"name": "paid", "from": "orders", "where": ["amount > 0"]}
    document = application(unreadable, total(from_="paid"), step(name="t", from_="s", where="anything > 1"))
    assert [mistake.path for mistake in read_application(document).mistakes] == [
        f"{S}.where",
        "spec.topology.steps[2].where",
    ]


def test_every_circle_is_named_once() -> None:
    steps = [
        {"name": name, "from": from_, "where": "true"}
        for name, from_ in (("a", "b"), ("b", "a"), ("c", "d"), ("d", "c"), ("e", "a"))
    ]
    found = [mistake.found for mistake in read_application(application(*steps)).mistakes]
    assert found == ["steps in a circle: a → b → a", "steps in a circle: c → d → c"]


@pytest.mark.parametrize(
    "document", [{}, {"spec": 1}, {"spec": {"topology": []}}, {"spec": {"topology": {"steps": 5}}}]
)
def test_documents_of_any_shape_are_refused_with_mistakes(document: dict[str, Any]) -> None:
    reading = read_application(document)
    assert reading.application is None
    assert reading.mistakes


@pytest.mark.parametrize("section", ["kafka", "processing", "state", "template", "topology"])
@pytest.mark.parametrize(("name", "shown"), [(None, "null"), (True, "true"), (7, "7"), (1.5, "1.5")])
def test_a_field_whose_name_is_no_text_is_a_mistake_of_its_section(name: Any, shown: str, section: str) -> None:
    document = application(total())
    document["spec"].setdefault(section, {})[name] = []
    (mistake,) = read_application(document).mistakes
    assert str(mistake) == f"spec.{section}: a field's name is {shown}, which is no text; write the name in quotes"


def test_so_is_one_of_the_resource_itself() -> None:
    (mistake,) = read_application({**application(total()), None: 1}).mistakes
    assert str(mistake).startswith("the resource: a field's name is null")


def test_after_an_aggregate_a_row_has_no_offset_any_more() -> None:
    after = step(name="t", from_="s", where="_offset > 1")
    (mistake,) = read_application(application(total(), after)).mistakes
    assert "'_offset'" in mistake.found
    kept = step(name="t", from_="s", where="_timestamp is not null and _key = 'x' and n > 1")
    assert not read_application(application(total(), kept)).mistakes


def test_more_mistakes_join_in_order_but_never_twice_for_a_field() -> None:
    reading = read_application(application(step(where="amount >"), step(name="t", select={"x": "user"})))
    own = reading.mistakes[0]
    later = type(own)("spec.topology.steps[1].select.x", "later", "r")
    earlier = type(own)("spec.topology.sources[0].topic", "earlier", "r")
    again = type(own)(own.path, "again", "r")
    assert [mistake.found for mistake in reading.with_more([later, again, earlier]).mistakes] == [
        "earlier",
        own.found,
        "later",
    ]


def test_more_mistakes_take_the_application_back() -> None:
    reading = read_application(application(step(where="amount > 0")))
    assert reading.with_more([]).application is not None
    mistake = read_application({}).mistakes[0]
    assert reading.with_more([mistake]).application is None


def test_all_sql_is_listed_with_its_fields() -> None:
    document = application(
        step(where="amount > 0", select={"a b": "user"}),
        step(name="k", from_="s", keyBy="`a b`"),
        total(name="t", from_="k", aggregate={"n": "count(*)"}),
        sources=[{**ORDERS, "timestamp": "ts", "key": {"format": "json", "schema": "id INT"}}],
    )
    reading = read_application(document)
    assert reading.mistakes == ()
    assert [(field.path, field.kind) for field in reading.sql] == [
        ("spec.topology.sources[0].key.schema", "schema"),
        ("spec.topology.sources[0].value.schema", "schema"),
        ("spec.topology.sources[0].timestamp", "timestamp"),
        (f"{S}.where", "where"),
        (f'{S}.select["a b"]', "select"),
        ("spec.topology.steps[1].keyBy", "keyBy"),
        ("spec.topology.steps[2].aggregate.n", "aggregate"),
    ]
