"""States that grow record by record, each from the one before it: what every one of them comes to, in few steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Numbers = npt.NDArray[np.int64]
Together = Callable[[pa.Table, pa.Table], pa.Table]
"""The states of two tables with as many rows, row by row together."""
BEGIN = -1
"""The link before the first one of a chain."""


@dataclass(slots=True)
class PrefixFold:
    """Links, each of which adds a row to the link before it; several may go on from one. By number, in their order.

    A link stands for the state of its row and all before it.
    """

    before: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)

    def add(self, before: int, row: int) -> int:
        """The number of a new link that adds a row to the one `before`, or BEGINs."""
        self.before.append(before)
        self.rows.append(row)
        return len(self.rows) - 1

    def rows_of(self, link: int) -> list[int]:
        """The rows that a link stands for, the first one first."""
        found = []
        while link != BEGIN:
            found.append(self.rows[link])
            link = self.before[link]
        return found[::-1]

    def paths(self) -> list[list[int]]:
        """The links from the first one of a chain to each that nothing goes on from."""
        followed = {*self.before}
        found = []
        for link in range(len(self.rows)):
            if link not in followed:
                path = [link]
                while self.before[path[-1]] != BEGIN:
                    path.append(self.before[path[-1]])
                found.append(path[::-1])
        return found

    def states(self, rows: pa.Table, together: Together) -> pa.Table:
        """The state of each link; rows of numbers below 0 are counted from the end of the table.

        In so many steps as the longest chain can be halved: after each a link stands for twice as many.
        """
        numbers, before = np.array(self.rows, np.int64), np.array(self.before, np.int64)
        states = rows.take(pa.array(np.where(numbers < 0, len(rows) + numbers, numbers)))
        for earlier, later in steps(before):
            states = replaced(states, later, together(states.take(earlier), states.take(later)))
        return states


def steps(before: Numbers) -> Iterator[tuple[Numbers, Numbers]]:
    """Which links are to be put together, earlier and later ones, in each step; `before` is that of each link.

    The later ones stand for twice as many after it. `before` may not be used any more.
    """
    while len(later := np.flatnonzero(before != BEGIN)):
        yield before[later], later
        before[later] = before[before[later]]


def replaced(rows: pa.Table, which: Numbers, new: pa.Table) -> pa.Table:
    """The rows, of which those numbered `which` are replaced by `new`."""
    source = np.arange(len(rows))
    source[which] = len(rows) + np.arange(len(which))
    return pa.concat_tables([rows, new.cast(rows.schema)]).take(pa.array(source))
