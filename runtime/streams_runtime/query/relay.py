"""Where an instance passes queries on: both sides, the routes and the querying client, know this path."""

from __future__ import annotations

from typing import Final

RELAY: Final = "/relay"
"""Followed by an instance's host:port and the path there."""
