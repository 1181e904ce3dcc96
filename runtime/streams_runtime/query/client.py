"""Queries from outside: given any one instance, the answer of the whole application."""

from __future__ import annotations

import base64
import contextlib
import functools
import heapq
import itertools
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter
from typing import Any, Final, TypeVar
from urllib.parse import quote

import httpx
import orjson

from streams_runtime.errors import ConfigException, StreamsException
from streams_runtime.query.handles import KeyValue
from streams_runtime.query.problems import MEDIA_TYPE as PROBLEM_TYPE
from streams_runtime.query.problems import InstanceNotReachableException, exception_of
from streams_runtime.query.routing import Failure, Next, next_step, partitions_by_url, pause
from streams_runtime.query.wire import to_plain

DEADLINE_SECONDS: Final = 30.0
_CONNECT_SECONDS: Final = 2.0  # instances are near; a dead one must not use up the deadline
_ANSWER_SECONDS: Final = 10.0  # even the last try may take so long: a count walks over the whole store

T = TypeVar("T")
Row = tuple[bytes, KeyValue]


class StreamsQueryClient:
    """Asks the instances of one application; `url` is that of any of them.

    A key is sent to the instance that has it; ranges and counts are put together from all partitions, each
    exactly once. Keys are given as text in the store's key format, or as int, float, bytes or a JSON
    object; values come as JSON tells them (bytes in base64). Usable from several threads, and in `with`.

    Every method may raise the exceptions of KIP-216. Retryable ones, a partition that moved and an instance
    that went away are tried again until `deadline` seconds have passed; fatal ones never. Further:
    UnknownStateStoreException (fix the name), InvalidQueryException (fix the key),
    InstanceNotReachableException (nobody answers at the URL that the message names; of the first URL it is
    raised at once).
    """

    def __init__(
        self,
        url: str,
        deadline: float = DEADLINE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise ConfigException(f"the URL {url!r} of an instance must begin with http:// or https://")
        self._urls: dict[str, None] = {url.rstrip("/"): None}  # every instance heard of, in that order
        self._deadline = deadline
        self._clock = clock
        self._sleep = sleep
        self._reached = False
        # Instances are asked directly: a proxy of the environment is not meant for them.
        self._http = httpx.Client(verify=_tls(), trust_env=False, limits=httpx.Limits(max_connections=None))

    def get(self, store: str, key: object) -> object:
        """The key's value, or None where the store has no such key."""
        return self.record(store, key).value

    def record(self, store: str, key: object) -> KeyValue:
        """The key as the store has it, and its value or None."""
        path = f"{_path(store)}/keys/{_escaped(_key_text(key))}"

        def follow(url: str, until: float) -> KeyValue:
            visited: set[str] = set()
            while True:
                visited.add(url)
                try:
                    answer = self._json(url, path, {}, until, "value")
                    return KeyValue(answer["key"], answer["value"])
                except _Failed as failed:
                    owner = failed.failure.owner
                    if owner is None or owner in visited:
                        raise
                    self._urls.setdefault(owner)
                    url = owner

        return self._persist(follow)

    def range(self, store: str, from_key: object | None, to_key: object | None) -> Records:
        """Records from `from_key` to `to_key`, both inclusive, None an open end, in order of the keys' bytes.

        A failure before the first record is retried as in every method; a later one is raised to the
        reader, who asks again: records are never left out silently.
        """
        bounds = {name: _key_text(key) for name, key in (("from", from_key), ("to", to_key)) if key is not None}
        return self._persist(lambda url, until: self._open(url, store, bounds, until))

    def all(self, store: str) -> Records:
        """Every record, as `range` gives them."""
        return self.range(store, None, None)

    def count(self, store: str) -> int:
        """How many records the store has over all partitions."""

        def add(url: str, until: float) -> int:
            path = f"{_path(store)}/count"
            owners = self._owners(url, store, until)
            return sum(
                int(self._json(owner, path, {"partition": numbers}, until, "count")["count"])
                for owner, numbers in owners.items()
            )

        return self._persist(add)

    def close(self) -> None:
        """Close the connections; readers of a range must be done. May be called twice."""
        self._http.close()

    def __enter__(self) -> StreamsQueryClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _persist(self, attempt: Callable[[str, float], T]) -> T:
        """Do `attempt(url, until)` until it succeeds, can't be mended, or the deadline passes."""
        until = self._clock() + self._deadline
        url = next(iter(self._urls))
        for failures in itertools.count(1):
            try:
                return attempt(url, until)
            except _Failed as failed:
                failure = failed.failure
                step = next_step(failure.error)
                never_met = not self._reached and isinstance(failure.error, InstanceNotReachableException)
                wait = pause(failure, failures)
                if step is Next.GIVE_UP or never_met or self._clock() + wait >= until:
                    raise failure.error from None
                if step is Next.REDISCOVER and failure.url == url:
                    url = self._another(url)
                self._sleep(wait)
        raise AssertionError("counting never ends")

    def _another(self, url: str) -> str:
        """The instance heard of after `url`; the first again after the last."""
        urls = list(self._urls)
        return urls[(urls.index(url) + 1) % len(urls)]

    def _owners(self, url: str, store: str, until: float) -> dict[str, tuple[int, ...]]:
        document = self._json(url, f"{_path(store)}/owners", {}, until, "owners")
        try:
            owners = partitions_by_url(store, document)
        except StreamsException as error:
            raise _Failed(Failure(error, url)) from error
        for owner in owners:
            self._urls.setdefault(owner)
        return owners

    def _open(self, url: str, store: str, bounds: Mapping[str, str], until: float) -> Records:
        with contextlib.ExitStack() as opened:
            readers = []
            for owner, numbers in self._owners(url, store, until).items():
                parameters = {**bounds, "partition": numbers, "keyBytes": "true"}
                response = self._send(owner, f"{_path(store)}/range", parameters, until)
                opened.callback(response.close)
                readers.append(_rows(owner, response))
            return Records(readers, opened.pop_all())

    def _json(self, url: str, path: str, parameters: Mapping[str, Any], until: float, member: str) -> dict[str, Any]:
        """The JSON object that has `member`; an answer without it is not one of an instance."""
        response = self._send(url, path, parameters, until)
        try:
            document = orjson.loads(response.read())
            if not isinstance(document, dict) or member not in document:
                raise _Failed(Failure(_stranger(url, response), url))
        except httpx.TransportError as error:
            raise _Failed(Failure(_unreachable(url, error), url)) from error
        except orjson.JSONDecodeError as error:
            raise _Failed(Failure(_stranger(url, response), url)) from error
        finally:
            response.close()
        self._reached = True
        return document

    def _send(self, url: str, path: str, parameters: Mapping[str, Any], until: float) -> httpx.Response:
        """The response, its body not read yet. Raises _Failed for everything but a 200."""
        timeout = httpx.Timeout(max(until - self._clock(), _ANSWER_SECONDS), connect=_CONNECT_SECONDS)
        try:
            request = self._http.build_request("GET", url + path, params=parameters or None, timeout=timeout)
            response = self._http.send(request, stream=True)
            if response.status_code == 200:
                return response
            try:
                response.read()
            finally:
                response.close()
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise _Failed(Failure(_unreachable(url, error), url)) from error
        failure = _failure(url, response)
        self._reached = self._reached or not isinstance(failure.error, InstanceNotReachableException)
        raise _Failed(failure)


class Records:
    """Records of a range, in order of the keys' bytes. Close it when done early; usable in `for` and `with`.

    The next record may raise what the instance's store raised meanwhile, or InstanceNotReachableException
    where the connection broke; the iterator is at its end then.
    """

    def __init__(self, readers: list[Iterator[Row]], opened: contextlib.ExitStack) -> None:
        self._opened = opened
        self._rows = heapq.merge(*readers, key=itemgetter(0))
        self._error: StreamsException | None = None

    def __iter__(self) -> Records:
        return self

    def __next__(self) -> KeyValue:
        if self._error is not None:
            raise self._error
        try:
            return next(self._rows)[1]
        except StreamsException as error:
            self._error = error
            self.close()
            raise
        except StopIteration:
            self.close()
            raise

    def close(self) -> None:
        """Close the connections. May be called twice."""
        self._opened.close()

    def __enter__(self) -> Records:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@functools.cache
def _tls() -> ssl.SSLContext:
    """The certificates that clients trust; reading them takes longer than a query."""
    return httpx.create_ssl_context(trust_env=False)


class _Failed(Exception):
    """Carries a failure to the one place that decides about it."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(str(failure.error))


def _rows(url: str, response: httpx.Response) -> Iterator[Row]:
    lines = response.iter_lines()
    while True:
        try:
            line = next(lines, None)
        except httpx.TransportError as error:
            raise InstanceNotReachableException(
                f"{url} went away in the middle of its answer ({error}); ask again"
            ) from error
        if line is None:
            return
        record = orjson.loads(line)
        if "problem" in record:
            raise exception_of(record["problem"])
        yield base64.b64decode(record["keyBytes"]), KeyValue(record["key"], record["value"])


def _failure(url: str, response: httpx.Response) -> Failure:
    if response.headers.get("Content-Type") != PROBLEM_TYPE:
        return Failure(_stranger(url, response), url)
    document = orjson.loads(response.content)
    after = response.headers.get("Retry-After")
    return Failure(exception_of(document), url, document.get("owner"), None if after is None else float(after))


def _stranger(url: str, response: httpx.Response) -> InstanceNotReachableException:
    return InstanceNotReachableException(
        f"{url} answered with status {response.status_code} and is not an instance of a streams application;"
        " check the URL"
    )


def _unreachable(url: str, error: Exception) -> InstanceNotReachableException:
    return InstanceNotReachableException(
        f"no instance answers at {url} ({error}); check that it runs and that the URL is right"
    )


def _path(store: str) -> str:
    return f"/stores/{_escaped(store)}"


def _escaped(text: str) -> str:
    """Percent-encoded; dots too, or `..` would be taken for a step up in the path."""
    return quote(text, safe="").replace(".", "%2E")


def _key_text(key: object) -> str:
    plain = to_plain(key)
    return plain if isinstance(plain, str) else orjson.dumps(plain).decode()
