"""Where an instance passes queries on, and which: both sides know it, the routes and the querying client."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote

RELAY: Final = "/relay"
"""Followed by an instance's host:port and the path there."""

_WITHOUT_KEY: Final = re.compile(
    r"owners|range|all|prefix|count|approximate-count|windows/(?:range|all)|sessions/range"
)
_WITH_KEY: Final = re.compile(r"(keys|window|session|windows/keys|sessions/keys)/([\s\S]*)")


def escaped(text: str) -> str:
    """Percent-encoded as one segment of a path; dots too, or `..` would be taken for a step up."""
    return quote(text, safe="").replace(".", "%2E")


def relayed_path(store: str, rest: str) -> str | None:
    """The path at the other instance, from the decoded parts of the one that came; None for no endpoint of a store.

    It is made anew: of the caller's text only the names of the store and of the key go on, as one segment each.
    """
    way = rest if _WITHOUT_KEY.fullmatch(rest) else None
    if found := _WITH_KEY.fullmatch(rest):
        way = f"{found[1]}/{escaped(found[2])}"
    return None if way is None else f"/stores/{escaped(store)}/{way}"
