"""Requests of the querying client: one request to one URL, and its answer or its failure."""

from __future__ import annotations

import functools
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
import orjson

from streams_runtime.errors import ConfigException
from streams_runtime.query.client.routing import Failure
from streams_runtime.query.wire.problems import MEDIA_TYPE as PROBLEM_TYPE
from streams_runtime.query.wire.problems import InstanceNotReachableException, exception_of
from streams_runtime.query.wire.relay import RELAY

_CONNECT_SECONDS: Final = 2.0  # instances are near; a dead one must not use up the deadline
_RELAY_HINT: Final = ". Where only the first instance can be reached (kubectl port-forward), ask through it (--relay)"
_ANSWER_SECONDS: Final = 10.0  # even the last try may take so long: a count walks over the whole store


@dataclass(frozen=True, slots=True)
class QueryCredentials:
    """The token that a client presents, and the authorities that it trusts.

    `token` is presented as it is; `token_file` is read before each request, since tokens of a cluster are renewed.
    `ca_file` holds the authorities (PEM) whose certificates are trusted; None: those of the machine.
    """

    token: str | None = None
    token_file: Path | None = None
    ca_file: Path | None = None

    def headers(self) -> dict[str, str]:
        """The header that presents the token; empty without a token.

        Raises:
            ConfigException: the token's file can't be read, or nothing is in it.
        """
        token = self.token
        if self.token_file is not None:
            try:
                token = self.token_file.read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise ConfigException(f"the token's file {self.token_file} can't be read: {error}") from error
            if not token:
                raise ConfigException(f"the token's file {self.token_file} is empty; put the token into it")
        return {} if token is None else {"Authorization": f"Bearer {token}"}


class RequestFailed(Exception):
    """Carries a failure to the one place that decides about it."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(str(failure.error))


class Requests:
    """Sends requests to instances. Usable from several threads.

    A token is never sent without encryption by a client whose first URL has it: an instance that names another one by
    http:// gets no answer.
    """

    def __init__(
        self,
        first_url: str,
        credentials: QueryCredentials,
        clock: Callable[[], float] = time.monotonic,
        relay: bool = False,
    ) -> None:
        """Connects to nothing. With `relay` requests to all other instances go through the first.

        Raises:
            ConfigException: `first_url` is none, or the authorities can't be read.
        """
        if not first_url.startswith(("http://", "https://")):
            raise ConfigException(f"the URL {first_url!r} of an instance must begin with http:// or https://")
        self.reached = False
        """Whether any instance has ever answered."""
        self._credentials = credentials
        self._secret = credentials.token is not None or credentials.token_file is not None
        self._encrypted = first_url.startswith("https://")
        self._clock = clock
        self._first = first_url.rstrip("/")
        self._relay = relay
        # Directly: a proxy of the environment is not meant for instances.
        self._http = httpx.Client(
            verify=_ssl_context(credentials.ca_file), trust_env=False, limits=httpx.Limits(max_connections=None)
        )

    def json(self, url: str, path: str, parameters: Mapping[str, Any], until: float, member: str) -> dict[str, Any]:
        """The JSON object that has `member`; an answer without it is not one of an instance. Raises RequestFailed."""
        response = self.send(url, path, parameters, until)
        try:
            document = orjson.loads(response.read())
            if not isinstance(document, dict) or member not in document:
                raise RequestFailed(Failure(_not_an_instance(url, response), url))
        except httpx.TransportError as error:
            raise RequestFailed(Failure(_unreachable(url, error), url)) from error
        except orjson.JSONDecodeError as error:
            raise RequestFailed(Failure(_not_an_instance(url, response), url)) from error
        finally:
            response.close()
        self.reached = True
        return document

    def send(self, url: str, path: str, parameters: Mapping[str, Any], until: float) -> httpx.Response:
        """The response, its body not read yet. Raises RequestFailed for everything but a 200."""
        timeout = httpx.Timeout(max(until - self._clock(), _ANSWER_SECONDS), connect=_CONNECT_SECONDS)
        if self._secret and self._encrypted and not url.startswith("https://"):
            text = f"the instance at {url} answers without encryption, and the token is not sent there; ask again later"
            raise RequestFailed(Failure(InstanceNotReachableException(text), url))
        headers = self._credentials.headers()
        try:
            request = self._http.build_request(
                "GET", self._base_url(url) + path, params=parameters or None, headers=headers, timeout=timeout
            )
            response = self._http.send(request, stream=True)
            if response.status_code == 200:
                return response
            try:
                response.read()
            finally:
                response.close()
        except (httpx.TransportError, httpx.InvalidURL) as error:
            near = self._relay or url == self._first
            raise RequestFailed(Failure(_unreachable(url, error, "" if near else _RELAY_HINT), url)) from error
        failure = _failure(url, response)
        self.reached = self.reached or not isinstance(failure.error, InstanceNotReachableException)
        raise RequestFailed(failure)

    def _base_url(self, url: str) -> str:
        if not self._relay or url == self._first:
            return url
        return f"{self._first}{RELAY}/{url.partition('://')[2]}"

    def close(self) -> None:
        """Close the connections. May be called twice."""
        self._http.close()


def _ssl_context(authorities: Path | None) -> ssl.SSLContext:
    if authorities is None:
        return _machine_context()
    try:
        return ssl.create_default_context(cafile=str(authorities))
    except (OSError, ssl.SSLError) as error:
        raise ConfigException(
            f"the authorities' certificates {authorities} can't be used: {error}; give a readable PEM file"
        ) from error


@functools.cache
def _machine_context() -> ssl.SSLContext:
    """The certificates that the machine's clients trust; reading them takes longer than a query."""
    return httpx.create_ssl_context(trust_env=False)


def _failure(url: str, response: httpx.Response) -> Failure:
    if response.headers.get("Content-Type") != PROBLEM_TYPE:
        return Failure(_not_an_instance(url, response), url)
    document = orjson.loads(response.content)
    after = response.headers.get("Retry-After")
    return Failure(exception_of(document), url, document.get("owner"), None if after is None else float(after))


def _not_an_instance(url: str, response: httpx.Response) -> InstanceNotReachableException:
    return InstanceNotReachableException(
        f"{url} answered with status {response.status_code} and is not an instance of a streams application;"
        " check the URL"
    )


def _unreachable(url: str, error: Exception, more: str = "") -> InstanceNotReachableException:
    text = f"no instance answers at {url} ({error}); check that it runs and that the URL is right{more}"
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        text = (
            f"the certificate of the instance at {url} is not believed ({error}); give the authority's certificate"
            " (--ca-file), and a name that the certificate has"
        )
    return InstanceNotReachableException(text)
