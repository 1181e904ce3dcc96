"""Loading what a resource names in Python, and what a wrong name is told."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from streams_runtime.errors import ConfigException
from streams_runtime.user_code import load


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with a package of its own; what is imported from it is forgotten again."""
    package = tmp_path / "custom_shop"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "stats.py").write_text("class Summary:\n    class Inner: ...\n")
    (package / "broken.py").write_text("x = 1\nx = x / 0\n")
    (package / "wanting.py").write_text("import custom_missing_library\n")
    before, modules = [*sys.path], {*sys.modules}
    yield tmp_path
    sys.path[:] = before
    for name in {*sys.modules} - modules:
        if name.startswith("custom_shop"):
            del sys.modules[name]


def test_a_class_beside_the_file_is_found(folder: Path) -> None:
    assert load("custom_shop.stats:Summary", folder).__name__ == "Summary"  # type: ignore[attr-defined]
    assert load("custom_shop.stats:Summary.Inner").__qualname__ == "Summary.Inner"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        ("custom_shop.stats", "write package.module:name"),
        ("custom_shop.stats:Sumary", "has no 'Sumary'; did you mean 'Summary'?"),
        ("custom_shop.stat:Summary", "no module 'custom_shop.stat'; did you mean 'stats'?"),
        ("custom_shap.stats:Summary", "no module 'custom_shap'; did you mean 'custom_shop'?"),
        ("custom_shop.wanting:Summary", "needs 'custom_missing_library', which is not installed"),
        ("custom_shop.broken:Summary", r"ZeroDivisionError: division by zero \(broken.py, line 2\)"),
    ],
)
def test_what_is_not_there_is_told_with_the_nearest_name(folder: Path, reference: str, told: str) -> None:
    with pytest.raises(ConfigException, match=told):
        load(reference, folder)
