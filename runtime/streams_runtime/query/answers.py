"""What an endpoint answers with: JSON, or a problem with what to do about it; and whose the data is, when not ours."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import orjson
from fastapi import Response

from streams_runtime.errors import (
    BrokerNotAvailableException,
    InvalidStateStorePartitionException,
    StateStoreMigratedException,
    StreamsException,
)
from streams_runtime.query import problems
from streams_runtime.query.problems import Problem
from streams_runtime.query.views import Queryable
from streams_runtime.query.wire import to_json


def json_answer(content: Mapping[str, Any], status: int = 200) -> Response:
    """A JSON object."""
    return Response(to_json(content), status, media_type="application/json")


def problem_answer(problem: Problem, location: str | None = None) -> Response:
    """A problem with the headers of its kind; `location`: the same query at the instance that has the data."""
    headers = problem.kind.headers | ({} if location is None else {"Location": location})
    return Response(
        orjson.dumps(problem.document()), problem.kind.status, headers=headers, media_type=problems.MEDIA_TYPE
    )


class Misdirected(Exception):
    """Carries a partition's absence, with the URL of the instance that has it where it is known, to the problem."""

    def __init__(self, error: StreamsException, owner: str | None) -> None:
        self.error = error
        self.owner = owner
        super().__init__(str(error))


class BrokenOff(Exception):
    """An answer that has begun can't be ended: the connection is cut off, so the reader sees that it is not whole."""


@contextmanager
def naming_the_owner(queryable: Queryable, store: str, partitions: Collection[int]) -> Iterator[None]:
    """Let a partition that is not here, or no longer, be told together with who has it.

    Raises:
        Misdirected: in place of these two exceptions.
        BrokerNotAvailableException: the partition was never here, and nobody can say now where it is; retry.
    """
    try:
        yield
    except InvalidStateStorePartitionException as error:
        raise Misdirected(error, _owner(queryable, store, partitions)) from error
    except StateStoreMigratedException as error:
        owner = None
        with suppress(BrokerNotAvailableException):  # the caller looks for it again in any case
            owner = _owner(queryable, store, partitions)
        raise Misdirected(error, owner) from error


def _owner(queryable: Queryable, store: str, partitions: Collection[int]) -> str | None:
    """The instance that has those of the partitions that are not here; None where nobody knows, where news is old, or
    where there are several.
    """
    if not partitions:
        return None
    here = {number for number, view in queryable.views(store).items() if view.is_open}
    owners = queryable.owners(store)
    urls = {owners[number].url if number in owners else None for number in partitions if number not in here}
    (url,) = urls if len(urls) == 1 else (None,)
    return None if url == queryable.url else url
