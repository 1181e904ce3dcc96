"""What tests of a real broker share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from real_registry import RealRegistry

from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.client.client_properties import client_properties


@pytest.fixture
def admin(broker: Any) -> Iterator[Admin]:
    """An admin client of the run's broker."""
    found = Admin(client_properties(broker.bootstrap_servers, {}))
    yield found
    found.close()


@pytest.fixture
def registry(real_registry: RealRegistry) -> RealRegistry:
    """A real registry of schemas, of the test's own."""
    return real_registry
