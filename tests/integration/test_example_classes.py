"""The example with a class in Python, in the test driver."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from streams_runtime.testing import TopologyTestDriver

pytestmark = pytest.mark.integration

SMOOTHED = Path(__file__).parents[2] / "examples" / "smoothed.yaml"


def smoothed(*batches: Sequence[float | None]) -> dict[str, float]:
    with TopologyTestDriver(SMOOTHED) as driver:
        for batch in batches:
            driver.input_topic("flights").pipe_all([("UA", {"dep_delay": delay}) for delay in batch])
        assert driver.store("smoothed").get("UA")["departures"]["flights"] == 3
        return driver.output_topic("smoothed-delays").read_latest_by_key()


@pytest.mark.usefixtures("spark")
def test_the_newest_flights_count_most() -> None:
    assert smoothed([10.0, None, 20.0, 0.0]) == {"UA": {"minutes": 9.9}}
    assert smoothed([10.0], [None, 20.0], [0.0]) == {"UA": {"minutes": 9.9}}
