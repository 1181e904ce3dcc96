"""The documents keep their word: links lead somewhere, blocks are what their marks say, commands and files exist.

What a mark of a block claims stands in `support/document_blocks.py`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from document_blocks import false_claims
from document_commands import unknown_commands, unknown_files, unknown_modules
from documents import ROOT, Block, Document, Link, broken, documents, slug

PAGES = documents()
LONGEST = {"README.md": 120}
PAGE = 150
OF_ANY_LENGTH = {"CHANGELOG.md", "tests/benchmarks/DECISIONS.md", "crds/README.md", "operator/CONDITIONS.md"}
"""History, newest first; and pages that a command writes."""
_PAGE_IN_CODE = re.compile(r"\b(?:[\w-]+/)+[\w-]+\.md\b")
NAME_FILES = ("operator/", "tests/")
"""Pages whose files are the project's own. Guides of the runtime name files of users too."""
NAME_MODULES = ("operator/README.md", "tests/", "runtime/streams_runtime/")
"""The same for modules without a folder; guides of the operator mount modules of users."""


def by_name(pages: list[Document]) -> dict[str, object]:
    return {"argvalues": pages, "ids": [page.name for page in pages]}


@pytest.mark.parametrize("page", **by_name(PAGES))
def test_every_link_leads_somewhere(page: Document) -> None:
    assert [f"{page.name}:{link.line}: {found}" for link in page.links if (found := broken(link, page))] == []


@pytest.mark.parametrize("page", **by_name([page for page in PAGES if page.name not in OF_ANY_LENGTH]))
def test_no_page_is_longer_than_can_be_read_at_once(page: Document) -> None:
    assert len(page.text.splitlines()) <= LONGEST.get(page.name, PAGE)


@pytest.mark.parametrize("page", **by_name([page for page in PAGES if page.blocks]))
def test_every_block_is_what_its_mark_says(page: Document, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = [f"{page.name}:{block.line}: {each}" for block in page.blocks for each in false_claims(block, tmp_path)]
    assert found == []


@pytest.mark.parametrize("page", **by_name([page for page in PAGES if page.name != "CHANGELOG.md"]))
def test_every_command_that_a_page_shows_exists(page: Document) -> None:
    assert unknown_commands(page) == []


@pytest.mark.parametrize("page", **by_name([page for page in PAGES if page.name.startswith(NAME_FILES)]))
def test_every_file_that_a_page_names_is_there(page: Document) -> None:
    assert unknown_files(page) == []


@pytest.mark.parametrize("page", **by_name([page for page in PAGES if page.name.startswith(NAME_MODULES)]))
def test_every_module_that_a_page_names_is_there(page: Document) -> None:
    assert unknown_modules(page) == []


def test_every_page_that_the_code_names_is_there() -> None:
    files = [file for folder in ("operator", "runtime", "examples") for file in (ROOT / folder).rglob("*.py")]
    named = {(file.name, each) for file in files for each in _PAGE_IN_CODE.findall(file.read_text(encoding="utf-8"))}
    assert [each for each in sorted(named) if not (ROOT / each[1]).exists()] == []
    assert named


def test_the_changelog_the_project_and_the_chart_have_one_version() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text()
    newest = re.search(r"^## \[(.+?)\] - (?:unreleased|\d{4}-\d\d-\d\d)$", changes, re.MULTILINE)
    project = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    chart = yaml.safe_load((ROOT / "charts/streams-operator/Chart.yaml").read_text())
    assert newest is not None
    assert project is not None
    assert newest[1] == project[1] == chart["version"]


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("make bench-operator", "make-bench-operator"),
        ("What is `topology.functions`?", "what-is-topologyfunctions"),
        ("Kafka Streams' own tests", "kafka-streams-own-tests"),
        ("Rolling, and back", "rolling-and-back"),
        ("At least once / exactly once", "at-least-once--exactly-once"),
        ("snake_case & Ümlaut", "snake_case--ümlaut"),
    ],
)
def test_anchors_are_github_s(heading: str, anchor: str) -> None:
    assert slug(heading) == anchor


def page_of(text: str) -> Document:
    return Document(ROOT / "operator" / "PAGE.md", text)


def test_headings_of_one_name_are_numbered_and_code_counts_with_its_text() -> None:
    page = page_of("# `a` *b*\n\n## [a](x.md) b\n\n<a id='own'></a>\n\n```sh\n# no heading\n```\n")
    assert page.anchors == {"a-b", "a-b-1", "own"}


