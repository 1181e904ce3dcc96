"""Where a pod is: the labels of the pod, or else those of its node."""

from __future__ import annotations

import logging
import ssl
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

import httpx
import orjson

from streams_runtime.kubernetes.pod_status_api import ApiAccess, PodIdentity

_SECONDS = 5.0  # for an answer
_TRIES = 5
_PAUSE = 1.0  # seconds between two tries
_LOGGER = logging.getLogger("streams_runtime.kubernetes")


def pod_tags(
    access: ApiAccess,
    pod: PodIdentity,
    keys: Collection[str],
    pause: Callable[[float], object] = time.sleep,
    transport: httpx.BaseTransport | None = None,
) -> dict[str, str]:
    """The values that the pod has of these labels, of each from the pod itself or, if it has no such label, its node.

    Never raises for what an API server may do: one that does not answer is asked again for a few seconds, and why a
    value is not there is logged as a warning. Nobody is asked without `keys`. `transport` is for tests.
    """
    if not keys:
        return {}
    for left in reversed(range(_TRIES)):
        try:
            return _read(access, pod, keys, transport)
        except (httpx.HTTPError, OSError, ssl.SSLError, orjson.JSONDecodeError, KeyError, TypeError) as error:
            if not left:
                reason = str(error) or type(error).__name__
                _LOGGER.warning("the labels of the pod %s and its node are not known: %s", pod, reason)
            else:
                pause(_PAUSE)
    return {}


def _read(
    access: ApiAccess, pod: PodIdentity, keys: Collection[str], transport: httpx.BaseTransport | None
) -> dict[str, str]:
    token = access.token.read_text(encoding="ascii").strip()
    secure = access.url.startswith("https:")
    verify = ssl.create_default_context(cafile=str(access.authority)) if secure else False
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(
        verify=verify, trust_env=False, timeout=_SECONDS, transport=transport, base_url=access.url, headers=headers
    ) as http:
        seen = _asked(http, f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}")
        found = _labels(seen, keys)
        if len(found) == len(keys):
            return found
        node = seen["spec"]["nodeName"]
        try:
            return _labels(_asked(http, f"/api/v1/nodes/{node}"), keys) | found
        except httpx.HTTPStatusError as error:
            if error.response.status_code != httpx.codes.FORBIDDEN:
                raise
            missing = ", ".join(key for key in keys if key not in found)
            _LOGGER.warning(
                "the pod %s has no label %s, and may not read those of its node %s. Let its service account get nodes"
                " (the chart's rbac.nodeLabelNamespaces: [%s]), and set another restartNonce",
                pod,
                missing,
                node,
                pod.namespace,
            )
            return found


def _asked(http: httpx.Client, path: str) -> Mapping[str, Any]:
    seen: Mapping[str, Any] = orjson.loads(http.get(path).raise_for_status().content)
    return seen


def _labels(seen: Mapping[str, Any], keys: Collection[str]) -> dict[str, str]:
    labels = seen["metadata"].get("labels") or {}
    return {key: labels[key] for key in keys if labels.get(key)}
