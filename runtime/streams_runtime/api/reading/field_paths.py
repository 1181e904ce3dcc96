"""Field paths as users read them: `spec.topology.steps[2].select["a b"]`, and their order in the file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_TOKEN = re.compile(r'\[(\d+)\]|\["((?:[^"\\]|\\.)*)"\]|\.?([A-Za-z_][A-Za-z0-9_-]*)')
_AFTER_ALL = 1 << 30


def path(*tokens: object) -> str:
    """The text of a path; integers are positions in a list, everything else is the name of a field."""
    text = ""
    for token in tokens:
        if isinstance(token, int) and not isinstance(token, bool):
            text += f"[{token}]"
        elif _PLAIN.fullmatch(str(token)):
            text += f".{token}" if text else str(token)
        else:
            quoted = str(token).replace("\\", "\\\\").replace('"', '\\"')
            text += f'["{quoted}"]'
    return text


def under(parent: str, *tokens: object) -> str:
    """The path of something inside the field `parent`."""
    inner = path(*tokens)
    return parent + inner if inner.startswith("[") else f"{parent}.{inner}"


def tokens(field: str) -> Iterator[int | str]:
    """The parts of a path: positions in lists, and names of fields."""
    for index, quoted, plain in (match.groups() for match in _TOKEN.finditer(field)):
        if index is not None:
            yield int(index)
        else:
            yield plain if plain is not None else re.sub(r"\\(.)", r"\1", quoted or "")


def position(document: Any, field: str) -> tuple[int, ...]:
    """Where the field stands in the document: sorting by it gives the order of the file.

    A field that is not there comes after those of its parent that are.
    """
    numbers: list[int] = []
    for name in tokens(field):
        if isinstance(name, int) and isinstance(document, Sequence) and not isinstance(document, str):
            numbers.append(name)
            document = document[name] if name < len(document) else None
            continue
        if isinstance(document, Mapping) and name in document:
            numbers.append(list(document).index(name))
            document = document[name]
        else:
            return (*numbers, _AFTER_ALL)
    return tuple(numbers)
