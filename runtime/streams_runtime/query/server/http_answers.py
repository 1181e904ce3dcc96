"""What an endpoint answers with: JSON, or a problem with what to do about it; and whose the data is, when not ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
from streams_runtime.query.stores.store_target import StoreTarget
from streams_runtime.query.wire import problems
from streams_runtime.query.wire.json_values import to_json
from streams_runtime.query.wire.problems import Problem


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
def naming_the_owner(target: StoreTarget) -> Iterator[None]:
    """Raise what a partition that is not here, or no longer, raises together with who has it.

    Raises:
        Misdirected: in place of these two exceptions.
        BrokerNotAvailableException: the partition was never here, and nobody can say now where it is; retry.
    """
    try:
        yield
    except InvalidStateStorePartitionException as error:
        raise Misdirected(error, _owner(target)) from error
    except StateStoreMigratedException as error:
        owner = None
        with suppress(BrokerNotAvailableException):  # the caller asks again in any case
            owner = _owner(target)
        raise Misdirected(error, owner) from error


def _owner(target: StoreTarget) -> str | None:
    """The instance that has those of the target's partitions that are not here; None where the target names none,
    where nobody knows, where the group's account is old, or where there are several.
    """
    if not target.partitions:
        return None
    queryable, store = target.queryable, target.store
    here = {number for number, view in queryable.views(store).items() if view.is_open}
    owners = queryable.owners(store)
    urls = {owners[number].url if number in owners else None for number in target.partitions if number not in here}
    (url,) = urls if len(urls) == 1 else (None,)
    return None if url == queryable.url else url
