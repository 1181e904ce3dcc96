"""Asks the API server whose a token is (TokenReview, authentication.k8s.io/v1)."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any

import httpx
import orjson

from streams_runtime.kubernetes.pod_status_api import ApiAccess
from streams_runtime.query.server.token_access import Review
from streams_runtime.query.wire.problems import AccessNotCheckedException

_SECONDS = 5.0  # for an answer; queries wait for it, so they hear soon that it does not come
_PATH = "/apis/authentication.k8s.io/v1/tokenreviews"


class TokenReviewer:
    """Has tokens reviewed, with the pod's own account, which needs the right to create tokenreviews in the cluster.

    Tokens must have been made for `audience`; None: for the API server's own. Each review is a connection of its own:
    reviews are believed for a while, so they are rare, and the files of the account rotate. `transport` is for tests.
    """

    def __init__(
        self, access: ApiAccess, audience: str | None = None, transport: httpx.BaseTransport | None = None
    ) -> None:
        self._access = access
        self._audience = audience
        self._transport = transport

    def __call__(self, token: str) -> Review:
        """Whose the token is.

        Raises:
            AccessNotCheckedException: the API server is away, or does not let this pod ask; nobody is let in then.
        """
        spec: dict[str, Any] = {"token": token}
        if self._audience is not None:
            spec["audiences"] = [self._audience]
        try:
            answer = self._ask({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec})
        except (httpx.HTTPError, OSError, ssl.SSLError) as error:
            reason = str(error) or type(error).__name__
            raise AccessNotCheckedException(
                f"the token can't be reviewed: the API server at {self._access.url} does not answer ({reason}); retry"
            ) from error
        if not answer.is_success:
            raise AccessNotCheckedException(_refusal(answer))
        return review_of(orjson.loads(answer.content), self._audience)

    def _ask(self, review: Mapping[str, Any]) -> httpx.Response:
        own = self._access.token.read_text(encoding="ascii").strip()
        secure = self._access.url.startswith("https:")
        verify = ssl.create_default_context(cafile=str(self._access.authority)) if secure else False
        with httpx.Client(verify=verify, trust_env=False, timeout=_SECONDS, transport=self._transport) as http:
            headers = {"Content-Type": "application/json", "Authorization": f"Bearer {own}"}
            return http.post(self._access.url + _PATH, content=orjson.dumps(review), headers=headers)


def review_of(document: Mapping[str, Any], audience: str | None) -> Review:
    """What a reviewed TokenReview says.

    A review that does not name the audience that was asked for comes from a cluster that does not look at audiences,
    and is no review for this purpose.
    """
    status = document.get("status") or {}
    user = status.get("user") or {}
    if not status.get("authenticated"):
        return Review(None, error=str(status.get("error") or ""))
    if audience is not None and audience not in (status.get("audiences") or ()):
        return Review(None, error=f"it is not made for the audience {audience}")
    return Review(str(user.get("username") or "") or None, frozenset(map(str, user.get("groups") or ())))


def _refusal(answer: httpx.Response) -> str:
    if answer.status_code == 403:
        return (
            "the token can't be reviewed: this pod's account may not create tokenreviews; an administrator binds it to"
            " the ClusterRole system:auth-delegator (kubectl create clusterrolebinding NAME"
            " --clusterrole=system:auth-delegator --serviceaccount=NAMESPACE:ACCOUNT, or the operator's chart with"
            " rbac.tokenReviewNamespaces), then retry"
        )
    said = " ".join(answer.text.split())[:200]
    return f"the token can't be reviewed: the API server answered {answer.status_code}: {said}; retry"
