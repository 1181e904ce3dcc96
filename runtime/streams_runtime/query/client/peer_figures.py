"""What other instances of the application say of themselves at `/state/figures`."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import httpx
import orjson

from streams_runtime.settings import Peers

_SECONDS: Final = 2.0  # that an instance has to answer
_ATTEMPTS: Final = 2  # after which it is taken for gone
_AT_ONCE: Final = 8


class PeerFigures:
    """Asks instances for their figures, which are open to everybody: no token is sent, and no certificate verified."""

    def __init__(self, peers: Peers, transport: Callable[[], httpx.BaseTransport] | None = None) -> None:
        """`peers`: where they answer. `transport` is for tests."""
        self._peers = peers
        self._transport = transport

    def __call__(self, instances: Collection[str]) -> dict[str, Mapping[str, Any] | None]:
        """The figures of each instance that has a known address; None: it does not answer. Takes a few seconds at most.

        Raises nothing.
        """
        urls = {name: url for name in instances if (url := self._peers(name)) is not None}
        if not urls:
            return {}
        verify = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        verify.check_hostname, verify.verify_mode = False, ssl.CERT_NONE
        transport = None if self._transport is None else self._transport()
        with (
            httpx.Client(verify=verify, trust_env=False, timeout=_SECONDS, transport=transport) as http,
            ThreadPoolExecutor(min(len(urls), _AT_ONCE)) as pool,
        ):
            answers = pool.map(lambda url: _ask(http, f"{url}/state/figures"), urls.values())
            return dict(zip(urls, answers, strict=True))


def _ask(http: httpx.Client, url: str) -> Mapping[str, Any] | None:
    for _ in range(_ATTEMPTS):
        try:
            answer = http.get(url)
            found = orjson.loads(answer.content) if answer.is_success else None
        except (httpx.HTTPError, orjson.JSONDecodeError):
            continue
        if isinstance(found, dict):
            return found
    return None
