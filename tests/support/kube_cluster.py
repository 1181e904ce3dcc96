"""A cluster as tests use it: a kubeconfig, kubectl, and identities for tests of access rights."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from kube_binaries import program
from kube_reads import Reads

_KUBECTL_TIMEOUT = 60.0
_PREFIX = "system:serviceaccount:"


@dataclass(frozen=True)
class Cluster:
    """An API server that answers, and its administrator's token."""

    folder: Path
    """A folder for files of this cluster; it goes with the session."""
    endpoint: dict[str, Any]
    """The `cluster` part of a kubeconfig: server, certificate-authority or its data."""
    token: str
    has_controllers: bool
    """Whether a controller-manager runs beside the API server: namespaces end, owned objects are collected."""

    @property
    def url(self) -> str:
        """Address of the API server."""
        return str(self.endpoint["server"])

    @cached_property
    def _reads(self) -> Reads:
        return Reads(self.endpoint, self.token)

    @cached_property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self._kubeconfig("admin", self.token)

    def kubectl(
        self, *args: str, input: str | None = None, check: bool = True, timeout: float = _KUBECTL_TIMEOUT
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as administrator; `input` is its standard input, `timeout` in seconds.

        Raises AssertionError with kubectl's own words when it fails, unless `check` is False.
        """
        done = subprocess.run(
            [program("kubectl"), f"--kubeconfig={self.kubeconfig}", *args],
            input=input,
            stdin=subprocess.DEVNULL if input is None else None,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if check and done.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(args)} ended with {done.returncode}: {done.stderr.strip()}")
        return done

    def get(self, kind: str, name: str, namespace: str | None = None) -> Any:
        """An object; None when there is none. Raises AssertionError when the API server refuses, or does not answer."""
        return self._reads.one(kind, name, namespace)

    def find(self, kinds: str, namespace: str | None = None, selector: str | None = None) -> list[Any]:
        """The objects of these kinds (separated by commas) that a selector of labels takes, in a namespace or in all.
        Raises what `get` raises.
        """
        return self._reads.all(kinds, namespace, selector)

    def is_established(self, definition: str) -> bool:
        """Whether objects of a definition can be made. `kubectl wait` fails as long as it has no conditions at all."""
        found = self.get("crd", definition)
        conditions = (found["status"].get("conditions") if found else None) or []
        return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)

    def apply(self, *documents: dict[str, Any]) -> None:
        """Server-side apply objects, in the order given."""
        text = "\n".join(json.dumps(document) for document in documents)
        self.kubectl("apply", "--server-side", "--force-conflicts", "--filename=-", input=text)

    def kubeconfig_for(self, user: str) -> Path:
        """A kubeconfig of a service account, which is made when it is missing and has no rights of its own.

        `user` is `system:serviceaccount:NAMESPACE:NAME` or `NAMESPACE:NAME`; bind roles to it as to any
        service account. Raises ValueError for another form: tokens of plain users can't be made in every cluster.
        """
        namespace, separator, name = user.removeprefix(_PREFIX).partition(":")
        if not (namespace and separator and name) or ":" in name:
            raise ValueError(f"{user!r} is no service account. Give NAMESPACE:NAME")
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}
        self.apply(account)
        token = self.kubectl("create", "token", name, f"--namespace={namespace}", "--duration=6h").stdout.strip()
        return self._kubeconfig(f"{namespace}-{name}", token)

    def at(self, url: str, certificate: Path) -> Cluster:
        """The same cluster, reached at another address: that of a proxy."""
        folder = self.folder / f"at-{url.rpartition(':')[2]}"
        folder.mkdir(exist_ok=True)
        endpoint = {"server": url, "certificate-authority": str(certificate)}
        return Cluster(folder, endpoint, self.token, self.has_controllers)

    def _kubeconfig(self, name: str, token: str) -> Path:
        file = self.folder / f"{name}.kubeconfig"
        file.touch(mode=0o600)
        # JSON is YAML, and kubectl reads it.
        file.write_text(json.dumps(kubeconfig_document(self.endpoint, token), indent=1))
        return file


def kubeconfig_document(endpoint: dict[str, Any], token: str) -> dict[str, Any]:
    """A kubeconfig with one context."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "tests",
        "clusters": [{"name": "tests", "cluster": endpoint}],
        "users": [{"name": "tests", "user": {"token": token}}],
        "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": "tests"}}],
    }
