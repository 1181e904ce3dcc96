"""The rules of kstatus as tests restate them, beside kstatus itself: `make test-kstatus` runs it, `make test` does not.

The program is built from kstatus' own module, which takes a minute the first time.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from kstatus_oracle import kstatus
from kube_binaries import program
from operator_situations import SITUATIONS, as_served

Object = dict[str, Any]


def of_kstatus(resources: Sequence[Object]) -> list[str]:
    """What the program says of each resource."""
    text = "\n".join(json.dumps(each) for each in resources)
    done = subprocess.run([program("kstatus")], input=text, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.splitlines()


def test_every_situation_is_what_kstatus_says_of_it():
    resources = [as_served(make()) for _, make in SITUATIONS]
    assert [kstatus(each) for each in resources] == of_kstatus(resources)


CONDITION = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["Ready", "Reconciling", "Stalled", "Progressing", "Degraded"]),
        "status": st.sampled_from(["True", "False", "Unknown"]),
        "reason": st.just("Reason"),
        "message": st.just("message"),
    }
)
STATUS = st.fixed_dictionaries(
    {}, optional={"observedGeneration": st.sampled_from([-1, 1, 2]), "conditions": st.lists(CONDITION, max_size=4)}
)
METADATA = st.fixed_dictionaries(
    {"name": st.just("orders"), "generation": st.sampled_from([1, 2])},
    optional={"deletionTimestamp": st.just("2027-01-15T08:00:00Z")},
)
RESOURCE = st.fixed_dictionaries(
    {
        "apiVersion": st.just("streamsoperator.io/v1alpha1"),
        "kind": st.just("StreamsApplication"),
        "metadata": METADATA,
    },
    optional={"status": STATUS},
)


@settings(max_examples=20)
@given(st.lists(RESOURCE, min_size=50, max_size=100))
def test_any_conditions_are_what_kstatus_says_of_them(resources: Sequence[Object]):
    assert [kstatus(each) for each in resources] == of_kstatus(resources)
