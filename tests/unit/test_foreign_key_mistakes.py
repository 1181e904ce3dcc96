"""Joins by a foreign key that are refused: each mistake with its field, what was found, and what would do."""

from __future__ import annotations

import pytest
from refused_foreign_keys import REFUSED_FOREIGN_KEYS, application, joined

from streams_runtime.api import read_application


@pytest.mark.parametrize("case", REFUSED_FOREIGN_KEYS)
def test_a_mistake_names_its_field_what_was_found_and_what_would_do_and_stands_alone(case: str) -> None:
    document, field, found, remedy = REFUSED_FOREIGN_KEYS[case]
    mistakes = read_application(document).mistakes
    alone = [mistake for mistake in mistakes if mistake.path == field]
    assert alone, mistakes
    assert found in alone[0].found
    assert remedy in alone[0].remedy
    if case != "foreign-key-of-a-stream-with-a-store":  # of which the key itself is a mistake too
        assert {mistake.path for mistake in mistakes} == {field}


def test_sql_of_a_foreign_key_is_that_of_spark() -> None:
    reading = read_application(application(joined(key="concat(user, '')")))
    assert reading.mistakes == ()
    found = {each.path: (each.kind, each.text) for each in reading.sql}
    assert found["spec.topology.steps[0].join.key"] == ("key", "concat(user, '')")
