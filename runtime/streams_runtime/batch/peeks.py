"""What a peek observes of a batch."""

from __future__ import annotations

from dataclasses import dataclass

from streams_runtime.topology.nodes.stream_nodes import PeekNode


@dataclass(frozen=True, slots=True)
class Line:
    """A text to log, at most LONGEST_TEXT characters of it, and the record that it is of."""

    topic: str | None
    partition: int
    offset: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Seen:
    """What a peek has seen of a batch: how many records, the sum of their values, the first lines, and how many there
    would be."""

    node: PeekNode
    records: int
    total: float
    lines: tuple[Line, ...]
    texts: int
