"""Exceptions as RFC 9457 problems, and back: status, category and remedy of each, in one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from streams_runtime.errors import (
    BrokerNotAvailableException,
    InvalidStateStorePartitionException,
    NotSupportedException,
    NotUpToBoundException,
    StateStoreMigratedException,
    StateStoreNotAvailableException,
    StoreTypeMismatch,
    StreamsException,
    StreamsNotStartedException,
    StreamsRebalancingException,
    UnknownStateStoreException,
)

Category = Literal["retryable", "fatal"]
Remedy = Literal["retry", "rediscover", "do-not-retry", "fix-the-name", "fix-the-query", "go-to", "authenticate"]

MEDIA_TYPE: Final = "application/problem+json"
_TYPE_PREFIX: Final = "urn:streamsoperator:"
_RETRY_AFTER: Final = 1  # seconds; a rebalance without restoration takes about as long


class InvalidQueryException(StreamsException, ValueError):
    """No instance can answer the query, such as one with a key that is not of the store's key format. Fix the query."""


class InstanceNotReachableException(StreamsException):
    """No instance answered at the URL in the message. Check that it runs and that the URL is its own."""


class IncompleteAnswerException(StreamsException):
    """An instance's answer broke off before its end, so records may be missing. Ask again."""


class QueryNotAuthenticatedException(StreamsException):
    """The instance asks for a token and got none, or another one. Present the right one."""


class QueryForbiddenException(StreamsException):
    """The instance knows whose the token is, and its owner may not query. Ask for the right."""


class AccessNotCheckedException(StreamsException):
    """The instance can't find out at the moment whether the token counts, and lets nobody in. Retry."""


@dataclass(frozen=True, slots=True)
class Kind:
    """How one class of exception goes over HTTP. `retry_after`: seconds, None where waiting is no use."""

    status: int
    category: Category
    remedy: Remedy
    retry_after: int | None = None

    @property
    def headers(self) -> dict[str, str]:
        """The headers that belong to the status."""
        headers = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        return headers | ({"WWW-Authenticate": 'Bearer realm="queries"'} if self.status == 401 else {})


KINDS: Final[Mapping[type[StreamsException], Kind]] = {
    StreamsNotStartedException: Kind(503, "retryable", "retry", _RETRY_AFTER),
    StreamsRebalancingException: Kind(503, "retryable", "retry", _RETRY_AFTER),
    StateStoreMigratedException: Kind(409, "retryable", "rediscover"),
    NotUpToBoundException: Kind(503, "retryable", "retry"),  # the next batch is there in less than a second
    StateStoreNotAvailableException: Kind(410, "fatal", "do-not-retry"),
    UnknownStateStoreException: Kind(404, "fatal", "fix-the-name"),
    InvalidStateStorePartitionException: Kind(421, "fatal", "go-to"),
    BrokerNotAvailableException: Kind(503, "retryable", "retry", _RETRY_AFTER),
    InvalidQueryException: Kind(400, "fatal", "fix-the-query"),
    StoreTypeMismatch: Kind(400, "fatal", "fix-the-query"),
    InstanceNotReachableException: Kind(502, "fatal", "rediscover"),
    NotSupportedException: Kind(501, "fatal", "do-not-retry"),
    QueryNotAuthenticatedException: Kind(401, "fatal", "authenticate"),
    QueryForbiddenException: Kind(403, "fatal", "do-not-retry"),
    AccessNotCheckedException: Kind(503, "retryable", "retry", _RETRY_AFTER),
}

_OTHER: Final = Kind(500, "fatal", "do-not-retry")
_BY_NAME: Final = {exception.__name__: exception for exception in KINDS}


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem document. `title` is the exception's class, `owner` the URL of the instance to ask."""

    title: str
    kind: Kind
    detail: str
    owner: str | None = None

    def document(self) -> dict[str, Any]:
        """The JSON object of RFC 9457, with this project's members `category`, `remedy` and `owner`."""
        document: dict[str, Any] = {
            "type": _TYPE_PREFIX + self.title,
            "title": self.title,
            "status": self.kind.status,
            "detail": self.detail,
            "category": self.kind.category,
            "remedy": self.kind.remedy,
        }
        return document if self.owner is None else document | {"owner": self.owner}


def problem_of(error: StreamsException, owner: str | None = None) -> Problem:
    """The problem that stands for `error`: its own entry in the table, else its nearest base's, else 500."""
    for base in type(error).__mro__:
        if base in KINDS:
            return Problem(base.__name__, KINDS[base], str(error), owner)
    return Problem(type(error).__name__, _OTHER, str(error), owner)


def request_problem(status: int, detail: str) -> Problem:
    """The problem of a request that no endpoint takes (wrong path, method or parameter)."""
    return Problem(InvalidQueryException.__name__, Kind(status, "fatal", "fix-the-query"), detail)


def defect_problem() -> Problem:
    """The problem of a defect of this program: what happened is in the instance's log, not in the answer."""
    detail = "the query failed by a defect of this instance; its log has the cause"
    return Problem(StreamsException.__name__, _OTHER, detail)


def exception_of(document: Mapping[str, Any]) -> StreamsException:
    """The exception that a problem document stands for: the same class where it is in the table."""
    return _BY_NAME.get(str(document.get("title")), StreamsException)(str(document.get("detail")))
