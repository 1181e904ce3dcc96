"""What is too large, too deep or no value at all is refused by name, in seconds."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from resource_mutations import BASES

from streams_runtime.api import read_application
from streams_runtime.api.schemas.avro_schema import parse_avro
from streams_runtime.api.schemas.ddl_schema import parse_schema
from streams_runtime.api.schemas.proto_schema import parse_proto
from streams_runtime.api.spec.limits import DEEPEST, LONGEST, LONGEST_FIELD, MOST, MOST_ENTRIES
from streams_runtime.api.sql.scalars import scalar_problems

HEAD = "apiVersion: streamsoperator.io/v1alpha1\nkind: StreamsApplication\n"


def told(given: str | dict[str, Any]) -> str:
    """The mistakes of what is refused."""
    reading = read_application(given)
    assert reading.application is None
    return "\n".join(map(str, reading.mistakes))


@pytest.mark.parametrize(
    "text", ["[" * 20_000, "a: " + "[" * 300 + "]" * 300, "".join(" " * at + "a:\n" for at in range(300))]
)
def test_a_text_that_is_nested_too_deeply_is_refused_at_its_place(text: str) -> None:
    assert told(text).startswith("application:")
    assert f"more than {DEEPEST} levels" in told(text)


@pytest.mark.parametrize("each", ["[{}]", "{{<<: [{}]}}"])
def test_aliases_that_multiply_are_refused(each: str) -> None:
    lines = [f"a{at}: &a{at} {each.format(', '.join([f'*a{at - 1}'] * 9))}" for at in range(1, 12)]
    assert f"more than {MOST} values" in told("\n".join(["a0: &a0 {x: 1}", *lines]))


def test_aliases_that_deepen_are_refused() -> None:
    lines = [f"a{at}: &a{at} [*a{at - 1}]" for at in range(1, 300)]
    assert f"more than {DEEPEST} levels" in told("\n".join(["a0: &a0 1", *lines]))


def test_a_text_that_no_configmap_would_hold_is_refused() -> None:
    assert told(HEAD + "# " + "x" * LONGEST) == f"application: a text of more than {LONGEST} bytes; make it smaller"


@pytest.mark.parametrize(
    "value",
    [
        "!!int foo",
        "!!int ''",
        "!!float .",
        "!!bool maybe",
        "!!timestamp then",
        "0x_",
        '"\\ud800"',
        "1" * 5_000,
        "0x" + "f" * 5_000,
    ],
)
def test_a_value_that_is_none_of_its_type_is_refused_at_its_place(value: str) -> None:
    assert told(f"{HEAD}spec: {value}").startswith("application:3:7: not YAML: found a value that can't be read as ")


def test_an_escape_of_no_character_is_refused_at_its_place() -> None:
    assert told(f'{HEAD}spec: "\\U00110000"').startswith("application:3:10: not YAML: found an escape of no character")


def test_a_mapping_is_held_to_the_limits_of_a_text() -> None:
    deep: Any = "x"
    for _ in range(5_000):
        deep = [deep]
    assert f"more than {DEEPEST} levels" in told({"spec": deep})
    assert f"more than {MOST} values" in told({"spec": [1] * MOST})


def test_calls_that_a_parser_may_take_for_types_are_refused_when_they_are_nested() -> None:
    assert scalar_problems("struct(" * 5 + "1" + ")" * 5, None) == []
    (problem,) = scalar_problems("struct(" * 40 + "1" + ")" * 40, None)
    assert problem.found.startswith("more than 8 types or calls like struct in each other")


def test_types_that_are_nested_too_deeply_are_refused() -> None:
    assert parse_schema("x " + "ARRAY<" * 20 + "INT" + ">" * 20)[1] == []
    columns, (problem,) = parse_schema("x " + "ARRAY<" * 100 + "INT" + ">" * 100)
    assert columns is None
    assert problem.found == f"more than {DEEPEST} levels in each other"


def doubling(levels: int) -> str:
    """An Avro schema of as many named types, each with two fields of the one before."""
    kinds: list[Any] = [{"type": "record", "name": "R0", "fields": [{"name": "a", "type": "int"}]}]
    for at in range(1, levels):
        fields = [{"name": "a", "type": f"R{at - 1}"}, {"name": "b", "type": f"R{at - 1}"}]
        kinds.append({"type": "record", "name": f"R{at}", "fields": fields})
    return json.dumps({"type": "record", "name": "R", "fields": [{"name": k["name"], "type": k} for k in kinds]})


def test_named_types_that_multiply_are_refused() -> None:
    assert parse_avro(doubling(3)).problems == ()
    (problem,) = parse_avro(doubling(30)).problems
    assert problem.found == f"more than {MOST} values, named types written out"


def test_an_avro_schema_that_is_nested_too_deeply_is_refused() -> None:
    for text in ("[" * 100_000, '{"type":"array","items":' * 100 + '"int"' + "}" * 100):
        (problem,) = parse_avro(text).problems
        assert problem.found == f"more than {DEEPEST} levels in each other"


def test_an_avro_number_of_too_many_digits_is_no_failure() -> None:
    (problem,) = parse_avro('{"type": "fixed", "name": "F", "size": ' + "9" * 5_000 + "}").problems
    assert problem.found.startswith("an Avro schema that is not JSON")


def test_messages_that_multiply_are_refused() -> None:
    inner = "".join(f"message M{at} {{ M{at - 1} a = 1; M{at - 1} b = 2; }}\n" for at in range(1, 30))
    (problem,) = parse_proto(f'syntax = "proto3";\n{inner}message M0 {{ int32 a = 1; }}', "M29").problems
    assert problem.found == f"more than {MOST} values, messages written out"


def test_a_schema_that_is_no_text_in_utf_8_is_refused() -> None:
    (problem,) = parse_proto('syntax = "proto3"; message \ud800 {}').problems
    assert problem.found.startswith("no Protobuf schema")


def test_a_value_of_many_digits_in_a_mapping_is_shown() -> None:
    document = copy.deepcopy(BASES[0])
    document["spec"]["replicas"] = 10**5_000
    assert "spec.replicas: found" in told(document)


@pytest.mark.parametrize(
    ("spec", "mistake"),
    [
        (
            {"kafka": {"secretRef": {"name": "a" * (LONGEST_FIELD + 1)}}},
            f"spec.kafka.secretRef.name: has {LONGEST_FIELD + 1} characters; use at most {LONGEST_FIELD}",
        ),
        (
            {"spark": {"config": {"a b": "x" * (LONGEST_FIELD + 1)}}},
            f'spec.spark.config["a b"]: has {LONGEST_FIELD + 1} characters; use at most {LONGEST_FIELD}',
        ),
        (
            {"template": {"labels": {f"l{at}": "" for at in range(MOST_ENTRIES + 1)}}},
            f"spec.template.labels: has {MOST_ENTRIES + 1} entries; use at most {MOST_ENTRIES}",
        ),
        (
            {"template": {"tolerations": [{"operator": "Exists"}] * (MOST_ENTRIES + 1)}},
            f"spec.template.tolerations: has {MOST_ENTRIES + 1} entries; use at most {MOST_ENTRIES}",
        ),
    ],
)
def test_a_field_that_the_definition_has_no_room_for_is_refused_at_its_place(
    spec: dict[str, Any], mistake: str
) -> None:
    document = copy.deepcopy(BASES[0])
    document["spec"] |= spec
    assert mistake in told(document).splitlines()


def test_a_field_of_just_that_size_is_taken() -> None:
    document = copy.deepcopy(BASES[0])
    document["spec"]["template"] = {
        "labels": {f"l{at}": "" for at in range(MOST_ENTRIES)},
        "env": [{"name": "A", "value": "x" * LONGEST_FIELD}],
    }
    assert read_application(document).mistakes == ()
