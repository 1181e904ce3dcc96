"""An aggregate of one's own, for smoothed.yaml: the delay of late, in which older flights count less and less."""

from typing import TypedDict

import pyarrow as pa

WEIGHT = 0.1  # of the newest flight; those before it have the rest


class State(TypedDict):
    flights: int
    delay: float


class Smoothed:
    """An exponential moving average, in the order of the records."""

    state_type = "STRUCT<flights: BIGINT, delay: DOUBLE>"

    def zero(self) -> State:
        return {"flights": 0, "delay": 0.0}

    def add(self, state: State, records: pa.RecordBatch) -> State:
        flights, delay = state["flights"], state["delay"]
        for minutes in records["minutes"].to_pylist():
            if minutes is not None:
                delay = minutes if flights == 0 else delay + WEIGHT * (minutes - delay)
                flights += 1
        return {"flights": flights, "delay": delay}
