"""What a page's blocks of code claim by their marks, and whether it is so.

| opening of the block | claim |
|---|---|
| `yaml resource` | a whole StreamsApplication without a mistake, as the real reader finds |
| `yaml fragment` | YAML; where it is a mapping of sources, steps or sinks, each entry is right by itself |
| `yaml fragment of=spec` | fields of `spec`, without a mistake in an application that has them |
| `yaml fragment of=sources` (steps, sinks) | one entry, or a list of them; judged as in a mapping of them |
| `yaml fragment of=values` | values that the chart has |
| `python` | runs by itself |
| `python fragment` | compiles |
| `json` | JSON |

A fragment of a topology may name sources, steps and columns that are not in it, so neither names nor expressions are
judged; the fields and types of each entry are, and which of them go together. A block that has to be right as a whole
is a resource.
"""

from __future__ import annotations

import json
import re
import runpy
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from documents import Block, chart_values
from pydantic import ValidationError

from streams_runtime.api import StreamsApplication, read_application
from streams_runtime.api.reading.mistakes import from_validation
from streams_runtime.api.reading.readable_parts import salvage
from streams_runtime.api.step_checks.shape_checks import shape_mistakes

_PARTS = ("sources", "steps", "sinks")
_VALUE = {"format": "json", "schema": "amount DOUBLE"}
_SOURCE = {"name": "input", "topic": "input", "key": {"format": "string"}, "value": _VALUE}
_STEP = {"name": "totals", "from": "input", "aggregate": {"total": "sum(amount)"}, "store": "totals"}
_MARKS = {
    "yaml": ("resource", "fragment", *(f"fragment of={each}" for each in ("spec", *_PARTS, "values"))),
    "python": ("", "fragment"),
    "json": ("",),
}
_LIKE_YAML_OR_PYTHON = re.compile(
    r"^(apiVersion: |topology:$|from \S+ import |import \w+$|def \w+\(|class \w+[(:])", re.MULTILINE
)
_PLAIN = frozenset(
    {"", "text", "sh", "bash", "console", "mermaid", "sql", "java", "proto", "jsonl", "toml", "diff", "csv"}
)


def false_claims(block: Block, folder: Path) -> list[str]:
    """Why a block is not what its mark says; empty: it is. `folder` is where a block of Python is put and run."""
    language, _, mark = " ".join(block.words).partition(" ")
    if language not in _MARKS:
        return list(_unmarked(block, language))
    if mark not in _MARKS[language]:
        known = " or ".join(repr(f"{language} {each}".rstrip()) for each in _MARKS[language])
        return [f"is marked {block.info!r}; give {known}"]
    check: Callable[[str, str, Path], Iterator[str]] = {"yaml": _yaml, "python": _python, "json": _json}[language]
    return list(check(block.text, mark, folder))


def _unmarked(block: Block, language: str) -> Iterator[str]:
    if language not in _PLAIN:
        known = ", ".join(sorted({*_MARKS, *_PLAIN} - {""}))
        yield f"has the language {language!r}, which nobody checks; known: {known}"
    elif language in ("", "text") and (found := _LIKE_YAML_OR_PYTHON.search(block.text)):
        yield f"has no language and looks like YAML or Python ({found[0].strip()!r}); mark it"


def _yaml(text: str, mark: str, _: Path) -> Iterator[str]:
    if mark == "resource":
        yield from map(str, read_application(text, "block").mistakes)
        return
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        yield f"is no YAML: {error}"
        return
    of = mark.partition("of=")[2] or ("topology" if _is_topology(content) else "")
    match of:
        case "topology":
            yield from _misshapen(content)
        case "sources" | "steps" | "sinks":
            yield from _misshapen({of: content if isinstance(content, list) else [content]})
        case "spec":
            spec = {"topology": {"sources": [_SOURCE], "steps": [_STEP]}} | content
            yield from map(str, read_application(_resource(spec)).mistakes)
        case "values":
            yield from _no_such_values(content, chart_values())


def _is_topology(content: object) -> bool:
    return isinstance(content, Mapping) and bool(content) and set(content) <= {*_PARTS, "functions"}


def _misshapen(topology: Mapping[str, Any]) -> Iterator[str]:
    document = _resource({"topology": {"sources": [_SOURCE]} | topology})
    try:
        StreamsApplication.model_validate(document)
    except ValidationError as error:
        yield from map(str, from_validation(error, StreamsApplication))
    yield from map(str, shape_mistakes(salvage(document)))


def _resource(spec: Mapping[str, Any]) -> dict[str, Any]:
    head = {"apiVersion": "streamsoperator.io/v1alpha1", "kind": "StreamsApplication", "metadata": {"name": "page"}}
    return {**head, "spec": dict(spec)}


def _no_such_values(given: object, known: object, path: str = "") -> Iterator[str]:
    """Names that the chart's values.yaml does not have; what is empty there may be filled with anything."""
    if isinstance(given, Mapping) and isinstance(known, Mapping) and known:
        for name, value in given.items():
            if name in known:
                yield from _no_such_values(value, known[name], f"{path}{name}.")
            else:
                yield f"the chart has no value {path}{name}"


def _python(text: str, mark: str, folder: Path) -> Iterator[str]:
    file = folder / "block.py"
    file.write_text(text, encoding="utf-8")
    before = set(sys.modules)
    try:
        if mark == "fragment":
            compile(text, str(file), "exec")
        else:
            runpy.run_path(str(file), run_name="block")
    except Exception as error:  # whatever a page's code raises is what is wrong with it
        yield f"{type(error).__name__}: {error}"
    if not mark and "pyspark.sql" in set(sys.modules) - before and _spark_runs():
        yield "leaves a Spark session behind; mark it as a fragment, and show it by a test"


def _spark_runs() -> bool:
    return sys.modules["pyspark.sql"].SparkSession.getActiveSession() is not None


def _json(text: str, _: str, __: Path) -> Iterator[str]:
    try:
        json.loads(text)
    except ValueError as error:
        yield f"is no JSON: {error}"
