"""Reading YAML: what is refused before any field is looked at."""

from __future__ import annotations

from pathlib import Path

import pytest

from streams_runtime.api import load_application, parse_application, read_application
from streams_runtime.errors import ConfigException, InvalidApplicationException

VALID = """\
apiVersion: streamsoperator.io/v1alpha1
kind: StreamsApplication
metadata: {name: first}
spec:
  topology:
    sources:
      - {name: orders, topic: orders, key: {format: string}, value: {format: json, schema: "amount DOUBLE"}}
    steps:
      - {name: totals, from: orders, aggregate: {total: sum(amount)}, store: totals}
"""

REFUSED = [
    ("", "the file is empty"),
    ("# nothing\n", "the file is empty"),
    ("- a\n- b\n", "found a list instead of fields"),
    ("just text", "found 'just text' instead of fields"),
    ("a: [1, 2", "not YAML"),
    ("a: 1\n\tb: 2\n", "not YAML"),
    ("a: 1\n---\nb: 2\n", "a second document begins here"),
    ("a: 1\nb: 2\na: 3\n", "the field 'a' is given twice, first in line 1"),
    ("a: {b: 1, b: 2}\n", "the field 'b' is given twice"),
    ("no: 1\n", "found 'no' as the name of a field"),
    ("1: a\n", "found '1' as the name of a field"),
    ("? [a]\n: 1\n", "found a list or a mapping as the name of a field"),
    ("a: &x [*x]\n", "an alias that contains itself"),
    ("a: *nowhere\n", "found undefined alias"),
    ("a: !!python/object:os.system {}\n", "could not determine a constructor"),
    ("a: \x00\n", "not YAML"),
    ('a: "\\U00110000"\n', "an escape of no character"),
    ('a: "\\UFFFFFFFF"\n', "an escape of no character"),
    ('a: "\\ud800"\n', "a value that can't be read as str"),
]


@pytest.mark.parametrize(("text", "found"), REFUSED)
def test_yaml_that_could_be_misread_is_refused(text: str, found: str) -> None:
    reading = read_application(text, "app.yaml")
    assert reading.application is None
    assert any(found in mistake.found for mistake in reading.mistakes), reading.mistakes
    assert all(mistake.path.startswith("app.yaml") for mistake in reading.mistakes)


def test_a_syntax_error_names_file_line_and_column() -> None:
    (mistake,) = read_application("a: 1\nb: 'x' y\n", "app.yaml").mistakes
    assert mistake.path.startswith("app.yaml:2:8")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: {b: \"user = 'x'}\n", "f:1:8: a quote begins here and does not end; close it"),
        ("a: 'x\nb: 1\n", "f:1:4: a quote begins here and does not end; close it"),
        ("a: {b: user in ('x', 'y')}\n", "f:1:25: not YAML: text behind a value that has ended"),
        ("a: \"user\" = 'x'\n", "f:1:11: not YAML: text behind a value that has ended"),
        ("a: [1, 2\n", "f:2:1: not YAML: while parsing a flow sequence"),
    ],
)
def test_a_quote_or_a_comma_that_ends_a_value_is_named_for_what_it_is(text: str, told: str) -> None:
    with pytest.raises(InvalidApplicationException) as caught:
        parse_application(text, "f")
    (mistake,) = caught.value.mistakes
    assert str(mistake).startswith(told)


def test_every_doubled_field_is_reported() -> None:
    mistakes = read_application("a: 1\na: 2\nb: {c: 1, c: 2}\n", "x").mistakes
    assert [mistake.path for mistake in mistakes] == ["x:2:1", "x:3:11"]


def test_dates_stay_text() -> None:
    app = parse_application(VALID.replace("{name: first}", "{name: first, annotations: {since: 2024-01-01}}"))
    assert app.metadata.annotations == {"since": "2024-01-01"}


def test_merge_keys_and_aliases_are_plain_yaml() -> None:
    text = VALID.replace(
        "  topology:", "  kafka: {config: &c {linger.ms: 5}}\n  spark: {config: {<<: *d}}\n  topology:"
    ).replace("metadata:", "status: &d {spark.ui.enabled: false}\nmetadata:")
    app = parse_application(text)
    assert app.spec.kafka.config == {"linger.ms": "5"}
    assert app.spec.spark.config == {"spark.ui.enabled": "false"}


def test_json_is_read_as_well() -> None:
    text = (
        '{"apiVersion": "streamsoperator.io/v1alpha1", "kind": "StreamsApplication", "metadata": {"name": "x"},'
        ' "spec": {"topology": {"sources": [{"name": "a", "topic": "a", "value": {"format": "string"}}]}}}'
    )
    assert parse_application(text).application_id == "x"


def test_a_file_is_read_with_or_without_a_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "app.yaml"
    file.write_text("\ufeff" + VALID, encoding="utf-8")
    assert load_application(file).name == "first"


def test_an_unreadable_file_is_a_configuration_error_and_no_list_of_mistakes(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"name: \xe9\n")
    for file, found in (("nowhere.yaml", "there is no file"), ("latin", "not UTF-8"), (".", "can't be read")):
        with pytest.raises(ConfigException, match=found) as caught:
            load_application(tmp_path / file)
        assert not isinstance(caught.value, InvalidApplicationException)


def test_a_mistake_in_a_file_names_the_file() -> None:
    with pytest.raises(InvalidApplicationException, match=r"orders\.yaml: found a list"):
        parse_application("- x", "orders.yaml")
