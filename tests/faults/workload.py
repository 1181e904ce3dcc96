"""What a life runs: an application, its records, and what has to be true of its topics and stores."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from instances import Instance

NAME = "life"
"""The applicationId; client ids begin with it."""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that goes wrong, in words that a reader of a failed history understands."""

    what: str
    do: Callable[[], None]


@dataclass(frozen=True)
class History:
    """What a workload has for one history: its dice, about how many records, and what goes wrong in their midst."""

    number: int
    """Which history of the life it is, counted by seeds from the life's first one."""
    dice: random.Random
    records: int
    steps: Sequence[Step]
    instances: Sequence[Instance]
    wait_for_peace: Callable[[], None]
    """No more faults; returns once everything that was sent is processed."""


class Workload(Protocol):
    """An application with its records and its checker."""

    title: str
    """What its topology is, in a line; str() gives the whole."""

    def write(self, file: Path) -> None:
        """Write the resource's file."""

    def open(self, address: str) -> AbstractContextManager[None]:
        """Make the topics of the user and begin to read what the application is to write."""

    @property
    def inputs(self) -> Mapping[str, int]:
        """Topics whose offsets the application's group commits, and how many partitions each has."""

    def is_ready(self, instances: Sequence[Instance]) -> bool:
        """Whether what no committed offset tells of is processed too."""

    def live(self, history: History) -> None:
        """Send records amid the steps, wait for peace, and check. Raises AssertionError where a claim fails."""
