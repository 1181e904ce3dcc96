"""Resources as nobody should write them: valid ones, and ones made from the definition's schema, changed by a seed.

The same seed gives the same resource, as text (YAML, or JSON) or as the mapping that an API server would give.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Mapping
from functools import cache
from typing import Any

import yaml
from operator_world import resource

from streams_runtime.api.crd.definition import definition

_STREAM = {
    "name": "a",
    "topic": "a",
    "key": {"format": "string"},
    "value": {"format": "json", "schema": "x INT, s STRING"},
}
_AVRO = (
    '{"type": "record", "name": "R", "fields": [{"name": "x", "type": ["null", "long"]}, '
    '{"name": "s", "type": "string"}]}'
)


def _base(sources: list[Any], steps: list[Any], sinks: list[Any], **spec: Any) -> dict[str, Any]:
    topology = {"sources": sources, "steps": steps, "sinks": sinks}
    return resource({"topology": topology, **spec})


BASES: tuple[dict[str, Any], ...] = (
    resource(),
    _base(
        [
            {**_STREAM, "timestamp": "_timestamp"},
            {
                "name": "u",
                "topic": "u",
                "key": {"format": "string"},
                "value": {"format": "long"},
                "table": {"store": "u"},
            },
        ],
        [
            {"name": "s", "from": "a", "where": "x > 1", "select": {"x": "x", "y": "case when x > 1 then abs(x) end"}},
            {"name": "k", "from": "s", "keyBy": "cast(x as string)"},
            {
                "name": "w",
                "from": "k",
                "window": {"tumbling": {"size": "1m", "grace": "10s"}, "retention": "1d"},
                "aggregate": {"n": "count(*)", "m": "max(x)"},
                "store": "w",
                "suppress": "untilWindowCloses",
            },
            {"name": "j", "from": "a", "join": {"table": "u", "type": "left", "select": {"v": "u.value"}}},
        ],
        [{"from": "w", "topic": "o"}, {"from": "j", "topic": "p", "value": {"format": "json"}}],
        processing={"commitInterval": "1s", "streamThreads": 2},
        template={
            "resources": {"limits": {"memory": "1Gi"}},
            "env": [{"name": "A", "value": "b"}],
            "affinity": {"a": {}},
        },
    ),
    _base(
        [_STREAM, {**_STREAM, "name": "b", "topic": "b"}],
        [
            {"name": "m", "merge": ["a", "b"]},
            {"name": "f", "from": "m", "flatMap": {"explode": "split(s, '')", "as": "letter"}},
            {"name": "d", "from": "m", "dedupe": {"within": "10m", "by": "s"}},
            {
                "name": "pr",
                "from": "m",
                "process": {
                    "python": "rules:Alerts",
                    "key": "STRING",
                    "value": "x BIGINT",
                    "outputs": ["e", "w"],
                    "stores": {
                        "seen": {"key": "STRING", "value": "n BIGINT"},
                        "w": {"key": "INT", "value": "n INT", "window": {"size": "1m", "retention": "1h"}},
                    },
                },
            },
            {"name": "sj", "from": "a", "join": {"stream": "b", "within": "5m", "grace": "1m", "select": {"z": "b.x"}}},
            {"name": "sp", "from": "d", "split": [{"name": "l", "where": "x > 1"}], "default": "r"},
            {
                "name": "v",
                "from": "m",
                "window": {"session": {"gap": "5m"}},
                "aggregate": {"n": "count(*)"},
                "store": "v",
            },
        ],
        [{"from": each, "topic": f"o-{index}"} for index, each in enumerate(["f", "sj", "sp.l", "sp.r"])],
        state={"storage": {"size": "1Gi"}},
        processing={"onDeserializationError": {"deadLetter": {"topic": "dead"}}},
        internalTopics={"overrides": {"v-changelog": {"segment.ms": 60000}}},
    ),
    _base(
        [{"name": "a", "topic": "a", "key": {"format": "string"}, "value": {"format": "avro", "schema": _AVRO}}],
        [
            {"name": "t", "from": "a", "toTable": {"store": "t"}},
            {"name": "h", "from": "a", "toTable": {"store": "h", "historyRetention": "1h"}},
            {"name": "c", "from": "t", "toStream": {}},
            {
                "name": "k",
                "from": "t",
                "toStream": {"suppress": {"within": "10s", "buffer": {"records": 5, "bytes": 9}}},
            },
        ],
        [{"from": "c", "topic": "o"}, {"from": "c", "topic": "p", "value": {"format": "jsonschema"}}],
        kafka={"bootstrapServers": "kafka:9092", "schemaRegistry": {"url": "http://registry:8081"}},
    ),
)
"""Small valid applications that have most kinds of steps between them."""

_NAMES = (
    "a",
    "b",
    "s",
    "k",
    "w",
    "m",
    "x",
    "u",
    "t",
    "é",
    "名",
    "a\u202eb",
    "A" * 300,
    "",
    " ",
    "a b",
    ".",
    "..",
    "\0",
    "a\nb",
    "_key",
)
_SQL = (
    "x",
    "x +",
    "(((",
    "`",
    "'",
    "sum(x)",
    "count(*) over ()",
    "x.y.z",
    "->",
    "/*",
    "--",
    "a INT",
    "x > 1",
    "struct(" * 20,
    "case when " * 30,
    "x + " * 200 + "x",
    "transform(s, e -> e",
    "\ud800",
    "select 1",
    "; drop table a",
    "x STRUCT<y: INT>",
    "x DECIMAL(999999999999, 3)",
    "x ARRAY<",
    "array[" * 20,
    "*",
    ":p",
    "?",
    "{{ x }}",
    "{%",
    "interval",
    "date '0000-00-00'",
)
_SCALARS: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63) - 1, 2**64, 10**30, 10**400, 0.5, float("nan"), float("inf"),
    1e308, "1s", "1h1m", "99999999999999999999d", "-1s", "1e400", "1Gi", "1e99999Gi", "0x10", "NaN", "x" * 5_000,
    "9" * 500, "https://[", "k:1", "k:99999", "[::1]:9", "local[99999999999999]", "spark://", _AVRO,
    "[" * 300, '{"type": "array"}',
    '{"type": "fixed", "name": "F", "size": -1}', '{"type": "bytes", "logicalType": "decimal", "precision": 1e400}',
    "2024-01-01", "=", "<<", "~", "!!int x",
)  # fmt: skip


def any_value(chance: random.Random) -> Any:
    """A value for a field that may hold anything."""
    return _value(chance)


def mutated(seed: int) -> str | dict[str, Any]:
    """The resource of this seed."""
    chance = random.Random(seed)
    document = _from_schema(chance) if chance.random() < 0.25 else copy.deepcopy(chance.choice(BASES))
    for _ in range(chance.choice((0, 1, 1, 1, 2, 3, 6))):
        _change(chance, document)
    way = chance.random()
    if way < 0.4:
        return document
    if way < 0.6:
        text = json.dumps(document)
    else:
        text = yaml.safe_dump(document, sort_keys=False, allow_unicode=chance.random() < 0.5)
    for _ in range(chance.choice((0, 0, 1, 2, 4))):
        text = _misspelt(chance, text)
    return text


def _change(chance: random.Random, document: dict[str, Any]) -> None:
    """Change one value, the name of one field, or the order of a list."""
    places = list(_places(document))
    if not places:
        document["spec"] = _value(chance)
        return
    holder, last = chance.choice(places)
    match chance.randrange(7):
        case 0:
            del holder[last]
        case 1:
            holder[last] = copy.deepcopy(_at(*chance.choice(places)))
        case 2 if isinstance(holder, dict):
            holder[chance.choice(_NAMES)] = _value(chance)
        case 3 if isinstance(holder, dict):
            holder[chance.choice((None, 1, True, "x" * 3_000, *_NAMES))] = holder.pop(last)
        case 4 if isinstance(holder, list):
            holder.extend(copy.deepcopy(holder) * chance.choice((1, 1, 20)))
        case 5 if isinstance(holder[last], str):  # cycles, twins, and names that are nobody's
            names = [_at(*each) for each in places if each[1] in ("name", "from", "store", "topic")]
            holder[last] = copy.deepcopy(chance.choice([*names, *_NAMES]))
        case _:
            holder[last] = _value(chance)


def _at(holder: Any, last: Any) -> Any:
    return holder[last]


def _places(value: Any) -> list[tuple[Any, Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for last, inner in items for found in ((value, last), *_places(inner))]


def _value(chance: random.Random, depth: int = 0) -> Any:  # noqa: PLR0911
    way = chance.random()
    if way < 0.4 or depth > 3:
        return chance.choice(_SCALARS)
    if way < 0.6:
        return chance.choice(_SQL)
    if way < 0.75:
        return chance.choice(_NAMES)
    if way < 0.8:
        return "".join(chr(chance.choice((chance.randrange(128), chance.randrange(0x11_0000)))) for _ in range(8))
    if way < 0.82:
        deep: Any = "x"
        for _ in range(chance.choice((10, 70, 120))):
            deep = [deep] if chance.random() < 0.5 else {"a": deep}
        return deep
    if way < 0.91:
        return [_value(chance, depth + 1) for _ in range(chance.randrange(4))]
    return {chance.choice(_NAMES): _value(chance, depth + 1) for _ in range(chance.randrange(4))}


_TAGS = tuple(
    f"{tag} "
    for tag in [
        "!!int",
        "!!float",
        "!!bool",
        "!!null",
        "!!timestamp",
        "!!binary",
        "!!set",
        "!!omap",
        "!!pairs",
        "!!str",
        "!!map",
        "!!seq",
        "!!merge",
        "!!python/object:os.system",
        "!own",
        "!",
        "&a",
        "*a",
        "<<:",
        "?",
        "-",
        "|",
        ">",
    ]
)
_PIECES = (
    "\0", "\t", "\ufeff", "\u2028", "---\n", "...\n", "%YAML 9.9\n", "{", "}", "[", "]", ",", ":", '"', "'",
    "\\", "#", "\n",
    '"\\ud800"', '"\\U00110000"', "\ud800", "0x_", "0b_", "1:60:60", ".nan", "1_0", "9" * 5_000, "[" * 5_000,
    "&b [*b]", "\nspec: 1\n", "\nkind: x\nkind: y\n", "\n? [a]\n: b\n", "\n1: 2\n", "\nnull: 2\n", "\n<<: {a: 1}\n",
    "\nz0: &z0 [1]\n" + "".join(f"z{at}: &z{at} [{', '.join([f'*z{at - 1}'] * 9)}]\n" for at in range(1, 9)),
)  # fmt: skip


def _misspelt(chance: random.Random, text: str) -> str:
    at, until = sorted((chance.randrange(len(text) + 1), chance.randrange(len(text) + 1)))
    starts = [place + 2 for place in range(len(text) - 1) if text[place : place + 2] == ": "]
    match chance.randrange(6):
        case 0:
            return text[:at] + text[until:]
        case 1:
            return text[:at] + text[at:until] * 2 + text[until:]
        case 2 if starts:
            start = chance.choice(starts)
            return text[:start] + chance.choice(_TAGS) + text[start:]
        case 3 if starts:
            start = chance.choice(starts)
            return text[:start] + chance.choice(_PIECES) + text[start:]
        case 4:
            lines = text.split("\n")
            chance.shuffle(lines)
            return "\n".join(lines)
        case _:
            return text[:at] + chance.choice(_PIECES) + text[at:]


@cache
def _schema() -> Mapping[str, Any]:
    (version,) = definition()["spec"]["versions"]
    found: Mapping[str, Any] = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return found


def _from_schema(chance: random.Random) -> dict[str, Any]:
    return {**resource(), "spec": _made(chance, _schema())}


def _made(chance: random.Random, schema: Mapping[str, Any]) -> Any:  # noqa: PLR0911
    """A value that the definition takes, as far as types, fields and choices go."""
    if "enum" in schema:
        return chance.choice(schema["enum"])
    match schema.get("type"):
        case "object" if "properties" in schema:
            required = schema.get("required", ())
            return {
                name: _made(chance, inner)
                for name, inner in schema["properties"].items()
                if name in required or chance.random() < 0.4
            }
        case "object":
            inner = schema.get("additionalProperties")
            return {
                chance.choice(_NAMES): _made(chance, inner if isinstance(inner, dict) else {})
                for _ in range(chance.randrange(3))
            }
        case "array":
            return [_made(chance, schema["items"]) for _ in range(chance.randrange(4))]
        case "string":
            return chance.choice(("a", "b", "x", "1s", "1Gi", *_NAMES, *_SQL))
        case "integer":
            return chance.choice((0, 1, 2, 2**31 - 1, 2**63 - 1))
        case "boolean":
            return chance.random() < 0.5
        case _:
            return _value(chance)
