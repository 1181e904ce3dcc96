"""Aggregates with groupBy that are refused: each mistake with its field, what was found, and what would do."""

from __future__ import annotations

import pytest
from refused_foreign_keys import application
from refused_groups import REFUSED_GROUPS, grouped

from streams_runtime.api import read_application


@pytest.mark.parametrize("case", REFUSED_GROUPS)
def test_a_mistake_names_its_field_what_was_found_and_what_would_do_and_stands_alone(case: str) -> None:
    document, field, found, remedy = REFUSED_GROUPS[case]
    mistakes = read_application(document).mistakes
    alone = [mistake for mistake in mistakes if mistake.path == field]
    assert alone, mistakes
    assert found in alone[0].found
    assert remedy in alone[0].remedy
    assert {mistake.path for mistake in mistakes} == {field}


def test_what_can_be_taken_out_again_is_accepted_with_its_sql() -> None:
    columns = {"n": "count(*)", "some": "count(tier) FILTER (WHERE n > 1)", "big": "count_if(n > 3)"}
    columns |= {"sum": "sum(n)", "mean": "avg(n)"}
    reading = read_application(application(grouped(aggregate=columns, groupBy="concat(user, '')")))
    assert reading.mistakes == ()
    found = {each.path: (each.kind, each.text) for each in reading.sql}
    assert found["spec.topology.steps[0].groupBy"] == ("groupBy", "concat(user, '')")
    assert found["spec.topology.steps[0].aggregate.sum"] == ("aggregate", "sum(n)")
