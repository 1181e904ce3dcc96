"""Topologies in Python under the test driver: what they do is what the same topology in YAML does."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from topology_drivers import Made

from streams_runtime.builder import StreamsBuilder, json
from streams_runtime.errors import InvalidApplicationException
from streams_runtime.testing import START, Record, TopologyTestDriver

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]

EXAMPLES = Path(__file__).parents[2] / "examples"


def flown(driver: TopologyTestDriver) -> Mapping[str, Any]:
    """What comes of a few flights in every topic and store."""
    driver.input_topic("planes").pipe("N1", {"manufacturer": "Boeing", "seats": 100})
    driver.input_topic("airlines").pipe_all([("UA", {"name": "United"}), ("DL", {"name": "Delta"})])
    flights = driver.input_topic("flights-by-plane")
    flown = [("N1", "UA", 1), ("N2", "UA", 2), ("N1", "DL", 3), ("N1", "XX", 4)]
    flights.pipe_all([(plane, {"carrier": by, "flight": number, "distance": 10}) for plane, by, number in flown])
    outputs = {name: driver.output_topic(name).read_all() for name in ("flights-enriched", "airline-totals")}
    return {**outputs, "store": {each.key: each.value for each in driver.store("by-airline").all()}}


def test_the_example_in_python_gives_what_the_example_in_yaml_gives(made: Made) -> None:
    declared = made(EXAMPLES / "flights-enriched.yaml")
    python = made(EXAMPLES / "python" / "flights-enriched.yaml")
    assert python.topology == declared.topology
    found = flown(python)
    assert found == flown(declared)
    assert found["store"]["UA"] == {"flights": 2, "seats": 100, "known": 1, "distance": 20}
    assert len(found["flights-enriched"]) == 3


def test_a_builder_is_driven_as_it_is(made: Made) -> None:
    builder = StreamsBuilder()
    orders = builder.stream("orders", key="string", value=json("amount BIGINT"))
    orders.filter("amount > 1").group_by_key().count(store="counts").to("counts")
    driver = made(builder)
    driver.input_topic("orders").pipe_all([("a", {"amount": 1}), ("a", {"amount": 2})])
    assert driver.output_topic("counts").read_all() == [Record("a", {"count": 1}, START)]


def test_what_only_sparks_analysis_refuses_is_told_with_the_call(made: Made) -> None:
    builder = StreamsBuilder()
    line = inspect.currentframe().f_lineno  # type: ignore[union-attr]
    builder.stream("orders", value=json("tags ARRAY<STRING>")).select(a="from_json(tags, 'x INT')", name="less").to(
        "out"
    )
    with pytest.raises(InvalidApplicationException) as refused:
        made(builder)
    (mistake,) = refused.value.mistakes
    assert mistake.path == f"test_builder_driver.py:{line + 1} select('less').select.a"
