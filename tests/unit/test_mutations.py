"""The mutations of tests/mutations: each says what it is, names a test that is there, and fits the present code."""

from __future__ import annotations

import ast
import functools
import shutil
from pathlib import Path

import pytest

from mutations import ROOT, Mutation, applied, chosen, mutations

MUTATIONS = mutations()


def package_of(file: Path) -> Path:
    """The package of a file: the runtime's by its first folder, whose rooms share it; the operator's by each folder."""
    folder = file.parent
    return Path(*folder.parts[:3]) if folder.parts[0] == "runtime" else folder


PACKAGES = sorted(
    {package_of(file.relative_to(ROOT)) for top in ("operator", "runtime") for file in (ROOT / top).rglob("*.py")}
)

each_of_all = pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)


@functools.cache
def functions_of(file: str) -> frozenset[str]:
    """The functions at the top of a file, which is not run."""
    nodes = ast.parse((ROOT / file).read_text()).body if (ROOT / file).is_file() else []
    return frozenset(node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def test_there_are_thirty_and_every_package_has_one() -> None:
    assert len(MUTATIONS) >= 30
    hit = {package_of(Path(file)) for mutation in MUTATIONS for file in mutation.touched}
    assert [str(package) for package in PACKAGES if package not in hit] == []


@each_of_all
def test_a_mutation_is_one_mistake_in_one_file_and_says_which(mutation: Mutation) -> None:
    assert len(mutation.touched) == 1
    assert mutation.touched[0].startswith(("operator/streams_operator/", "runtime/streams_runtime/"))
    assert mutation.what.endswith(".")


@each_of_all
def test_the_test_that_catches_a_mutation_is_there(mutation: Mutation) -> None:
    file, _, function = mutation.test.partition("::")
    assert function in functions_of(file)


@each_of_all
def test_a_mutation_fits_the_present_code(mutation: Mutation, tmp_path: Path) -> None:
    for name in mutation.touched:
        (tmp_path / name).parent.mkdir(parents=True)
        shutil.copy(ROOT / name, tmp_path / name)
    assert applied(mutation, tmp_path, "--check") is None, "make the same mistake in the present code, or another one"


def test_mutations_are_chosen_by_name_or_number() -> None:
    first, second, *_ = MUTATIONS
    assert chosen([], MUTATIONS) == MUTATIONS
    assert chosen([second.name, first.name.partition("-")[0]], MUTATIONS) == [first, second]
    with pytest.raises(KeyError, match="no mutation 'none'"):
        chosen(["none"], MUTATIONS)
