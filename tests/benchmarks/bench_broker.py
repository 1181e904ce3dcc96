"""The broker that both sides use: a given one, or an embedded one that ends with the benchmark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from streams_runtime.errors import BrokerNotAvailableException
from streams_runtime.kafka.broker.embedded_broker import EmbeddedBroker

ANSWER_TIMEOUT_S = 10.0
HEAP = "1g"
"""The embedded broker's Java heap; the log itself lives in the system's page cache."""


@contextmanager
def broker(given: str | None, folder: Path) -> Iterator[str]:
    """The address of the broker to use; an embedded one has its data in `folder`.

    Raises BrokerNotAvailableException when none answers at `given`, and what EmbeddedBroker raises.
    """
    if given is not None:
        _require_answer(given)
        yield given
        return
    with EmbeddedBroker(folder / "broker", heap=HEAP) as embedded:
        yield embedded.bootstrap_servers


def _require_answer(address: str) -> None:
    try:
        AdminClient({"bootstrap.servers": address, "log_level": 0}).list_topics(timeout=ANSWER_TIMEOUT_S)
    except KafkaException as error:
        raise BrokerNotAvailableException(
            f"no broker answered at {address} in {ANSWER_TIMEOUT_S:.0f} s: {error.args[0].str()}."
            " Start it, or leave --bootstrap-servers out for an embedded one"
        ) from None
