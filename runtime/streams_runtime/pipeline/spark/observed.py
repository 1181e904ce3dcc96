"""Reading what a query has left in an observation."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Observation


def observed(observation: Observation, name: str) -> Any:
    """The metric of this name; blocks until the first query over the observed rows has ended.

    Observation.get fetches all of them, one call into the JVM after the other, and that is dozens.
    """
    assert observation._jo is not None
    return observation._jo.getAsJava().get(name)
