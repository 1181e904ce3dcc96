"""What the conditions of every situation say, and that tools can read them in one way only.

operator/CONDITIONS.md has the table; this test makes it from the plan. After a change of the plan:
`python tests/unit/test_operator_conditions_table.py > operator/CONDITIONS.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import argo_lua
import pytest
from kstatus_oracle import kstatus
from operator_cases import condition
from operator_situations import SITUATIONS, as_served

from streams_operator.model import Observed

PAGE = Path(__file__).parents[2] / "operator" / "CONDITIONS.md"
CONDITIONS = ("Ready", "InternalTopicsReady", "Progressing", "Degraded", "Suspended", "Paused")
FOR_KSTATUS = {"Reconciling", "Stalled"}


def page() -> str:
    """The whole page."""
    rows = []
    for situation, make in SITUATIONS:
        resource = as_served(make())
        status = resource["status"]
        said = [_cell(status, name) for name in CONDITIONS]
        tools = [argo_lua.health(resource)[0], kstatus(resource)]
        rows.append(f"| {' | '.join([situation, status['state'], *said, *tools])} |")
    head = ["| situation | state |", *(f" {name} |" for name in CONDITIONS), " Argo CD | kstatus |"]
    return f"{_INTRODUCTION}\n{''.join(head)}\n{'|---' * (4 + len(CONDITIONS))}|\n" + "\n".join(rows) + "\n"


_INTRODUCTION = """# What the conditions say

`kubectl wait --for=condition=Ready streamsapp/NAME` returns when every instance that the spec asks for serves; of an
application that is suspended, or has no replicas, that is none. The conditions are about `status.observedGeneration`;
where that is less than `metadata.generation` the operator has not seen the change.

| condition | `True` means |
|---|---|
| `Ready` | every instance that the spec asks for is RUNNING and restored, and its pod is ready and answers |
| `InternalTopicsReady` | all internal topics are there and fit |
| `Progressing` | the operator is at something that needs nobody |
| `Degraded` | something has failed, or takes longer than `spec.progressDeadline`: the message says what to do |
| `Suspended` | all pods are closed because `spec.suspend` says so |
| `Paused` | no instance processes records because `spec.paused` says so; not there where it never did |
| `Reconciling` | the same as `Progressing`, for tools that read kstatus; there only while it is `True` |
| `Stalled` | the same as `Degraded`, while nothing is in progress; there only while it is `True` |

The column Argo CD is what [its health script](argocd/health.lua) says, the column kstatus what Flux and Helm wait by
([Argo CD and Flux](guide/gitops.md)).

`tests/unit/test_operator_conditions_table.py` makes this table from the operator's own decisions.
"""


def _cell(status: Mapping[str, Any], name: str) -> str:
    found = next((each for each in status["conditions"] if each["type"] == name), None)
    return "" if found is None else f"{found['status']} {found['reason']}"


def test_the_page_is_what_the_plan_says() -> None:
    assert PAGE.read_text() == page()


@pytest.mark.parametrize(("situation", "make"), SITUATIONS, ids=[situation for situation, _ in SITUATIONS])
def test_a_situation_has_one_reading(situation: str, make: Callable[[], Observed]) -> None:
    resource = as_served(make())
    status = resource["status"]
    types = [each["type"] for each in status["conditions"]]
    ready = condition(status, "Ready")
    if ready["status"] == "True" and ready["reason"] in ("Suspended", "NoReplicas"):
        assert status["replicas"] == status["readyReplicas"] == 0
    elif ready["status"] == "True":
        assert status["state"] == "RUNNING"
        assert status["readyReplicas"] >= int(status["ready"].partition("/")[2])
    assert len(types) == len(set(types))
    assert set(types) - {"Paused", *FOR_KSTATUS} == set(CONDITIONS) - {"Paused"}
    assert len(FOR_KSTATUS & set(types)) <= 1, "at most one of them, or their order decides"
    for held in status["conditions"]:
        assert held["reason"]
        assert held["message"]
        assert held["observedGeneration"] == 1


if __name__ == "__main__":
    print(page(), end="")
