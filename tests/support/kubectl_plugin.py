"""`kubectl streamsapp` as kubectl finds and starts it: by its name on PATH."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from kube_binaries import program
from kube_cluster import Cluster


class Plugin:
    """The plugin in one namespace of a cluster."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._options = (f"--kubeconfig={cluster.kubeconfig}", f"--namespace={namespace}")
        kubectl = program("kubectl")
        folders = (str(Path(sys.executable).parent), str(kubectl.parent), os.environ.get("PATH", os.defpath))
        self._environment = {**os.environ, "PATH": os.pathsep.join(folders), "COLUMNS": "40"}
        self._kubectl = str(kubectl)

    def run(self, verb: str, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        """Run a verb; `code` is how it has to end."""
        command = [self._kubectl, "streamsapp", verb, *arguments, *self._options]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, timeout=700, check=False)
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return done

    def document(self, verb: str, *arguments: str) -> Any:
        """The one object that a verb prints as JSON."""
        return json.loads(self.run(verb, *arguments, "--output=json").stdout)
