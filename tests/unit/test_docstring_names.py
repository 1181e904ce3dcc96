"""What a docstring explains by name is there: a parameter, a field, or another name of its module."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BY_NAME = r"`(?P<name>[a-z_]\w*)`(?::| is | are | gives | has | have | holds | leads? | takes )"
_MAYBE_EXPLAINED = re.compile(_BY_NAME)
_EXPLAINED = re.compile(rf"(?:^|[.;:]\s+|\n\s*){_BY_NAME}")
_DOCSTRING = re.compile(r'"""(?:[^"]|"(?!""))*"""')


def explained(text: str) -> Iterator[tuple[int, str]]:
    """By line, the names that the docstrings of a module's classes and functions explain and its code does not have."""
    # Taking a module apart takes a hundred times as long as looking for names in its text, and nearly all are there.
    candidates = {match["name"] for match in _MAYBE_EXPLAINED.finditer(text)}
    code = set(re.findall(r"\w+", _DOCSTRING.sub("", text))) if candidates else set()
    if candidates <= code:
        return
    found = [
        (node.lineno, name)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        for name in sorted({match["name"] for match in _EXPLAINED.finditer(ast.get_docstring(node) or "")})
    ]
    yield from ((line, name) for line, name in found if name not in code)


def test_names_that_docstrings_explain_are_there() -> None:
    files = [file for top in ("operator", "runtime") for file in sorted((ROOT / top).rglob("*.py"))]
    gone = [
        f"{file.relative_to(ROOT)}:{line}: {name}"
        for file in files
        for line, name in explained(file.read_text(encoding="utf-8"))
    ]
    assert gone == []
    assert len(files) > 100


def test_a_name_that_has_gone_is_found() -> None:
    body = '"""How many. `rows` are whole; `old`: nothing.\n\n    `gone` is there. By `this` and that."""'
    text = f"def size(rows):\n    {body}\n"
    assert list(explained(text)) == [(1, "gone"), (1, "old")]
