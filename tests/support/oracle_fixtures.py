"""A running driver of Kafka Streams for a module of differential tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from oracle_driver import KafkaStreams, kafka_streams


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaStreams]:
    with kafka_streams(tmp_path_factory.mktemp("driver")) as running:
        yield running
