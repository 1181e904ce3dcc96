"""What a node of a structural schema says, in words for the reference: type, default and allowed values."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final

from streams_runtime.api.reading.legal_names import PART_PATTERN, TOPIC_PATTERN
from streams_runtime.api.spec.limits import LONGEST_FIELD, MOST_ENTRIES
from streams_runtime.api.spec.operations.reset_spec import MOMENT_PATTERN
from streams_runtime.api.spec.spec_values import (
    COUNT_OR_PERCENT_PATTERN,
    DURATION_PATTERN,
    IMAGE_PATTERN,
    LABEL_VALUE_PATTERN,
    OBJECT_NAME_PATTERN,
    OFFSET_RESET_PATTERN,
    QUANTITY_PATTERN,
)

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class NamedType:
    """A type that many fields share: the name it has in tables, the pattern that marks it, and what it holds."""

    name: str
    pattern: str
    meaning: str


NAMED_TYPES: Final = (
    NamedType(
        "duration",
        DURATION_PATTERN,
        "A length of time: whole numbers with their units `d`, `h`, `m`, `s`, `ms` from large to small, such as"
        " `100ms`, `30s` or `1h30m`. A number without a unit is refused.",
    ),
    NamedType(
        "offset reset",
        OFFSET_RESET_PATTERN,
        "`earliest`, `latest`, `none`, or a duration that is counted back from now, such as `1h`.",
    ),
    NamedType(
        "quantity", QUANTITY_PATTERN, "A Kubernetes quantity, such as `10Gi` or `500m`; a number may stand bare."
    ),
    NamedType(
        "count or percentage", COUNT_OR_PERCENT_PATTERN, "A number of pods, such as `1`, or a part of all: `25%`."
    ),
    NamedType(
        "moment", MOMENT_PATTERN, "`earliest`, `latest`, or a time with its offset from UTC: `2026-01-31T08:00:00Z`."
    ),
    NamedType("object name", OBJECT_NAME_PATTERN, "The name of a Kubernetes object."),
    NamedType("image", IMAGE_PATTERN, "An image by a tag, `NAME:TAG`, or by its digest, `NAME@sha256:…`."),
    NamedType("label value", LABEL_VALUE_PATTERN, "The value of a Kubernetes label. A number or boolean needs quotes."),
    NamedType("topic name", f"^{TOPIC_PATTERN}$", "The name of a Kafka topic."),
    NamedType(
        "part name",
        f"^{PART_PATTERN}$",
        "The name of a source, step, store or application id: it becomes part of topics' names.",
    ),
)
"""In the order in which the reference lists them. A pattern that is none of these stands in the field's own row."""

_BY_PATTERN: Final = {each.pattern: each.name for each in NAMED_TYPES}
_CHOICES: Final = re.compile(r"\^\(([A-Za-z]+(?:\|[A-Za-z]+)*)\)\$")  # how a nullable enumeration is written


def type_words(node: Schema) -> str:
    """The type of a node: `integer`, `duration`, `list of object`, `map to string`, …"""
    if "anyOf" in node:
        return " or ".join(_choice_words(each) for each in node["anyOf"])
    if name := _BY_PATTERN.get(node.get("pattern", "")):
        return name
    if "items" in node:
        return f"list of {type_words(node['items'])}"
    if "additionalProperties" in node:
        return f"map to {type_words(node['additionalProperties'])}"
    return _plain_words(node)


def _plain_words(node: Schema) -> str:
    name = str(node.get("type", "string, number or boolean"))
    if name == "object" and node.get("x-kubernetes-preserve-unknown-fields") and "properties" not in node:
        return "object with any fields"
    return "time (RFC 3339)" if node.get("format") == "date-time" else name


def _choice_words(choice: Schema) -> str:
    if "enum" in choice:
        return "string"
    return _BY_PATTERN.get(choice.get("pattern", ""), "object")


def default_words(node: Schema) -> str:
    """The default as YAML has it, as code; empty where there is none."""
    return _code(_shown(node["default"])) if "default" in node else ""


def value_words(node: Schema) -> str:
    """What a value may be beside its type: choices, bounds, patterns. Empty where nothing narrows it.

    The bounds that every string, list and map has (`limits.LONGEST_FIELD`, `limits.MOST_ENTRIES`) are left out.
    """
    words = [*_choices(node), *_bounds(node)]
    match node.get("pattern"):
        case str(pattern) if pattern not in _BY_PATTERN and not _CHOICES.fullmatch(pattern):
            words.append(f"matches {_code(pattern)}")
    if keys := node.get("x-kubernetes-list-map-keys"):
        words.append(f"unique by {_code(', '.join(keys))}")
    if inner := node.get("items") or node.get("additionalProperties"):
        words += [f"each {words}" for words in (value_words(inner),) if words]
    return "; ".join(words)


def _choices(node: Schema) -> list[str]:
    choices = [each for choice in (node, *node.get("anyOf", ())) for each in choice.get("enum", ())]
    if found := _CHOICES.fullmatch(node.get("pattern", "")):
        choices = found[1].split("|")
    return [", ".join(_code(_shown(each)) for each in choices)] if choices else []


def _bounds(node: Schema) -> list[str]:
    """The bounds of numbers, strings, lists and maps; those of a named type belong to the type, but for lengths."""
    numbers = _between(node, "minimum", "maximum") if "type" in node else ""
    words = [numbers, _counted(node, "Length", "characters", LONGEST_FIELD)]
    if "type" in node:
        words += [_counted(node, kind, "entries", MOST_ENTRIES) for kind in ("Items", "Properties")]
    return [each for each in words if each]


def _counted(node: Schema, kind: str, unit: str, common: int) -> str:
    least, most = f"min{kind}", f"max{kind}"
    own = {name: node[name] for name in (least, most) if name in node and (name, node[name]) != (most, common)}
    if own == {least: 1}:
        return "not empty"
    words = _between(own, least, most)
    return f"{words} {unit}" if words else ""


def _between(node: Schema, least: str, most: str) -> str:
    match node.get(least), node.get(most):
        case None, None:
            return ""
        case low, None:
            return f"at least {low}"
        case None, high:
            return f"at most {high}"
        case low, high:
            return f"{low} to {high}"


def _shown(value: object) -> str:
    return value if isinstance(value, str) and value else json.dumps(value)


def _code(text: str) -> str:
    """As code in a cell of a table, where a bar would end the cell."""
    return f"`{text}`".replace("|", "\\|")
