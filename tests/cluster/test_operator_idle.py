"""An operator with nothing to do writes nothing, however often it looks."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from kube_faults import FaultyApi
from operator_kit import OperatorProcess, operator, resource
from operator_stage import Stage
from waiting import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("crd")]

LONG = "STREAMSAPP_TEST_IDLE"
"""Set: fifty applications for two minutes, as promised; otherwise five for as long as a look at settled ones takes."""
_APPLICATIONS, _SECONDS = (50, 120.0) if os.environ.get(LONG) else (5, 70.0)


@pytest.mark.timeout(900)
def test_an_operator_with_nothing_to_do_writes_nothing(stage: Stage, faulty_api: FaultyApi, tmp_path: Path):
    names = [f"app-{chr(97 + number // 26)}{chr(97 + number % 26)}" for number in range(_APPLICATIONS)]
    with operator(faulty_api.cluster, stage.namespace, tmp_path) as process:
        for name in names:
            stage.cluster.apply(resource(stage.namespace, stage.bootstrap, name))

        def all_run() -> bool:
            found = stage.cluster.find("streamsapps", stage.namespace)
            return len(found) == len(names) and all(each.get("status", {}).get("state") == "RUNNING" for each in found)

        eventually(all_run, "all applications run", 300)
        _settle(faulty_api)
        before = _rounds(process)
        faulty_api.forget()
        end = time.monotonic() + _SECONDS
        eventually(lambda: time.monotonic() > end or faulty_api.writes(), "time passes", _SECONDS + 30)
        assert [(each.verb, each.path) for each in faulty_api.writes()] == []
        # It was awake: it looked at each application, and renewed its lease.
        eventually(lambda: _rounds(process) >= before + len(names), "a look at each application")
        assert faulty_api.seen("put", "/leases/")


def _settle(faulty_api: FaultyApi) -> None:
    """What was begun comes to its end."""
    counts: list[int] = []

    def settled() -> bool:
        counts.append(len(faulty_api.writes()))
        time.sleep(0.5)
        return len(counts) > 10 and len(set(counts[-10:])) == 1

    eventually(settled, "the last write of the creation", 120)


def _rounds(process: OperatorProcess) -> int:
    line = next(line for line in process.metrics().splitlines() if line.startswith("streams_operator_reconciles_total"))
    return int(float(line.split()[-1]))
