"""How large the code's files, functions and folders are, and that a file can be spoken of by its name alone."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[2]
LINES, FUNCTION, FOLDER, MEDIAN = 350, 60, 15, 100


@cache
def modules() -> dict[str, str]:
    """The text of every module of operator and runtime, by its path."""
    files = [file for top in ("operator", "runtime") for file in (ROOT / top).rglob("*.py")]
    return {str(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in files}


def length(text: str) -> int:
    return len(text.splitlines())


def functions(node: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """All that a module defines, in whatever it stands. Expressions define none, and are most of a tree."""
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        inner = getattr(node, name, ())
        # The body of a lambda, and of a conditional expression, is no list.
        for each in inner if isinstance(inner, list) else ():
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
                yield each
            yield from functions(each)


def test_functions_are_found_wherever_they_stand() -> None:
    text = """
def a():
    try:
        class C:
            async def b(self): pass
    except E:
        def c(): pass
    else:
        def d(): pass
    finally:
        def e(): pass
    match x:
        case 1:
            def f(): pass
if x:
    for y in z:
        def g(): pass
    else:
        with y:
            def h(): pass
"""
    assert [each.name for each in functions(ast.parse(text))] == list("abdecfgh")


def test_a_module_is_as_long_as_its_idea() -> None:
    assert {path: length(text) for path, text in modules().items() if length(text) > LINES} == {}


def test_most_modules_are_short() -> None:
    assert median(length(text) for text in modules().values() if text) < MEDIAN


def test_a_function_fits_a_screen() -> None:
    long = {
        f"{path} {node.name}"
        for path, text in modules().items()
        for node in functions(ast.parse(text))
        if (node.end_lineno or node.lineno) - node.lineno > FUNCTION
    }
    assert long == set()


def test_a_folder_can_be_taken_in_at_a_glance() -> None:
    files = Counter(str(Path(path).parent) for path in modules() if Path(path).name != "__init__.py")
    assert {folder: count for folder, count in files.items() if count > FOLDER} == {}


def test_no_two_modules_have_the_same_name() -> None:
    names = Counter(Path(path).name for path in modules())
    del names["__init__.py"]
    assert {name: count for name, count in names.items() if count > 1} == {}
