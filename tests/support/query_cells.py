"""What a query meets: the six exceptions (KIP-216) by client state, state of the store, and kind of handle.

The tables are written out, not derived: `.` answered, S StreamsNotStarted, B StreamsRebalancing, M StateStoreMigrated,
N StateStoreNotAvailable, U UnknownStateStore, P InvalidStateStorePartition.
"""

from __future__ import annotations

from query_stage import Place

from streams_runtime.states import ClientState

PLACES = (
    Place.ACTIVE, Place.CLOSED, Place.REOPENED, Place.RESTORING, Place.ASSIGNED, Place.STANDBY, Place.ELSEWHERE,
)  # fmt: skip
STARTED = [state for state in ClientState if state is not ClientState.CREATED]

# What `store()` meets; a column for each of PLACES, which partition 1 is in. The others are active.
LOOKUP = {
    # (stale, partition asked for): state: row
    (False, 1): {"CREATED": "SSSSSSS", "REBALANCING": "BBBBBBB", "RUNNING": ".M.BBPP"},
    (False, None): {"CREATED": "SSSSSSS", "REBALANCING": "BBBBBBB", "RUNNING": ".M.BB.."},
    (True, 1): {"CREATED": "SSSSSSS", "REBALANCING": ".B..B.B", "RUNNING": ".M..B.P"},
    (True, None): {"CREATED": "SSSSSSS", "REBALANCING": ".B..B..", "RUNNING": ".M..B.."},
}
# What a method meets whose handle was made while partition 1 was active; also every method of an iterator from then.
HELD = {
    False: {"REBALANCING": "BBBBBBB", "RUNNING": ".MMMMMM"},
    True: {"REBALANCING": ".BB.B.B", "RUNNING": ".MM.M.M"},
}
# What a method meets whose handle was made while partition 1 was elsewhere; (stale, asks for a key of partition 1).
ARRIVING = {
    (False, True): {"REBALANCING": "BBBBBBB", "RUNNING": ".M.BBPP"},
    (False, False): {"REBALANCING": "BBBBBBB", "RUNNING": ".M.BB.."},
    (True, True): {"REBALANCING": ".B..B.B", "RUNNING": ".M..B.P"},
    (True, False): {"REBALANCING": ".B..B..", "RUNNING": ".M..B.."},
}
ENDING = dict.fromkeys(("PENDING_SHUTDOWN", "NOT_RUNNING", "PENDING_ERROR", "ERROR"), "NNNNNNN")
