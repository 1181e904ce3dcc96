"""A running driver of Kafka Streams for differential tests: one JVM serves all modules of a worker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from oracle_driver import KafkaStreams, kafka_streams


@pytest.fixture(scope="session")
def running_driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], KafkaStreams]]:
    """Gives the driver that runs, or another one once it has ended: a case that ends it spoils its own module alone."""
    with ExitStack() as all_of_them:
        current: list[KafkaStreams] = []

        def driver() -> KafkaStreams:
            if not current or not current[-1].runs:
                current.append(all_of_them.enter_context(kafka_streams(tmp_path_factory.mktemp("driver"))))
            return current[-1]

        yield driver


@pytest.fixture(scope="module")
def driver(running_driver: Callable[[], KafkaStreams]) -> KafkaStreams:
    return running_driver()
