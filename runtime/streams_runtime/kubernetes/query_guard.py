"""What stands before a pod's queries: spec.queries, the Secrets that the operator mounts, the pod's own account."""

from __future__ import annotations

from pathlib import Path

from streams_runtime.api.spec.queries_spec import QueriesSpec
from streams_runtime.kubernetes.pod_status_api import ApiAccess
from streams_runtime.kubernetes.token_review import TokenReviewer
from streams_runtime.query.server.access import Gate, QueryGuard, TokenGate
from streams_runtime.query.server.tls import TlsFiles
from streams_runtime.query.server.token_access import ReviewGate, admitted

ACCESS_FOLDER, TLS_FOLDER = "access", "tls"
TOKEN_FILE = "token"
"""Name of the token's file in its folder, whatever the Secret's key is called."""


def pod_guard(queries: QueriesSpec, namespace: str, api: ApiAccess, folder: Path) -> QueryGuard:
    """The guard of a pod of the application with these `queries` in `namespace`. Opens no file and no connection.

    `folder` is where the operator mounts the Secrets of the queries.
    """
    tls = folder / TLS_FOLDER
    files = None if queries.tls is None else TlsFiles(tls / "tls.crt", tls / "tls.key")
    return QueryGuard(_gate(queries, namespace, api, folder / ACCESS_FOLDER / TOKEN_FILE), files)


def _gate(queries: QueriesSpec, namespace: str, api: ApiAccess, token: Path) -> Gate | None:
    access = queries.access
    if access is None:
        return None
    if access.kubernetes is None:
        return TokenGate(token)
    who = admitted(access.kubernetes.service_accounts, access.kubernetes.groups, namespace)
    return ReviewGate(TokenReviewer(api, access.kubernetes.audience), who)
