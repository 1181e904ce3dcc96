"""The stores and the instances that queries are asked of, made once a file and put back before each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from query_fakes import Pair
from query_stage import QueryStage, query_stage


@pytest.fixture(scope="module")
def shared_stage() -> Iterator[QueryStage]:
    with query_stage() as made:
        yield made


@pytest.fixture
def stage(shared_stage: QueryStage) -> QueryStage:
    shared_stage.reset()
    return shared_stage


@pytest.fixture(scope="module")
def servers() -> Iterator[Pair]:
    pair = Pair()
    yield pair
    pair.stop()


@pytest.fixture
def pair(servers: Pair) -> Pair:
    servers.reset()
    return servers
