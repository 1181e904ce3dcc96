"""Pytest plugin: test drivers that are closed after the test, and a registry of schemas.

Every process of a run loads it. What the fixtures are made from takes seconds to load: the first test that asks for one
does that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from schema_registry import Registry
    from topology_drivers import Made

    from streams_runtime.testing import TopologyTestDriver


@pytest.fixture
def made() -> Iterator[Made]:
    """Makes drivers, which are closed after the test."""
    from streams_runtime.testing import TopologyTestDriver

    drivers = []

    def make(given: Any, **more: Any) -> TopologyTestDriver:
        drivers.append(TopologyTestDriver(given, **more))
        return drivers[-1]

    yield make
    for driver in drivers:
        driver.close()


@pytest.fixture
def registry() -> Iterator[Registry]:
    """A registry of schemas, of the test's own."""
    from schema_registry import schema_registry

    with schema_registry() as running:
        yield running
