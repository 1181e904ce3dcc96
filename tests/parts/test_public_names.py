"""The names that users import: listed in the guide, loaded when they are used, and described."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import streams_runtime

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "runtime" / "guide" / "api.md").read_text(encoding="utf-8")
HEAVY = {"confluent_kafka", "pyarrow", "pydantic", "pyspark", "rocksdict", "sqlglot", "yaml"}
FEW_WORDS = 5


def modules_after(statement: str) -> set[str]:
    """The modules that a new process has loaded after a statement."""
    script = [sys.executable, "-c", f"{statement}\nimport sys\nprint(*sys.modules)"]
    return {*subprocess.run(script, capture_output=True, text=True, check=True).stdout.split()}


def test_importing_the_package_loads_nothing_else() -> None:
    loaded = modules_after("import streams_runtime")
    assert {name for name in loaded if name.startswith("streams_")} == {"streams_runtime"}
    assert loaded & HEAVY == set()


def test_an_exception_loads_no_library() -> None:
    assert modules_after("from streams_runtime import ConfigException") & HEAVY == set()


def test_a_topology_in_python_loads_neither_spark_nor_a_kafka_client() -> None:
    loaded = modules_after("from streams_runtime import StreamsBuilder, json, tumbling")
    assert loaded & {"confluent_kafka", "pyspark", "rocksdict"} == set()


def test_the_guide_lists_every_public_name_once() -> None:
    listed = re.findall(r"^\| `(\w+)` \|", GUIDE, re.MULTILINE)
    assert sorted(listed) == sorted(streams_runtime.__all__)


def test_the_example_of_the_guide_runs() -> None:
    example = GUIDE.split("```python\n", 1)[1].split("```", 1)[0]
    subprocess.run([sys.executable, "-c", example], check=True)


def test_the_guide_fits_a_page() -> None:
    assert len(GUIDE.splitlines()) <= 150


def test_what_type_checkers_see_is_what_is_loaded() -> None:
    tree = ast.parse(Path(streams_runtime.__file__).read_text(encoding="utf-8"))
    seen = {
        alias.name: each.module
        for block in tree.body
        if isinstance(block, ast.If)
        for each in block.body
        if isinstance(each, ast.ImportFrom)
        for alias in each.names
    }
    loaded = {name: f"streams_runtime{module}" for name, module in streams_runtime._MODULES.items()}
    assert seen == loaded
    assert sorted(seen) == sorted(streams_runtime.__all__)


@pytest.mark.parametrize("name", streams_runtime.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(streams_runtime, name) is not None
    assert name in dir(streams_runtime)


def test_every_exception_of_the_tree_is_public() -> None:
    from streams_runtime import errors

    tree = {name for name, each in vars(errors).items() if isinstance(each, type) and issubclass(each, Exception)}
    assert tree - {*streams_runtime.__all__} == set()


def test_an_unknown_name_is_refused_as_every_module_does() -> None:
    with pytest.raises(AttributeError, match="no attribute 'StreamClient'"):
        _ = streams_runtime.StreamClient


def described() -> Iterator[tuple[str, Any]]:
    """Every public class, function and method, by its name."""
    for name in streams_runtime.__all__:
        found = getattr(streams_runtime, name)
        if inspect.isfunction(found):
            yield name, found
        if not inspect.isclass(found):
            continue
        yield name, found
        for base in (each for each in found.__mro__ if each.__module__.startswith("streams_runtime.")):
            for attribute, each in vars(base).items():
                if not attribute.startswith("_") and (function := function_of(each)) is not None:
                    yield f"{base.__name__}.{attribute}", function


def function_of(attribute: object) -> Any:
    """The function behind a method or property; None where it is no method."""
    if isinstance(attribute, property):
        return attribute.fget
    if isinstance(attribute, classmethod | staticmethod):
        return attribute.__func__
    return attribute if inspect.isfunction(attribute) else None


def raises(function: Any) -> bool:
    """Whether its own body has a `raise`."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function))))
    return any(isinstance(node, ast.Raise) for node in ast.walk(tree))


@cache
def everything() -> dict[str, Any]:
    return dict(described())


def test_methods_of_public_classes_are_looked_at() -> None:
    assert len(everything()) > 200
    assert {"StreamsClient.close", "Flow.filter", "TopologyTestDriver.batch", "StreamsClient.state"} <= {*everything()}


def test_every_public_class_and_method_says_what_it_does() -> None:
    texts = {name: inspect.cleandoc(each.__doc__ or "") for name, each in everything().items()}
    assert [name for name, text in texts.items() if len(text.split()) < FEW_WORDS] == []
    assert [name for name, text in texts.items() if re.match(r"The same\b|As \S+ (does|says)\b", text)] == []


def test_every_public_function_whose_body_raises_says_so() -> None:
    functions = {name: each for name, each in everything().items() if not inspect.isclass(each)}
    raising = [name for name, each in functions.items() if raises(each)]
    assert "InputTopic.advance" in raising
    assert [name for name in raising if not re.search(r"\b[Rr]aises?\b", functions[name].__doc__)] == []