@pytest.mark.parametrize(
    "target",
    [
        "no-such.md",
        "README.md#no-such-heading",
        "#no-such-heading",
        "../../outside.md",
        "../Makefile#demo",
        "https://localhost",
        "ftp://example.org/file",
    ],
)
def test_a_link_that_leads_nowhere_is_found(target: str) -> None:
    assert broken(Link(1, target), page_of("# Heading\n"))


@pytest.mark.parametrize(
    "target",
    ["README.md", "../README.md#streams-operator", "#heading", "../Makefile#L3-L9", "https://kafka.apache.org"],
)
def test_a_link_that_leads_somewhere_is_not_complained_of(target: str) -> None:
    assert broken(Link(1, target), page_of("# Heading\n")) is None


def test_links_in_lists_tables_pictures_and_html_are_seen() -> None:
    text = "- [a](1.md)\n\n| |\n|---|\n| ![b](2.svg) |\n\n[c][ref]\n\n[ref]: 3.md\n\n<img src='4.svg'>\n"
    assert [link.target for link in page_of(text).links] == ["1.md", "2.svg", "3.md", "4.svg"]


WRONG_BLOCKS = {
    "without a mark": ("yaml", "a: 1", "is marked 'yaml'"),
    "an unknown mark": ("python snippet", "1", "is marked 'python snippet'"),
    "an unknown language": ("yml", "a: 1", "the language 'yml'"),
    "no language, but a resource": ("", "apiVersion: v1\n", "looks like YAML"),
    "no language, but Python": ("text", "def build():\n    pass\n", "looks like YAML or Python"),
    "half a resource": ("yaml resource", "kind: StreamsApplication\n", "apiVersion"),
    "an unknown field of a step": ("yaml fragment", "steps: [{name: a, from: b, filter: x}]", "no such field"),
    "a step that does nothing": ("yaml fragment of=steps", "{name: a, from: b}", "does nothing"),
    "a source without a schema": (
        "yaml fragment of=sources",
        "- {name: a, topic: a, value: {format: json}}",
        "json that is read needs one",
    ),
    "no duration": ("yaml fragment of=spec", "progressDeadline: 10", "is not a duration"),
    "a value that the chart has not": ("yaml fragment of=values", "rbac: {make: true}", "no value rbac.make"),
    "no YAML": ("yaml fragment", "a: [", "is no YAML"),
    "Python that does not compile": ("python fragment", "def", "SyntaxError"),
    "Python that does not run": ("python", "import no_such_module", "ModuleNotFoundError"),
    "no JSON": ("json", "{'a': 1}", "is no JSON"),
}


@pytest.mark.parametrize(("info", "text", "found"), WRONG_BLOCKS.values(), ids=WRONG_BLOCKS)
def test_a_block_that_is_not_what_its_mark_says_is_found(info: str, text: str, found: str, tmp_path: Path) -> None:
    assert found in "\n".join(false_claims(Block(1, info, text), tmp_path))


RIGHT_BLOCKS = {
    "steps whose inputs stand elsewhere": ("yaml fragment", "steps: [{name: a, from: b, where: c > 1}]"),
    "one step": ("yaml fragment of=steps", "{name: a, from: b, keyBy: c}"),
    "fields of spec": ("yaml fragment of=spec", "rollback: automatic"),
    "YAML of others": ("yaml fragment", "kind: RoleBinding"),
    "values of the chart": ("yaml fragment of=values", "affinity: {nodeAffinity: {}}"),
    "a dataclass": ("python", "import dataclasses\n@dataclasses.dataclass\nclass A:\n    b: 'int'\n"),
    "Python with names that it lacks": ("python fragment", "topic.pipe('a', 1)"),
}


@pytest.mark.parametrize(("info", "text"), RIGHT_BLOCKS.values(), ids=RIGHT_BLOCKS)
def test_a_block_that_is_what_its_mark_says_is_not_complained_of(info: str, text: str, tmp_path: Path) -> None:
    assert false_claims(Block(1, info, text), tmp_path) == []


def test_commands_and_files_that_do_not_exist_are_found() -> None:
    names = "`streamsapp start`, `make tests`, `unit/test_none.py`, `none.py` and `model.py`"
    text = f"{names}\n\n```sh\nstreamsapp query --nope  # --comment\n```\n"
    page = page_of(f"{text}\n```sh\nhelm install x y --set rbac.make=true --set image.tag=1\n```\n")
    assert unknown_commands(page) == ["streamsapp start", "make tests", "streamsapp query --nope", "--set rbac.make"]
    assert unknown_files(page) == ["unit/test_none.py"]
    assert unknown_modules(page) == ["none.py"]
