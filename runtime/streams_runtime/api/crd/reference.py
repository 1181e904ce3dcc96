"""The reference of every field, generated from the models: `python -m streams_runtime.api.crd.reference`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from itertools import cycle

from streams_runtime.api.crd.definition import definition
from streams_runtime.api.crd.schema_sections import Row, Schema, Section, anchor, sections
from streams_runtime.api.crd.schema_words import NAMED_TYPES, default_words, type_words, value_words
from streams_runtime.api.spec.limits import LONGEST_FIELD, MOST_ENTRIES
from streams_runtime.api.spec.resource import KIND

EXAMPLE = """\
apiVersion: streamsoperator.io/v1alpha1
kind: StreamsApplication
metadata:
  name: orders
spec:
  replicas: 2
  kafka:
    bootstrapServers: kafka:9092
    secretRef: {name: orders-kafka}
  processing:
    guarantee: exactly_once_v2
    standbyReplicas: 1
  state:
    storage: {size: 10Gi}
  topology:
    sources:
      - name: orders
        topic: orders
        key: {format: string}
        value: {format: json, schema: "user STRING, amount DOUBLE"}
    steps:
      - {name: paid, from: orders, where: amount > 0}
      - {name: by-user, from: paid, keyBy: user}
      - name: per-minute
        from: by-user
        window: {tumbling: {size: 1m, grace: 10s}}
        aggregate: {total: sum(amount), orders: count(*)}
        store: per-minute
    sinks:
      - {from: per-minute, topic: totals-per-minute, value: {format: json}}
"""
"""The resource that the reference begins with."""

_INTRODUCTION = f"""\
<!-- Generated from the models by `make crd`; change those instead. -->
# {KIND}: every field

```yaml resource
{EXAMPLE}```

The definition for a cluster is [streamsapplications.yaml](streamsapplications.yaml). It and this page are generated
from the models in `runtime/streams_runtime/api` by `make crd`. In a cluster,
`kubectl explain {KIND.lower()}.spec.kafka` prints the same descriptions.

## How to read the tables

- A field's address is its path without brackets: `#spec.topology.steps.join` on this page, `[]` stands for the entries
  of a list and `*` for the names of a map.
- **Required** means: to be given wherever the object around it is given.
- **Values** lists choices, bounds and patterns. Beside these, a string has at most {LONGEST_FIELD} characters, a list
  or a map at most {MOST_ENTRIES} entries.
- **Rules** are CEL expressions that the API server evaluates; it refuses a resource with the message before them.
- The API server does not know what expressions, names and schemas mean. `streamsapp validate FILE` and the operator
  check these too.
"""


def as_markdown() -> str:
    """The page as the file `crds/README.md` has it. Raises ValueError as `crd_schema.structural` does."""
    version = definition()["spec"]["versions"][0]
    root = version["schema"]["openAPIV3Schema"]
    found = [each for part in ("spec", "status") for each in sections(part, root["properties"][part])]
    parts = [
        _INTRODUCTION,
        _types(),
        _contents(found),
        *map(_section, found),
        _whole(root["x-kubernetes-validations"]),
        _columns(version["additionalPrinterColumns"]),
    ]
    return "\n".join(parts)


def _types() -> str:
    rows = ([each.name, each.meaning, f"`{_cell(each.pattern)}`"] for each in NAMED_TYPES)
    return "## Types\n\n" + _table(("Type", "Meaning", "Pattern of its text"), rows)


def _contents(found: Iterable[Section]) -> str:
    lines = [f"{'  ' * each.path.count('.')}- {_link(each.path)}" for each in found]
    return "\n".join(["## Contents", "", *lines, "- [Rules of the whole resource](#rules)", ""])


def _section(section: Section) -> str:
    level = "##" if section.path.count(".") < 2 else "###"
    lines = [f'<a id="{anchor(section.path)}"></a>', "", f"{level} `{section.path}`", ""]
    lines += [_sentence(section.description), ""]
    lines.append(_table(("Field", "Type", "Required", "Default", "Values", "Description"), map(_row, section.rows)))
    if section.rules:
        lines += ["**Rules**", "", *(_rule(name, rule) for name, rule in section.rules), ""]
    return "\n".join(lines)


def _row(row: Row) -> list[str]:
    # A section has its own anchor, and its path is that of the field.
    paths = (*(() if row.fields_at is not None and not row.also else (row.path,)), *row.also)
    anchors = "".join(f'<a id="{anchor(each)}"></a>' for each in paths)
    description = _sentence(row.node.get("description", ""))
    if row.fields_at is not None:
        description += f" {'Fields as those of' if row.also else 'Fields:'} {_link(row.fields_at)}."
    return [
        f"{anchors}`{row.name}`",
        type_words(row.node),
        "yes" if row.required else "",
        default_words(row.node),
        value_words(row.node),
        description.strip(),
    ]


def _sentence(text: str) -> str:
    """A description for a cell: one line, in which nothing but its code counts as Markdown."""
    parts = re.sub(r"\s+", " ", text).split("`")
    return "`".join(
        _cell(each if code else _plain(each)) for code, each in zip(cycle((False, True)), parts, strict=False)
    )


def _plain(text: str) -> str:
    return text.replace("<", "&lt;").replace("*", "\\*")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _rule(name: str, rule: Schema) -> str:
    place = f"`{name}`: " if name else ""
    return f"- {place}{rule['message']}.<br>`{rule['rule']}`"


def _whole(rules: Iterable[Schema]) -> str:
    lines = [_rule(rule.get("fieldPath", "").removeprefix("."), rule) for rule in rules]
    return "\n".join(['<a id="rules"></a>', "", "## Rules of the whole resource", "", *lines, ""])


def _columns(columns: Iterable[Schema]) -> str:
    rows = ([each["name"].upper(), f"`{each['jsonPath']}`", each["description"]] for each in columns)
    text = "`kubectl get streamsapps` prints these columns beside NAME. `kubectl scale` sets `spec.replicas`."
    return f"## Columns\n\n{text}\n\n" + _table(("Column", "Field", "Meaning"), rows)


def _link(path: str) -> str:
    return f"[`{path}`](#{anchor(path)})"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    names = [*head]
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(as_markdown())
