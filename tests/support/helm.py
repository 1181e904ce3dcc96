"""Helm, as tests call it, and the project's chart."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from kube_binaries import program
from kube_cluster import Cluster

CHART = Path(__file__).parents[2] / "charts" / "streams-operator"
_TIMEOUT = 300.0


def helm(*arguments: str, cluster: Cluster | None = None, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run Helm with no settings but its arguments'. Raises AssertionError with its own words when it fails."""
    # Helm and its Kubernetes client leave caches in HOME; without a cluster they have nothing to keep.
    kubeconfig, home = (cluster.kubeconfig, cluster.folder) if cluster else (Path(os.devnull), Path("/nonexistent"))
    done = subprocess.run(
        [program("helm"), *arguments],
        env={"PATH": os.environ["PATH"], "HOME": str(home), "KUBECONFIG": str(kubeconfig)},
        capture_output=True,
        text=True,
        timeout=_TIMEOUT,
        check=False,
    )
    if check and done.returncode != 0:
        raise AssertionError(f"helm {' '.join(arguments)} ended with {done.returncode}: {done.stderr.strip()}")
    return done
