"""The form in which every command prints."""

from __future__ import annotations

from enum import StrEnum


class Output(StrEnum):
    """`text` is for people; `json` is one JSON object a line."""

    TEXT = "text"
    JSON = "json"
