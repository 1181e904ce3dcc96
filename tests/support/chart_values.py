"""The table of the chart's values, from the comments of values.yaml and from values.schema.json.

`python tests/support/chart_values.py > charts/streams-operator/VALUES.md` writes it; a test compares.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).parents[2] / "charts" / "streams-operator"
PAGE = CHART / "VALUES.md"
_INTRODUCTION = """# The chart's values

`python tests/support/chart_values.py` makes this table from `values.yaml` and `values.schema.json`. Helm refuses
names that are not here, and values of another type. [The chart's README](README.md) has what belongs together.

| value | type | default | meaning |
|---|---|---|---|
"""


@dataclass(frozen=True, slots=True)
class Value:
    """One value, or a group of them. `default` None: a group, whose members have their own."""

    path: str
    type: str
    default: str | None
    description: str

    @property
    def row(self) -> str:
        """Its row of the table."""
        default = "" if self.default is None else f"`{self.default}`"
        return f"| `{self.path}` | {_cell(self.type)} | {_cell(default)} | {_cell(self.description)} |"


def values(text: str, schema: Mapping[str, Any]) -> list[Value]:
    """All values of a values.yaml. Raises ValueError that names those without a description."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    assert isinstance(root, yaml.MappingNode)
    found = list(_walk(root, schema, text.splitlines(), schema.get("definitions", {}), ""))
    bare = [each.path for each in found if each.default is not None and not each.description]
    if bare:
        raise ValueError(f"values without a comment above them in values.yaml: {', '.join(bare)}")
    return found


def page() -> str:
    """The whole page."""
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    found = values((CHART / "values.yaml").read_text(encoding="utf-8"), schema)
    return _INTRODUCTION + "".join(f"{each.row}\n" for each in found if each.description)


def _walk(
    node: yaml.MappingNode, schema: Mapping[str, Any], lines: list[str], definitions: Mapping[str, Any], path: str
) -> Iterator[Value]:
    for key, value in node.value:
        here = f"{path}.{key.value}" if path else key.value
        part = schema.get("properties", {}).get(key.value, {})
        part = definitions[part["$ref"].rsplit("/", 1)[-1]] if "$ref" in part else part
        said = _comment(lines, key.start_mark.line, key.start_mark.column)
        if isinstance(value, yaml.MappingNode) and not value.flow_style:
            yield Value(here, "group", None, said)
            yield from _walk(value, part, lines, definitions, here)
        else:
            default = value.value if isinstance(value, yaml.ScalarNode) else _source(lines, value)
            yield Value(here, _type(part), default or '""', said)


def _comment(lines: list[str], line: int, column: int) -> str:
    """The comment right above a line, of the same indentation, as one text."""
    mark, texts = f"{' ' * column}#", []
    while line > 0 and lines[line - 1].startswith(mark):
        line -= 1
        texts.append(lines[line].removeprefix(mark).strip())
    return " ".join(reversed(texts))


def _source(lines: list[str], node: yaml.Node) -> str:
    """A list or a mapping in braces, as it is written, on one line."""
    start, end = node.start_mark, node.end_mark
    if start.line != end.line:
        raise ValueError(f"values.yaml:{start.line + 1}: write a list or mapping in brackets on one line")
    return lines[start.line][start.column : end.column]


def _type(part: Mapping[str, Any]) -> str:
    if "enum" in part:
        return ", ".join(f"`{each}`" for each in part["enum"])
    types = part.get("type", "any")
    name = " or ".join(types) if isinstance(types, list) else str(types)
    name = {"array": "list", "object": "mapping"}.get(name, name)
    least, most = part.get("minimum"), part.get("maximum")
    if least is not None and most is not None:
        return f"{name}, {least} to {most}"
    return f"{name}, at least {least}" if least is not None else name


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    print(page(), end="")
