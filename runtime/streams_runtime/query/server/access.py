"""Who may query: everybody, or whoever presents a token to the gate before all endpoints that show data."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from streams_runtime.api.spec.queries_spec import QueriesSpec
from streams_runtime.errors import ConfigException
from streams_runtime.query.server.tls import TlsFiles
from streams_runtime.query.wire.problems import AccessNotCheckedException, QueryNotAuthenticatedException

_SCHEME = "bearer"


class Gate(Protocol):
    """Lets requests through, by the value of their header `Authorization`; None: they have none."""

    async def admit(self, authorization: str | None, address: str) -> None:
        """Return where the request may be answered. `address` is the caller's, without its port.

        Raises:
            QueryNotAuthenticatedException: no token, or not one that counts here; present another.
            QueryForbiddenException: the token's owner is known and may not ask; ask for the right.
            AccessNotCheckedException: nobody can say at the moment; retry.
        """


@dataclass(frozen=True, slots=True)
class QueryGuard:
    """What stands between the network and the answers. Without a gate everybody may ask; without files it is HTTP."""

    gate: Gate | None = None
    tls: TlsFiles | None = None

    @property
    def scheme(self) -> str:
        """The scheme of this instance's URLs."""
        return "http" if self.tls is None else "https"


OPEN = QueryGuard()
"""Everybody who reaches the port may ask, without encryption."""


def check_guard(wanted: QueriesSpec, given: QueryGuard) -> None:
    """Return where the guard keeps what the resource promises.

    Raises:
        ConfigException: it would answer where the resource says that it must not.
    """
    if wanted.access is not None and given.gate is None:
        raise ConfigException(
            "spec.queries.access says who may query, and this process was not told how to find out; start it with the"
            " token's file (--queries-token-file), or leave spec.queries.access out"
        )
    if wanted.tls is not None and given.tls is None:
        raise ConfigException(
            "spec.queries.tls asks for encryption, and this process was given no certificate; run it as a pod of the"
            " operator, or leave spec.queries.tls out"
        )


def bearer_token(authorization: str | None) -> str:
    """The token of a header `Authorization: Bearer TOKEN`.

    Raises:
        QueryNotAuthenticatedException: there is no such header, or it is of another kind.
    """
    scheme, _, token = (authorization or "").strip().partition(" ")
    if not scheme:
        raise QueryNotAuthenticatedException(
            "queries need a token here; send the header Authorization: Bearer TOKEN (streamsapp query: --token-file)"
        )
    if scheme.lower() != _SCHEME or not token.strip():
        raise QueryNotAuthenticatedException(
            f"the header Authorization has no bearer token but {scheme!r}; send Authorization: Bearer TOKEN"
        )
    return token.strip()


class TokenGate:
    """Lets those through who have the token in `file`. The file is read again when it changes, so a token can be
    renewed without a restart; while it can't be read or is empty nobody passes.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._version: tuple[int, int, int] | None = None
        self._digest = b""

    async def admit(self, authorization: str | None, address: str) -> None:  # noqa: ARG002
        """Return where the header has the token of the file; the address is not looked at.

        Raises:
            QueryNotAuthenticatedException: no token, or another one; present the right one.
            AccessNotCheckedException: the file can't be read or is empty, so nobody passes; correct it, then retry.
        """
        # Digests are equally long, so that the comparison does not tell the token's length either.
        presented = hashlib.sha256(bearer_token(authorization).encode()).digest()
        if not hmac.compare_digest(presented, self._expected()):
            raise QueryNotAuthenticatedException("the token is not the one that counts here; present the right one")

    def _expected(self) -> bytes:
        try:
            found = self._file.stat()
            version = (found.st_mtime_ns, found.st_ino, found.st_size)
            if version != self._version:
                token = self._file.read_bytes().strip()
                self._digest, self._version = hashlib.sha256(token).digest() if token else b"", version
        except OSError as error:
            raise AccessNotCheckedException(
                f"the token's file {self._file} can't be read ({error.strerror}), so nobody is let in; correct it, then"
                " retry"
            ) from error
        if not self._digest:
            raise AccessNotCheckedException(
                f"the token's file {self._file} is empty, so nobody is let in; put the token into it, then retry"
            )
        return self._digest
