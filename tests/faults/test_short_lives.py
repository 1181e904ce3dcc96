"""A short life of each kind; `make faults SEED=… HOURS=…` lives longer ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from lives import Life

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

SEED = 20


@pytest.mark.parametrize("once", [True, False], ids=["exactly-once", "at-least-once"])
def test_nothing_is_lost_doubled_or_torn_whatever_becomes_of_requests_and_processes(tmp_path: Path, once: bool) -> None:
    with Life(tmp_path, SEED, once) as life:
        for number in range(5 if once else 2):
            print(number, life.live(SEED + number))


def test_a_generated_topology_gives_what_the_model_says_whatever_becomes_of_requests_and_processes(
    tmp_path: Path,
) -> None:
    with Life(tmp_path, SEED, generated=True) as life:
        print(life)
        for number in range(2):
            print(number, life.live(SEED + number))
