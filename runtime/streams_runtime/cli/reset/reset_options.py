"""The options that say what a reset is to do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer

_OFFSET = re.compile(r"(?P<source>.+)/(?P<partition>\d+)=(?P<offset>\d+)")

To = Annotated[
    list[str],
    typer.Option(
        help="earliest, latest, a time such as 2026-01-31T08:00:00Z, or SOURCE/PARTITION=OFFSET, which may be given"
        " several times: partitions that are not named stay.",
        show_default=False,
    ),
]
Source = Annotated[list[str] | None, typer.Option(help="Only this source; may be given several times. Default: all.")]


class InternalTopics(StrEnum):
    """What becomes of internal topics and stores."""

    DELETE = "delete"
    KEEP = "keep"


def target_of(to: Sequence[str]) -> Any:
    """What stands in `spec.reset.to`. Raises BadParameter: values that do not go together."""
    offsets: dict[str, dict[str, int]] = {}
    for each in to:
        match = _OFFSET.fullmatch(each)
        if match is None and len(to) > 1:
            raise typer.BadParameter(f"{each!r} beside others: only SOURCE/PARTITION=OFFSET is given several times")
        if match is None:
            return each
        offsets.setdefault(match["source"], {})[str(int(match["partition"]))] = int(match["offset"])
    return {"offsets": offsets}
