"""Requests of a producer that may still be under way, though librdkafka has repeated them or given them up."""

from __future__ import annotations

import re
import time

from streams_runtime.kafka.client.librdkafka_errors import QuietLog, raise_pending

DEBUG = "broker"
"""The context of librdkafka's debug lines that has all failures of connections; a few lines a transaction."""

# "[thrd:TxnCoordinator]: TxnCoordinator/1: Disconnected … (after 6012ms in state UP) (_TRANSPORT)…"
_BROKER = re.compile(r"(?:\[thrd:[^\]]*\]: )?(\S+): ")
# "[thrd:kafka-2:9092/2]: kafka-2:9092/2: Decommissioning this broker (after 692ms in state INIT) (_DESTROY_BROKER)"
_LEFT = "Decommissioning this broker"
_STATE = re.compile(r"\(after \d+ms in state ([A-Z_]+)")
# In these a connection has not come so far as to carry requests of transactions.
_BEFORE_UP = frozenset(
    {
        "INIT",
        "DOWN",
        "TRY_CONNECT",
        "CONNECT",
        "SSL_HANDSHAKE",
        "AUTH_LEGACY",
        "AUTH_HANDSHAKE",
        "AUTH_REQ",
        "APIVERSION_QUERY",
    }
)


class Doubts(QuietLog):
    """A producer's logger that notes whether an answer was lost: with a connection, or by its time-out.

    librdkafka repeats such a request without a word, under the same epoch. The first one may still reach the broker, at
    any later time: an EndTxn would end the transaction that is open then, a TxnOffsetCommit would take its offsets
    back. Only another epoch, for which the producer is made anew, lets brokers tell them apart: KIP-890 gives each
    transaction its own one, and librdkafka does not have that (its issue 5423).

    Lines come out of the producer's `poll`, in the order in which librdkafka wrote them: that of a failure before the
    answer to the request that was repeated for it.
    """

    def __init__(self) -> None:
        self.any = False
        """Whether there are any; of a producer that has them, they stay."""
        self.left_at: float | None = None
        """When a broker left the cluster (time.monotonic); None: none has.

        Where it was the group's coordinator, librdkafka waits for it to come back and asks for no other one: offsets
        are not put into a transaction any more (its issue 5511).
        """

    def log(self, level: int, message: str, *args: object) -> None:
        """Called by librdkafka's binding, with facility, client and text."""
        raise_pending()
        if len(args) == 3:
            facility, text = str(args[0]), str(args[2])
            left = facility == "FAIL" and _LEFT in text and not _is_bootstrap(text)
            if left and self.left_at is None:
                self.left_at = time.monotonic()
            if left or _loses_answers(facility, text):
                self.any = True
        super().log(level, message, *args)


def _loses_answers(facility: str, text: str) -> bool:
    """Whether a line says that answers may have been lost; what it does not say clearly counts as such."""
    if facility == "REQTMOUT":
        return True
    if facility != "FAIL":
        return False
    state = _STATE.search(text)
    # By an address of `bootstrap.servers` only metadata is asked for; its connection ends once brokers have names.
    if _is_bootstrap(text):
        return False
    return state is None or state[1] not in _BEFORE_UP


def _is_bootstrap(text: str) -> bool:
    broker = _BROKER.match(text)
    return broker is not None and broker[1].endswith("/bootstrap")
