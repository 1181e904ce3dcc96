"""The Secrets behind a pod's queries: the token that they present, the certificate that they see."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streams_operator import names
from streams_runtime.api.spec.queries_spec import QueriesSpec

_MODE = 0o440  # the pod's own group, and nobody else
Volume = dict[str, Any]


def query_secrets(queries: QueriesSpec) -> Iterator[tuple[Volume, Volume]]:
    """Each Secret as a volume and where it is mounted. Whole folders: files of their own would never be renewed."""
    token = queries.access.token if queries.access is not None else None
    if token is not None:
        items = [{"key": token.secret_ref.key, "path": names.QUERY_TOKEN_FILE}]
        yield _secret("query-access", token.secret_ref.name, names.QUERY_ACCESS_MOUNT, {"items": items})
    if queries.tls is not None:
        yield _secret("query-tls", queries.tls.secret_ref.name, names.QUERY_TLS_MOUNT, {})


def _secret(volume: str, secret: str, path: str, more: dict[str, Any]) -> tuple[Volume, Volume]:
    return (
        {"name": volume, "secret": {"secretName": secret, "defaultMode": _MODE, **more}},
        {"name": volume, "mountPath": path, "readOnly": True},
    )
