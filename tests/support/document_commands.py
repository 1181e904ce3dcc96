"""The commands that a page shows: do verbs, options, targets of make, the chart's values and files exist?"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import typer
from documents import ROOT, Document, chart_values

_STREAMSAPP = re.compile(r"^(?:\$ )?(?:\.venv/bin/)?streamsapp (?P<verb>[a-z]+)\b(?P<rest>.*)$", re.MULTILINE)
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
_MAKE = re.compile(r"^(?:\$ )?make (?P<target>[a-z][a-z0-9-]*)", re.MULTILINE)
_TARGETS = re.compile(r"^(?P<names>[a-z][a-z0-9 -]*):(?!=)", re.MULTILINE)
_VALUE = re.compile(r"--set(?:-string)? '?(?P<path>[A-Za-z][\w.]*)=")
_FILE = re.compile(r"(?P<path>[\w.-]+(?:/[\w.*-]+)+\.(?:py|md|yaml|java|toml|c)\b)(?:::(?P<test>test_\w+))?")
_BARE_FILE = re.compile(r"(?<![\w/.*-])(?P<name>[a-z_]\w*\.py)(?![\w:])")
_HOMES = ("", "tests", "operator/streams_operator", "runtime/streams_runtime")

Command = Any
"""A command of click's, which typer makes."""


def unknown_commands(page: Document) -> list[str]:
    """Every verb, option, target and value in the code of a page that does not exist."""
    texts = [text.replace("\\\n", " ") for text in page.code]
    return [found for text in texts for found in (*_verbs(text), *_targets(text), *_values(text))]


def unknown_files(page: Document) -> list[str]:
    """Every file in the code of a page that is neither beside it nor in the project, from its root or a package on."""
    homes = [page.file.parent, *(ROOT / each for each in _HOMES)]
    found = {match["path"] for text in page.code for match in _FILE.finditer(text)}
    return sorted(path for path in found if not any(_is_there(home, path) for home in homes))


def _is_there(home: Path, path: str) -> bool:
    # A search takes ten times as long as a look.
    return any(home.glob(path)) if any(each in path for each in "*?[") else (home / path).exists()


def unknown_modules(page: Document) -> list[str]:
    """Every module that a page names without a folder, and that the project does not have."""
    return sorted({match["name"] for text in page.code for match in _BARE_FILE.finditer(text)} - _modules())


@functools.cache
def _modules() -> frozenset[str]:
    return frozenset(
        file.name for top in ("operator", "runtime", "tests", "examples") for file in (ROOT / top).rglob("*.py")
    )


def _verbs(text: str) -> Iterator[str]:
    known = _options()
    for match in _STREAMSAPP.finditer(text):
        verb, given = match["verb"], _OPTION.findall(match["rest"].partition(" #")[0])
        if verb not in known:
            yield f"streamsapp {verb}"
        else:
            yield from (f"streamsapp {verb} {each}" for each in given if each not in known[verb])


def _targets(text: str) -> Iterator[str]:
    yield from (f"make {match['target']}" for match in _MAKE.finditer(text) if match["target"] not in _made())


def _values(text: str) -> Iterator[str]:
    found = (match["path"] for match in _VALUE.finditer(text))
    yield from (f"--set {path}" for path in found if not _has(chart_values(), path.split(".")))


def _has(values: Any, path: list[str]) -> bool:
    if not path or values == {} or values is None:
        return True
    return isinstance(values, Mapping) and path[0] in values and _has(values[path[0]], path[1:])


@functools.cache
def _made() -> frozenset[str]:
    """The targets of make."""
    rules = _TARGETS.finditer((ROOT / "Makefile").read_text(encoding="utf-8"))
    return frozenset(name for match in rules for name in match["names"].split())


@functools.cache
def _options() -> dict[str, frozenset[str]]:
    """The verbs of streamsapp with their options, those of a verb's own verbs among them."""
    from streams_runtime.cli.main import app

    return {name: frozenset({"--help", *_taken(verb)}) for name, verb in _inner(typer.main.get_command(app))}


def _taken(verb: Command) -> Iterator[str]:
    yield from (name for option in verb.params for name in (*option.opts, *option.secondary_opts))
    yield from (name for _, each in _inner(verb) for name in _taken(each))


def _inner(verb: Command) -> Iterable[tuple[str, Command]]:
    return getattr(verb, "commands", {}).items()
