"""Which names are those of instances of one application."""

from __future__ import annotations

import re
from typing import Final

_ORDINAL: Final = re.compile(r"0|[1-9][0-9]{0,8}")


def is_sibling(own: str, other: str) -> bool:
    """Whether `other` is NAME-i with some ordinal i, where `own` is NAME-j."""
    name, _, _ = own.rpartition("-")
    others_name, _, ordinal = other.rpartition("-")
    return bool(name) and name == others_name and _ORDINAL.fullmatch(ordinal) is not None
