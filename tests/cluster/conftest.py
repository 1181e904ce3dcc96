"""What the tests of the operator share: one application on its stage, and the operator that looks after it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kube_cluster import Cluster
from operator_kit import OperatorProcess, operator
from operator_stage import Stage, open_stage


@pytest.fixture
def stage(api_server: Cluster, kube_namespace: str, broker) -> Iterator[Stage]:
    with open_stage(api_server, kube_namespace, broker.bootstrap_servers) as stage:
        yield stage


@pytest.fixture
def running(stage: Stage, tmp_path: Path) -> Iterator[OperatorProcess]:
    """The operator of the stage's namespace."""
    with operator(stage.cluster, stage.namespace, tmp_path) as process:
        yield process
