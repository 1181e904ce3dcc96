"""Words that this code once had for what the field has words of its own for do not come back as names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RETIRED = {
    "told": "per_update, message, reported, on_change: what is said, and by what",
    "turns": "order_times, ordinals, merge_steps",
    "places": "ordinals, rows, numbers",
    "ways": "branches, fork_paths",
    "keyed": "store_batch",
    "outlet": "output",
    "outlets": "outputs",
    "outbox": "producer",
    "sayings": "log",
    "crew": "thread_pool",
    "happenings": "events",
    "wakes": "work_queue",
}
"""By the retired word, what stands for it (the names that it had several meanings under)."""


def modules() -> Iterator[Path]:
    return (file for top in ("operator", "runtime") for file in (ROOT / top).rglob("*.py"))


def names_in(text: str) -> Iterator[tuple[str, int]]:
    """Every name that a module gives something and that may have a retired word, with its line."""
    small = text.lower()
    if not any(word in small for word in RETIRED) or not retired_in(text):
        return  # taking a text to words is ten times slower, and parsing it a hundred times
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node.lineno
            case ast.arg(arg=name):
                yield name, node.lineno
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name, node.lineno
            case ast.alias(asname=str(name)):
                yield name, node.lineno


def retired_in(name: str) -> set[str]:
    """The retired words of a name in snake_case, CamelCase or capitals."""
    words = {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}
    return words & RETIRED.keys()


@pytest.mark.parametrize(
    ("name", "words"),
    [("told_windows", {"told"}), ("IsTold", {"told"}), ("_PLACES", {"places"}), ("retold", set()), ("placed", set())],
)
def test_a_word_is_found_in_any_spelling_and_only_as_a_whole(name: str, words: set[str]) -> None:
    assert retired_in(name) == words


def test_no_name_has_a_retired_word() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{line}: {name}: {word} is {RETIRED[word]}"
        for file in modules()
        for name, line in [*names_in(file.read_text(encoding="utf-8")), (file.stem, 1)]
        for word in retired_in(name)
    ]
    assert found == []
