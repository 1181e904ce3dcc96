"""State side of a join with a global table: what its store holds now for what each record looks up.

As in Kafka Streams nothing brings the table's changes and the stream's records into one order. A join asks the store
once for all of its records in a batch, so that these see one moment of it.
"""

from __future__ import annotations

import pyarrow as pa

from streams_runtime.pipeline.encode import encoded
from streams_runtime.pipeline.global_joins import LOOKUP
from streams_runtime.pipeline.joins import MATCH
from streams_runtime.pipeline.stage import ToJoin
from streams_runtime.state.global_store import GlobalStore
from streams_runtime.state.store import unstamp


def looked_up(join: ToJoin, store: GlobalStore) -> ToJoin:
    """The records that go on, each with what the store holds for it (MATCH); of an inner join those with a match.

    Raises ProcessorStateException: the store can't be read.
    """
    keys = encoded(join.rows[LOOKUP])
    wanted = sorted({key for key in keys if key is not None})
    stored = zip(wanted, store.get_stored(wanted) if wanted else [], strict=True)
    held = {key: unstamp(each)[1] for key, each in stored if each is not None}
    found = [None if key is None else held.get(key) for key in keys]
    rows = join.rows.drop_columns([LOOKUP]).append_column(MATCH, pa.array(found, pa.binary()))
    return ToJoin(join.node, rows if join.node.left else rows.filter(rows[MATCH].is_valid()))
