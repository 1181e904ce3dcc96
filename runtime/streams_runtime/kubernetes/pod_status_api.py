"""The one request of a pod to the API server: a patch of its own status.

httpx sends it. The kubernetes package would bring several hundred modules and its own idea of retries into the image
of the runtime, for one PATCH.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import httpx
import orjson

from streams_runtime.errors import ConfigException

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_STRATEGIC_MERGE = "application/strategic-merge-patch+json"


@dataclass(frozen=True, slots=True)
class ApiAccess:
    """Where the API server is, and with what it is talked to; the files are read anew, since they rotate."""

    url: str
    token: Path
    authority: Path


def in_cluster(environment: Mapping[str, str], folder: Path = SERVICE_ACCOUNT) -> ApiAccess:
    """The access that Kubernetes gives every pod.

    Raises:
        ConfigException: this process is in no pod.
    """
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise ConfigException(
            "KUBERNETES_SERVICE_HOST is not set, so this is no pod of a cluster. Outside of one:"
            " streamsapp run FILE, or python -m streams_runtime.cli.process.instance"
        )
    return ApiAccess(f"https://{f'[{host}]' if ':' in host else host}:{port}", folder / "token", folder / "ca.crt")


@dataclass(frozen=True, slots=True)
class PodIdentity:
    """The pod that a process runs in. With its `uid`, a successor of the same name is never written to."""

    name: str
    namespace: str
    uid: str | None = None

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


_NO_ANSWER = (httpx.HTTPError, OSError, ssl.SSLError)


class Answer(Enum):
    """What the API server made of a patch."""

    ACCEPTED = "accepted"
    LATER = "later"  # away, overloaded or in conflict: the same again after a while
    REFUSED = "refused"  # it will not take it until somebody has done what `Result.text` says


@dataclass(frozen=True, slots=True)
class Result:
    """An answer, with what was said and, in seconds, how long to wait at least."""

    answer: Answer
    text: str = ""
    retry_after: float = 0.0


class PodStatusApi:
    """Patches the status of one pod. Used by one thread at a time; never raises for what an API server may do."""

    def __init__(self, access: ApiAccess, pod: PodIdentity) -> None:
        self._access = access
        self._pod = pod
        self._http: httpx.Client | None = None

    @property
    def access(self) -> ApiAccess:
        """Where the API server is, and with what it is talked to."""
        return self._access

    @property
    def pod(self) -> PodIdentity:
        """The pod that it is about."""
        return self._pod

    def patch(self, conditions: Sequence[Mapping[str, Any]], timeout: float) -> Result:
        """Merge the conditions by type into the pod's; each step of the request may take `timeout` seconds."""
        try:
            answer = self._patched({"status": {"conditions": list(conditions)}}, timeout)
        except _NO_ANSWER as error:
            self.close()  # the next try reads the authority's certificate anew
            return Result(Answer.LATER, f"{self._access.url} did not answer: {_reason(error)}")
        return result_of(answer.status_code, _message(answer), answer.headers.get("Retry-After"), self._pod)

    def annotation(self, name: str, timeout: float) -> str | None:
        """An annotation of the pod, by the answer to a patch that changes nothing: a pod may not read itself.

        None: there is no such one, or no answer within `timeout` seconds a step.
        """
        try:
            answer = self._patched({}, timeout)
            found = orjson.loads(answer.content)["metadata"].get("annotations") or {}
            text = found.get(name)
            return None if text is None else str(text)
        except (*_NO_ANSWER, orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
            return None
        finally:
            self.close()

    def _patched(self, change: Mapping[str, Any], timeout: float) -> httpx.Response:
        body = dict(change) if self._pod.uid is None else {**change, "metadata": {"uid": self._pod.uid}}
        return self._client().patch(
            f"{self._access.url}/api/v1/namespaces/{self._pod.namespace}/pods/{self._pod.name}/status",
            params={"fieldManager": "streams-runtime"},
            content=orjson.dumps(body),
            headers={"Content-Type": _STRATEGIC_MERGE, "Authorization": f"Bearer {self._token()}"},
            timeout=timeout,
        )

    def close(self) -> None:
        """Close the connection; the next patch opens another."""
        client, self._http = self._http, None
        if client is not None:
            client.close()

    def _client(self) -> httpx.Client:
        if self._http is None:
            secure = self._access.url.startswith("https:")
            verify = ssl.create_default_context(cafile=str(self._access.authority)) if secure else False
            self._http = httpx.Client(verify=verify, trust_env=False)
        return self._http

    def _token(self) -> str:
        return self._access.token.read_text(encoding="ascii").strip()


def result_of(status: int, message: str, retry_after: str | None, pod: PodIdentity) -> Result:
    """What an HTTP answer means, with what to do where a person has to."""
    said = f"{status}: {message}" if message else str(status)
    if 200 <= status < 300:
        return Result(Answer.ACCEPTED)
    if status in (409, 422) and "uid" in message.lower():
        return Result(Answer.REFUSED, f"pod {pod} has been replaced by another one of its name; end this process")
    if status in (401, 408, 409, 429) or status >= 500:
        patience = float(retry_after) if retry_after and retry_after.isdigit() else 0.0
        return Result(Answer.LATER, f"the API server answered {said}", patience)
    if status == 403:
        remedy = (
            f"Let its service account patch pods/status of {pod.name} (Role and RoleBinding in {pod.namespace}); the"
            " operator does so unless spec.template.serviceAccountName names another account"
        )
    elif status == 404:
        remedy = "The pod has been removed, or POD_NAME and POD_NAMESPACE name another one"
    else:
        remedy = "This runtime and the API server do not fit together; see the answer"
    return Result(Answer.REFUSED, f"the API server answered {said}. {remedy}")


def _message(answer: httpx.Response) -> str:
    """What a Kubernetes Status says; the beginning of anything else (a proxy's page, say)."""
    if answer.is_success:
        return ""
    try:
        body = orjson.loads(answer.content)
        return str(body["message"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return " ".join(answer.text.split())[:200]


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__
