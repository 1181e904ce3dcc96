"""Values as JSON has them, for queries and tests."""

from __future__ import annotations

import base64
from datetime import date, datetime, time
from decimal import Decimal
from uuid import UUID


def plain(value: object) -> object:
    """Times as text, bytes in base64, decimals as text; the rest as it is."""
    found = value
    match value:
        case dict():
            found = {name: plain(each) for name, each in value.items()}
        case list():
            found = [plain(each) for each in value]
        case datetime():
            written = value.replace(tzinfo=None).isoformat(timespec="microseconds")
            found = f"{written}Z" if value.tzinfo is not None else written
        case date() | time():
            found = value.isoformat()
        case bytes():
            found = base64.b64encode(value).decode()
        case Decimal() | UUID():
            found = str(value)
    return found
