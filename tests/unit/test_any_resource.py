"""Whatever stands in a resource: reading, webhook and plan give an application or mistakes, never a failure.

`STREAMSAPP_TEST_RESOURCES=100000 STREAMSAPP_TEST_SEED=0` tries as many, from that seed on; a failure names its seed.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Mapping
from typing import Any

import orjson
import pytest
from example_counts import examples
from observations import as_kept, later, observation
from operator_cases import DEFAULTS
from resource_mutations import BASES, mutated

from streams_operator.plan import plan
from streams_operator.webhook import verdict
from streams_runtime.api import read_application

COUNT = int(os.environ.get("STREAMSAPP_TEST_RESOURCES") or 10 * examples(25))
SEED = int(os.environ.get("STREAMSAPP_TEST_SEED", "0"))
LONGEST = (
    20.0  # seconds of this process's own time: a hundred times what the slowest takes; what multiplies takes hours
)


@pytest.mark.parametrize("base", BASES)
def test_the_resources_that_are_changed_are_valid(base: dict[str, Any]) -> None:
    assert read_application(base).mistakes == ()


@pytest.mark.timeout(0 if COUNT > 1_000 else 300)
def test_every_resource_is_an_application_or_has_mistakes_with_their_places() -> None:
    accepted = 0
    for seed in range(SEED, SEED + COUNT):
        try:
            accepted += tried(seed)
        except Exception as error:
            error.add_note(f"the resource of the seed {seed}: resource_mutations.mutated({seed})")
            raise
    assert 0 < accepted < COUNT


def tried(seed: int) -> bool:
    """Whether the resource of a seed was accepted. Raises for a failure of this project's own."""
    given, began = mutated(seed), time.process_time()
    reading = read_application(given)
    assert (reading.application is None) == bool(reading.mistakes)
    assert all(mistake.path and mistake.found and mistake.remedy for mistake in reading.mistakes)
    document = given if isinstance(given, Mapping) else reading.document
    kept = as_kept(document)
    if isinstance(kept.get("metadata"), dict):
        answer = verdict({"apiVersion": "v1", "request": {"uid": "u", "operation": "CREATE", "object": kept}}, DEFAULTS)
        orjson.dumps(answer)
        seen = observation(random.Random(seed), kept)
        for each in (seen, later(seen)):
            orjson.dumps(written(plan(each)))
    assert time.process_time() - began < LONGEST
    return reading.application is not None


def written(todo: Any) -> list[Any]:
    """What goes to the API server."""
    return [todo.status, *todo.apply, *([each.message for each in todo.events])]
