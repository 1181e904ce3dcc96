"""Checks of `spec.queries`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from streams_runtime.api.spec.queries_spec import KubernetesAccess, QueriesSpec, QueryAccess
from streams_runtime.errors import Mistake

_AT = "spec.queries"
_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_ACCOUNT = re.compile(rf"(?:{_LABEL}/)?{_LABEL}(?:\.{_LABEL})*")
_SECRET_KEY = re.compile(r"[-._A-Za-z0-9]+")


def query_mistakes(queries: QueriesSpec) -> Iterator[Mistake]:
    """Everything about who may ask."""
    if queries.access is not None:
        yield from _access(queries.access)


def _access(access: QueryAccess) -> Iterator[Mistake]:
    named = [name for name, way in (("token", access.token), ("kubernetes", access.kubernetes)) if way is not None]
    if len(named) != 1:
        found = "names token and kubernetes" if named else "names no way of telling who may ask"
        remedy = "keep one of the two" if named else "give token or kubernetes; to let everybody ask, leave access out"
        yield Mistake(f"{_AT}.access", found, remedy)
    if access.token is not None and not _SECRET_KEY.fullmatch(access.token.secret_ref.key):
        found = f"found {access.token.secret_ref.key!r}, which can't be a key of a Secret"
        yield Mistake(f"{_AT}.access.token.secretRef.key", found, "use letters, digits, - _ and .")
    if access.kubernetes is not None:
        yield from _kubernetes(access.kubernetes)


def _kubernetes(access: KubernetesAccess) -> Iterator[Mistake]:
    at = f"{_AT}.access.kubernetes"
    if not access.service_accounts and not access.groups:
        remedy = "list serviceAccounts or groups; the group system:authenticated is every account of the cluster"
        yield Mistake(at, "lists nobody, so nobody could ask", remedy)
    for index, account in enumerate(access.service_accounts):
        if not _ACCOUNT.fullmatch(account):
            found = f"found {account!r}, which is no service account"
            yield Mistake(f"{at}.serviceAccounts[{index}]", found, "write NAMESPACE/NAME, or NAME")
    for index, group in enumerate(access.groups):
        if not group:
            yield Mistake(f"{at}.groups[{index}]", "is empty", "name the group, or leave it out")
