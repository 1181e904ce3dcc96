"""A good tenant beside six bad ones at once: its changes are carried out. `make bench-tenants` says how soon."""

from __future__ import annotations

from pathlib import Path

import pytest
from bad_tenants import KINDS, bad_tenants, make_homes
from kube_leftovers import clear
from operator_kit import operator
from operator_stage import Stage
from waiting import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("crd"), pytest.mark.timeout(400)]

CHANGES = 5


def test_six_bad_tenants_keep_nobody_s_changes_from_being_carried_out(stage: Stage, tmp_path: Path):
    prefix = f"t{stage.namespace[-8:]}-"
    homes = make_homes(stage.cluster, prefix, *KINDS)
    stage.apply(replicas=2)
    with operator(stage.cluster, ",".join([stage.namespace, *homes]), tmp_path, lease_namespace=stage.namespace):
        stage.reaches("RUNNING", "2/2")
        with bad_tenants(stage.cluster, prefix, stage.bootstrap, *KINDS, many=40):
            for number in range(CHANGES):
                replicas = 1 + number % 2
                stage.apply(replicas=replicas)
                eventually(lambda wanted=replicas: len(stage.pods()) == wanted, f"there are {replicas} pods")
            stage.reaches("RUNNING", "1/1")
            dead = homes[0]

            def told() -> bool:
                found = stage.cluster.get("streamsapp", "app-0", namespace=dead)["status"]["conditions"]
                return "BrokerNotAvailable" in {each["reason"] for each in found}

            eventually(told, "a bad tenant is told what is wrong")
    for home in homes:
        clear(stage.cluster, home)
