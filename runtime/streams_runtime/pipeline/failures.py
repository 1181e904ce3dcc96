"""Why a Spark query failed, as this project's exceptions."""

from __future__ import annotations

import re

from pyspark.errors import PySparkException

from streams_runtime.errors import BrokerNotAvailableException, StreamsException

# A class's name anywhere in the causes: Spark wraps the connector's exceptions several times over.
_AWAY = re.compile(
    r"org\.apache\.kafka\.common\.errors\.(Timeout|Disconnect|Network|NotLeaderOrFollower|LeaderNotAvailable|"
    r"BrokerNotAvailable|CoordinatorNotAvailable)\w*"
    r"|java\.util\.concurrent\.TimeoutException: Cannot fetch record"
)
_CONDITION = re.compile(r"\[[A-Z][A-Z_.0-9]+\][^\n]*")


def is_spark_failure(error: BaseException) -> bool:
    """Whether Spark, or the bridge to its JVM, raised this."""
    return isinstance(error, PySparkException) or type(error).__module__.startswith("py4j")


def translated(error: BaseException, address: str) -> StreamsException:
    """The exception of this project for a failed query; raise it `from` the original."""
    text = str(error)
    if found := _AWAY.search(text):
        return BrokerNotAvailableException(
            f"Spark got no answer from the broker at {address} ({found[0].rpartition('.')[2]}). The batch is read again"
        )
    condition = _CONDITION.search(text)
    reason = condition[0] if condition else text.strip().splitlines()[0]
    return StreamsException(
        f"a step failed in Spark: {reason.rstrip('. ')}. Nothing of the batch was written; correct the expression"
        " (try_… functions give NULL instead of failing) or the data"
    )
