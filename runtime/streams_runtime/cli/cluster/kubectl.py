"""kubectl as a library: it knows kubeconfigs, contexts and every way to log in."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from streams_runtime.api import GROUP
from streams_runtime.errors import EnvironmentException, StreamsException

RESOURCE = f"streamsapplications.{GROUP}"
_SECONDS = 60.0  # for one call


class KubectlException(StreamsException):
    """kubectl has refused or failed; the message is its own. Do what it says."""


@dataclass(frozen=True, slots=True)
class Kubectl:
    """One cluster and namespace, as the options of kubectl name them; None: as the kubeconfig says."""

    namespace: str | None = None
    context: str | None = None
    kubeconfig: str | None = None
    program: str = "kubectl"

    def application(self, name: str) -> dict[str, Any]:
        """The resource.

        Raises:
            KubectlException: there is none, or this user may not see it.
            EnvironmentException: there is no kubectl on PATH.
        """
        return self._json("get", RESOURCE, name)

    def applications(self, everywhere: bool) -> list[dict[str, Any]]:
        """All resources of the namespace, or of all namespaces. Raises what `application` raises."""
        return list(self._json("get", RESOURCE, *(("--all-namespaces",) if everywhere else ()))["items"])

    def warnings(self, name: str, namespace: str) -> list[dict[str, Any]]:
        """The events of type Warning about the resource `name` of `namespace`. Raises what `application` raises."""
        chosen = f"involvedObject.kind=StreamsApplication,involvedObject.name={name},type=Warning"
        return list(self._json("get", "events", f"--namespace={namespace}", f"--field-selector={chosen}")["items"])

    def patch(self, name: str, change: Mapping[str, Any]) -> dict[str, Any]:
        """Merge `change` into the resource, and return what it is then. Raises what `application` raises."""
        return self._json("patch", RESOURCE, name, "--type=merge", f"--patch={orjson.dumps(change).decode()}")

    def ask_pod(self, namespace: str, pod: str, scheme: str, port: int, path: str, seconds: float) -> Any:
        """What a pod answers by HTTP, through the API server. Raises what `application` raises."""
        address = f"/api/v1/namespaces/{namespace}/pods/{scheme}:{pod}:{port}/proxy{path}"
        return orjson.loads(self._run("get", "--raw", address, seconds=seconds))

    def _json(self, *arguments: str) -> dict[str, Any]:
        found: dict[str, Any] = orjson.loads(self._run(*arguments, "--output=json"))
        return found

    def _run(self, *arguments: str, seconds: float = _SECONDS) -> bytes:
        command = [self.program, *self._options(), *arguments]
        try:
            done = subprocess.run(command, capture_output=True, check=False, timeout=seconds)
        except FileNotFoundError as error:
            raise EnvironmentException("there is no kubectl on PATH. Install it, then try again") from error
        except subprocess.TimeoutExpired as error:
            raise KubectlException(f"no answer within {seconds:g} s to kubectl {' '.join(arguments)}") from error
        if done.returncode:
            raise KubectlException(done.stderr.decode(errors="replace").strip() or f"kubectl ended {done.returncode}")
        return done.stdout

    def _options(self) -> Sequence[str]:
        given = (("namespace", self.namespace), ("context", self.context), ("kubeconfig", self.kubeconfig))
        return [f"--{name}={value}" for name, value in given if value is not None]
