"""The project's pages as markdown-it reads them: headings, links, blocks of code, and what is wrong with a link."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
_BUILT = {"build", "dist", "jars", "wheelhouse"}
_NOT_IN_A_SLUG = re.compile(r"[^\w\- ]")
_HTML_ANCHOR = re.compile(r"""<\w+[^>]*\s(?:id|name)=["']([^"']+)["']""")
_HTML_TARGET = re.compile(r"""<\w+[^>]*\s(?:href|src)=["']([^"']+)["']""")
_LINES_OF_A_FILE = re.compile(r"L\d+(-L\d+)?")


@dataclass(frozen=True, slots=True)
class Link:
    """A link or a picture. `line` is the first one of its paragraph, counted from 1."""

    line: int
    target: str


@dataclass(frozen=True, slots=True)
class Block:
    """A block of code. `info` is what stands behind the fence's opening; empty for an indented block."""

    line: int
    info: str
    text: str

    @property
    def words(self) -> tuple[str, ...]:
        """Language and marks."""
        return tuple(self.info.split())


@dataclass(frozen=True)
class Document:
    """One page: where it lies, and its text."""

    file: Path
    text: str

    @classmethod
    def of(cls, file: Path) -> Document:
        """The page in a file."""
        return cls(file, file.read_text(encoding="utf-8"))

    @property
    def name(self) -> str:
        """Its path from the project's folder on."""
        return str(self.file.relative_to(ROOT))

    @cached_property
    def tokens(self) -> list[Token]:
        """What markdown-it makes of it, as GitHub would as far as links, headings and blocks go."""
        return MarkdownIt("commonmark").enable("table").parse(self.text)

    @cached_property
    def anchors(self) -> frozenset[str]:
        """What a link to this page may have behind its #."""
        found: list[str] = []
        for at, token in enumerate(self.tokens):
            if token.type == "heading_open":
                found.append(_numbered(slug(_shown(self.tokens[at + 1])), found))
        return frozenset([*found, *_HTML_ANCHOR.findall(self.text)])

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """All links and pictures, those of HTML too."""
        return tuple(_links(self.tokens))

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """All blocks of code, also those within lists."""
        kinds = ("fence", "code_block")
        return tuple(Block(_line(each), each.info.strip(), each.content) for each in self.tokens if each.type in kinds)

    @cached_property
    def code(self) -> tuple[str, ...]:
        """The texts that stand in code: words within sentences, and blocks."""
        inside = (child for token in self.tokens for child in token.children or ())
        return (*(each.content for each in inside if each.type == "code_inline"), *(each.text for each in self.blocks))


def documents() -> list[Document]:
    """Every page of the project, in order of their paths."""
    return [Document.of(file) for file in sorted(_pages(ROOT))]


@functools.cache
def chart_values() -> Any:
    """The chart's values.yaml."""
    return yaml.safe_load((ROOT / "charts/streams-operator/values.yaml").read_text(encoding="utf-8"))


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading: small letters, hyphens for spaces, and nothing but words and hyphens."""
    return _NOT_IN_A_SLUG.sub("", heading.strip().lower()).replace(" ", "-")


def broken(link: Link, page: Document) -> str | None:
    """What is wrong with a link of a page; None: it leads somewhere, or out of the project in a proper form."""
    parts = urlsplit(link.target)
    if parts.scheme or parts.netloc:
        proper = parts.scheme in ("http", "https") and "." in parts.netloc and not re.search(r"\s", link.target)
        return None if proper else f"{link.target} is no address"
    file = (page.file.parent / unquote(parts.path)).resolve() if parts.path else page.file
    if not file.is_relative_to(ROOT):
        return f"{link.target} leaves the project"
    if file != page.file and not file.exists():
        return f"{link.target}: there is no {file.relative_to(ROOT)}"
    if not parts.fragment:
        return None
    if file.suffix != ".md":
        return None if _LINES_OF_A_FILE.fullmatch(parts.fragment) else f"{link.target}: only pages have headings"
    anchors = page.anchors if file == page.file else _anchors_of(file)
    return None if parts.fragment in anchors else f"{link.target}: no heading #{parts.fragment}"


@functools.cache
def _anchors_of(file: Path) -> frozenset[str]:
    """Many links lead to the same page, which takes longer to read than all of them."""
    return Document.of(file).anchors


def _pages(folder: Path) -> Iterator[Path]:
    for each in folder.iterdir():
        if each.is_dir() and not each.name.startswith(".") and each.name not in _BUILT and not each.is_symlink():
            yield from _pages(each)
        elif each.suffix == ".md":
            yield each


def _links(tokens: list[Token], line: int = 1) -> Iterator[Link]:
    for token in tokens:
        at = _line(token) if token.map else line
        if token.type in ("link_open", "image"):
            yield Link(at, str(token.attrGet("href" if token.type == "link_open" else "src")))
        elif token.type in ("html_block", "html_inline"):
            yield from (Link(at, target) for target in _HTML_TARGET.findall(token.content))
        yield from _links(token.children or [], at)


def _line(token: Token) -> int:
    return token.map[0] + 1 if token.map else 1


def _shown(heading: Token) -> str:
    return "".join(each.content for each in heading.children or () if each.type in ("text", "code_inline"))


def _numbered(name: str, taken: list[str]) -> str:
    number, found = 0, name
    while found in taken:
        number += 1
        found = f"{name}-{number}"
    return found
