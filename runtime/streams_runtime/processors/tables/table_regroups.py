"""A table grouped by another key: each change of a row as what leaves its old group and what comes to its new one.

As Kafka Streams' KTableRepartitionMap does: a row that stays in its group is taken out and put in by one record
(KIP-904), else the old group has a record first and then the new one. Both groups are worked out of what the table held
before and after the change, at its place among the changes; nothing is read again where the groups are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from streams_runtime.batch.encode import Bytes, encoded, headers_of
from streams_runtime.batch.snapshot_columns import group_of, grouped
from streams_runtime.batch.stage import Emission
from streams_runtime.processors.tables.table_snapshots import Event
from streams_runtime.topology.nodes.regroup_node import RegroupNode


def regrouped(
    node: RegroupNode, number: int, changes: Sequence[Event], times: Sequence[int], answer: pa.Table
) -> Emission:
    """The records of the node's repartition topic that the changes come to, which are passed on at these times (ms).

    `number` is the node's in its part, `answer` what tables have in each snapshot.
    """
    groups, taken = encoded(answer[group_of(number)]), encoded(answer[grouped(number)])
    keys: Bytes = []
    values: Bytes = []
    when, headers = [], []
    # As if one task had read all partitions: whoever reads the topic knows one stream time of it. Sorting is stable.
    for change, time in sorted(zip(changes, times, strict=True), key=lambda each: each[0].ordinal[1]):
        for group, value in _messages(change, groups, taken):
            keys.append(group)
            values.append(value)
            when.append(time)
            headers.append(change.headers)
    return Emission(node.topic, True, keys, values, when, headers_of(headers) if any(headers) else None)


def _messages(change: Event, groups: Bytes, taken: Bytes) -> Iterator[tuple[bytes, bytes]]:
    """Each group that the row leaves or comes to, and what it is told; a row that is not there has no group."""
    old, new = groups[change.before], groups[change.after]
    if old is not None and old == new:
        yield old, _value(taken[change.before], taken[change.after])
        return
    if old is not None:
        yield old, _value(taken[change.before], None)
    if new is not None:
        yield new, _value(None, taken[change.after])


def _value(old: bytes | None, new: bytes | None) -> bytes:
    return b'{"old":' + (old or b"null") + b',"new":' + (new or b"null") + b"}"
