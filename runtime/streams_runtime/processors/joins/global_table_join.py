"""State side of a join with a global table: what its store holds now for what each record looks up.

As in Kafka Streams nothing brings the table's changes and the stream's records into one order. A join asks the store
once for all of its records in a batch, so that these see one moment of it.
"""

from __future__ import annotations

import pyarrow as pa

from streams_runtime.batch.columns import LOOKUP, MATCH
from streams_runtime.batch.encode import encoded
from streams_runtime.batch.stage import StageInput
from streams_runtime.processors.contract import Applied, ApplyContext
from streams_runtime.state.global_store import GlobalStore
from streams_runtime.state.store import unstamp
from streams_runtime.topology.nodes.join_node import JoinNode


def apply(given: StageInput, context: ApplyContext) -> Applied:
    """The records that go on, each with what the global table's store holds for what it looks up."""
    node = given.node
    assert isinstance(node, JoinNode)
    return Applied(rows=looked_up(given, context.global_stores[node.table]))


def looked_up(join: StageInput, store: GlobalStore) -> pa.Table:
    """The records that go on, each with what the store holds for it (MATCH); of an inner join those with a match.

    Raises ProcessorStateException: the store can't be read.
    """
    keys = encoded(join.rows[LOOKUP])
    wanted = sorted({key for key in keys if key is not None})
    stored = zip(wanted, store.get_stored(wanted) if wanted else [], strict=True)
    held = {key: unstamp(each)[1] for key, each in stored if each is not None}
    found = [None if key is None else held.get(key) for key in keys]
    rows = join.rows.drop_columns([LOOKUP]).append_column(MATCH, pa.array(found, pa.binary()))
    assert isinstance(join.node, JoinNode)
    return rows if join.node.left else rows.filter(rows[MATCH].is_valid())
