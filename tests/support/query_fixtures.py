"""The stores and the instances that queries are asked of, made once a file and put back before each test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    # The fixtures load them: every process of a run loads this plugin, and few tests ask queries.
    from query_fakes import Pair
    from query_stage import QueryStage


@pytest.fixture(scope="module")
def shared_stage() -> Iterator[QueryStage]:
    from query_stage import query_stage

    with query_stage() as made:
        yield made


@pytest.fixture
def stage(shared_stage: QueryStage) -> QueryStage:
    shared_stage.reset()
    return shared_stage


@pytest.fixture(scope="module")
def servers() -> Iterator[Pair]:
    from query_fakes import Pair

    pair = Pair()
    yield pair
    pair.stop()


@pytest.fixture
def pair(servers: Pair) -> Pair:
    servers.reset()
    return servers
