"""This process's own pod, read from an API server that a user names."""

from __future__ import annotations

import logging
import ssl
import threading
from collections.abc import Mapping
from typing import Any

import httpx
import orjson

from streams_runtime.errors import EnvironmentException
from streams_runtime.kubernetes.pod_status_api import ApiAccess, PodIdentity

_SECONDS = 5.0  # for an answer
_RETRY = 1.0  # seconds between two questions
_OURS = "write k8s://https://kubernetes.default.svc, which is that of the pod's own cluster"
_LOGGER = logging.getLogger("streams_runtime.kubernetes")


class OwnPod:
    """Called with the URL of an API server: the pod. Its account's token is shown to no server that is not verified by
    the authority of the pod's own cluster. `transport` is for tests.
    """

    def __init__(self, access: ApiAccess, pod: PodIdentity, transport: httpx.BaseTransport | None = None) -> None:
        self._access = access
        self._pod = pod
        self._transport = transport

    def __call__(self, server: str, closing: threading.Event) -> Mapping[str, Any] | None:
        """The pod as the server at the URL `server` has it; None when `closing` is set first.

        A server that is away, or does not let this pod ask, is asked again.

        Raises:
            EnvironmentException: it is the server of another cluster; the message says what to write.
        """
        logged = ""
        while not closing.is_set():
            try:
                answer = self._ask(server)
            except (httpx.HTTPError, OSError, ssl.SSLError) as error:
                if "CERTIFICATE_VERIFY_FAILED" in str(error):
                    raise self._foreign(server, f"its certificate is by another authority: {error}") from error
                reason = f"the API server at {server} does not answer ({str(error) or type(error).__name__})"
            else:
                if answer.is_success:
                    return self._judged(server, orjson.loads(answer.content))
                if answer.status_code == 404:
                    raise self._foreign(server, "it has no such pod")
                reason = _refusal(server, answer, self._pod)
            if reason != logged:
                _LOGGER.warning("no executors can be made yet: %s; asking again", reason)
                logged = reason
            closing.wait(_RETRY)
        return None

    def _ask(self, server: str) -> httpx.Response:
        token = self._access.token.read_text(encoding="ascii").strip()
        verify = ssl.create_default_context(cafile=str(self._access.authority))
        with httpx.Client(verify=verify, trust_env=False, timeout=_SECONDS, transport=self._transport) as http:
            path = f"/api/v1/namespaces/{self._pod.namespace}/pods/{self._pod.name}"
            return http.get(server + path, headers={"Authorization": f"Bearer {token}"})

    def _judged(self, server: str, pod: Mapping[str, Any]) -> Mapping[str, Any]:
        if self._pod.uid is not None and pod["metadata"]["uid"] != self._pod.uid:
            raise self._foreign(server, "it has another pod of that name")
        return pod

    def _foreign(self, server: str, reason: str) -> EnvironmentException:
        return EnvironmentException(
            f"spec.spark.master names the API server {server}, which is not that of the cluster of the pod {self._pod}:"
            f" {reason}; {_OURS}"
        )


def _refusal(server: str, answer: httpx.Response, pod: PodIdentity) -> str:
    said = " ".join(answer.text.split())[:200]
    remedy = ""
    if answer.status_code == 403:
        remedy = f". Let the pod's account get the pod {pod.name} and make others (the Role of the application)"
    return f"the API server at {server} answered {answer.status_code}: {said}{remedy}"
