"""Aggregates of several parts each: rows of stored states and of a batch's, put together in few steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

import numpy as np
import pyarrow as pa

Together = Callable[[pa.Table, pa.Table], pa.Table]
"""The states of two tables with as many rows, row by row together."""


def put_together(rows: pa.Table, parts: Sequence[Sequence[int]], together: Together) -> pa.Table:
    """One state for each of `parts`, which are numbers of `rows`, at least one each: neighbours first, in their order.

    Raises what `together` raises.
    """
    owners = np.repeat(np.arange(len(parts)), [len(each) for each in parts])
    contents = rows.take(pa.array(chain.from_iterable(parts), pa.int64(), size=len(owners)))
    while len(owners) > len(parts):
        places = np.arange(len(owners)) - np.searchsorted(owners, owners)  # of each among its owner's
        firsts = np.flatnonzero(places % 2 == 0)
        followed = np.append(places, 0)[firsts + 1] % 2 == 1
        pairs, alone = firsts[followed], firsts[~followed]
        merged = together(contents.take(pairs), contents.take(pairs + 1)).cast(contents.schema)
        order = np.argsort(np.concatenate([pairs, alone]), kind="stable")
        contents, owners = pa.concat_tables([merged, contents.take(alone)]).take(order), owners[firsts]
    return contents
