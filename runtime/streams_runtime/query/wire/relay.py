"""Paths of stores' endpoints, and of those that an instance relays: the routes and the querying client share them."""

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


def store_path(store: str, endpoint: str, key: str | None = None) -> str:
    """The path of an endpoint of a store: `/stores/STORE/ENDPOINT`, and `/KEY` where the endpoint is about one key."""
    path = f"/stores/{_escaped(store)}/{endpoint}"
    return path if key is None else f"{path}/{_escaped(key)}"


def relayed_path(store: str, rest: str) -> str | None:
    """The path at the other instance, from the decoded parts of the one that came; None for no endpoint of a store.

    Of the caller's text only the names of the store and of the key go on, as one segment each.
    """
    if found := _WITH_KEY.fullmatch(rest):
        return store_path(store, found[1], found[2])
    return store_path(store, rest) if _WITHOUT_KEY.fullmatch(rest) else None


def _escaped(text: str) -> str:
    """Percent-encoded as one segment of a path; dots too, or `..` would be taken for a step up."""
    return quote(text, safe="").replace(".", "%2E")
