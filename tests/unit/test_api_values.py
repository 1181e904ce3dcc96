"""Durations, quantities, properties and field paths."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from streams_runtime.api.reading.field_paths import path, position, under
from streams_runtime.api.spec.spec_values import (
    LONGEST_DURATION,
    Duration,
    Property,
    Quantity,
    format_duration,
    parse_duration,
)
from streams_runtime.kafka.consumer.record_table import LATEST_TIME


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("100ms", 100),
        ("0ms", 0),
        ("1s", 1_000),
        ("1m", 60_000),
        ("1m500ms", 60_500),
        ("1h30m", 5_400_000),
        ("2d", 172_800_000),
        ("1d1h1m1s1ms", 90_061_001),
    ],
)
def test_a_duration_is_the_sum_of_its_parts(text: str, milliseconds: int) -> None:
    assert parse_duration(text) == timedelta(milliseconds=milliseconds)


@pytest.mark.parametrize(
    "value", [100, 1.5, True, None, "", "100", "1 s", "-1s", "1.5s", "1s1m", "1S", "ms", "1s ", "1w"]
)
def test_anything_else_is_no_duration_least_of_all_a_bare_number(value: object) -> None:
    with pytest.raises(ValidationError, match="which is not a duration"):
        TypeAdapter(Duration).validate_python(value)


def test_a_duration_that_a_records_time_can_not_be_added_to_is_refused() -> None:
    assert TypeAdapter(Duration).validate_python("36500d") == LONGEST_DURATION
    for text in ("36500d1ms", "999999999d", "999999999d999999999h"):
        with pytest.raises(
            ValidationError, match=f"found '{text}', which is longer than a century; give at most 36500d"
        ):
            TypeAdapter(Duration).validate_python(text)
    windows = 4 * (LONGEST_DURATION // timedelta(milliseconds=1)) + LATEST_TIME
    assert datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=windows) < datetime(9999, 1, 1, tzinfo=UTC)
    assert windows * 1000 < 2**63


@given(st.integers(min_value=0, max_value=10**12))
def test_a_printed_duration_reads_back(milliseconds: int) -> None:
    duration = timedelta(milliseconds=milliseconds)
    assert parse_duration(format_duration(duration)) == duration


@pytest.mark.parametrize("text", ["10Gi", "500m", "1", "1.5G", "2e3", "0"])
def test_quantities_are_written_as_kubernetes_does(text: str) -> None:
    assert TypeAdapter(Quantity).validate_python(text) == text


@pytest.mark.parametrize("value", ["10 Gi", "Gi", "-1", "10GiB", "", True, None, -5])
def test_anything_else_is_no_quantity(value: object) -> None:
    with pytest.raises(ValidationError, match="which is not a quantity"):
        TypeAdapter(Quantity).validate_python(value)


@pytest.mark.parametrize(("value", "text"), [(True, "true"), (False, "false"), (5, "5"), (0.5, "0.5"), ("x", "x")])
def test_a_property_becomes_its_text(value: object, text: str) -> None:
    assert TypeAdapter(Property).validate_python(value) == text


@pytest.mark.parametrize("value", [None, [1], {"a": 1}])
def test_a_property_is_one_value(value: object) -> None:
    with pytest.raises(ValidationError, match="not the value of a property"):
        TypeAdapter(Property).validate_python(value)


def test_paths_read_as_the_file_is_written() -> None:
    assert path("spec", "topology", "steps", 2, "where") == "spec.topology.steps[2].where"
    assert path("spec", "config", "group.id") == 'spec.config["group.id"]'
    assert under("spec.config", 'a"b\\') == 'spec.config["a\\"b\\\\"]'
    assert under("spec.steps", 0) == "spec.steps[0]"


@given(st.lists(st.text(min_size=1), min_size=1, max_size=4))
def test_a_path_finds_its_field_whatever_the_names_are(names: list[str]) -> None:
    document: dict[str, object] = {"before": 1}
    inner = document
    for name in names:
        following: dict[str, object] = {}
        inner[name] = following
        inner = following
    places = position(document, path(*names))
    assert len(places) == len(names)
    assert all(place in (0, 1) for place in places)


def test_fields_sort_in_the_order_of_the_file_and_missing_ones_after_their_siblings() -> None:
    document = {"b": {"x": 1}, "a": [{}, {"y": 1}]}
    fields = ["a[1].y", "b.missing", "a", "b.x", "b", "a[0]", "nowhere"]
    ordered = sorted(fields, key=lambda field: position(document, field))
    assert ordered == ["b", "b.x", "b.missing", "a", "a[0]", "a[1].y", "nowhere"]
