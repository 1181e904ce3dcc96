"""The files of the page, with the headers that keep a browser from asking or running anything else."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
INDEX: Final = "index.html"
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Nothing but files and answers of this instance, no scripts in texts, and no other page around this one."""
_HEADERS: Final = {
    "Cache-Control": "no-cache",  # kept, and asked for again with its tag: an upgrade is seen at once
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file's bytes, and the headers that it is sent with."""

    content: bytes
    headers: Mapping[str, str]

    def is_known(self, if_none_match: str | None) -> bool:
        """Whether a browser with this header has the file already."""
        tags = [tag.strip().removeprefix("W/") for tag in (if_none_match or "").split(",")]
        return self.headers["ETag"] in tags or tags == ["*"]


def page_files() -> Mapping[str, PageFile]:
    """All of them by name; they are read once, and do not change while a process runs."""
    found = {}
    for file in files(__package__).joinpath("static").iterdir():
        suffix = "." + file.name.rpartition(".")[2]
        if suffix in _TYPES:
            content = file.read_bytes()
            tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
            found[file.name] = PageFile(content, {**_HEADERS, "Content-Type": _TYPES[suffix], "ETag": tag})
    return found
