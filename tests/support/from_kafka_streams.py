"""The tables of the pages for users of Kafka Streams, row by row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from documents import ROOT, Document

METHODS = Document.of(ROOT / "runtime/guide/from-kafka-streams.md")
SETTINGS = Document.of(ROOT / "runtime/guide/from-kafka-streams-settings.md")
_CELL = re.compile(r"(?<!\\)\|")
_CODE = re.compile(r"`([^`]+)`")


@dataclass(frozen=True, slots=True)
class MethodRow:
    """What becomes of a method of an interface: its names in Python and in a file, None where it is not here."""

    kind: str
    method: str
    python: str | None
    file: str | None
    note: str


@dataclass(frozen=True, slots=True)
class SettingRow:
    """What becomes of a setting: its field under spec, None where it is not here."""

    setting: str
    field: str | None
    note: str


def method_rows() -> list[MethodRow]:
    """Every row of the methods' page, once for each interface that its heading names."""
    return [
        MethodRow(kind.strip(), str(_named(method)), _named(python), _named(file), note)
        for heading, (method, python, file, note) in _rows(METHODS, 4)
        for kind in heading.split(",")
    ]


def setting_rows() -> list[SettingRow]:
    """Every row of the settings' page."""
    return [SettingRow(str(_named(setting)), _named(field), note) for _, (setting, field, note) in _rows(SETTINGS, 3)]


def _rows(page: Document, width: int) -> Iterator[tuple[str, list[str]]]:
    """The cells of each row of a table, with the heading above it. Raises ValueError: a row of another width."""
    heading = ""
    for line in page.text.splitlines():
        if line.startswith("## "):
            heading = line.removeprefix("## ")
        if line.startswith("| `"):
            cells = [each.strip() for each in _CELL.split(line)[1:-1]]
            if len(cells) != width:
                raise ValueError(f"{page.name}: {line} has {len(cells)} cells, and not {width}")
            yield heading, cells


def _named(cell: str) -> str | None:
    """What stands in a cell as code; None for a dash. Raises ValueError: it is neither."""
    if cell == "—":
        return None
    if not (found := _CODE.fullmatch(cell)):
        raise ValueError(f"{cell!r} is neither code nor a dash")
    return found[1]
