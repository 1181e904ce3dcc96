"""Records of a querying client: the answers of several instances as one, each of which says when it is whole."""

from __future__ import annotations

import base64
import contextlib
import heapq
from collections.abc import Iterator, Mapping
from datetime import datetime
from operator import itemgetter
from typing import Any

import httpx
import orjson

from streams_runtime.errors import StreamsException
from streams_runtime.query.stores.iterators import KeyValue, VersionedRecord
from streams_runtime.query.wire.json_values import COMPLETE, PROBLEM
from streams_runtime.query.wire.problems import IncompleteAnswerException, InstanceNotReachableException, exception_of
from streams_runtime.query.wire.windowed_keys import Window, Windowed

Row = tuple[bytes, KeyValue]
"""A record, and the bytes by which the records of all instances are ordered."""


class Records:
    """Records of a range in the order of their keys' bytes. Usable in `for` and `with`; close it when done early.

    The next record may raise what the instance's store raised meanwhile, InstanceNotReachableException where the
    connection broke, or IncompleteAnswerException where an answer ended before its last line. What came is not
    everything then, and every further step raises the same: ask again.
    """

    def __init__(self, readers: list[Iterator[Row]], opened: contextlib.ExitStack, reverse: bool = False) -> None:
        self._opened = opened
        self._rows = heapq.merge(*readers, key=itemgetter(0), reverse=reverse)
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
        """Close the connections of this range. May be called twice, and raises nothing."""
        self._opened.close()

    def __enter__(self) -> Records:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def rows(url: str, response: httpx.Response) -> Iterator[Row]:
    """The records of one answer. Raises as Records says."""
    lines = response.iter_lines()
    count = 0
    while True:
        try:
            line = next(lines, None)
            document = None if line is None else orjson.loads(line)
        except httpx.TransportError as error:
            raise InstanceNotReachableException(
                f"{url} went away in the middle of its answer ({error}); ask again"
            ) from error
        except orjson.JSONDecodeError:
            document = None  # a line that was cut off
        if document is None:
            raise IncompleteAnswerException(f"the answer of {url} was cut off after {count} records; ask again")
        if PROBLEM in document:
            raise exception_of(document[PROBLEM])
        if COMPLETE in document:
            announced = document[COMPLETE]["records"]
            if announced != count:
                raise IncompleteAnswerException(f"{url} sent {announced} records, and {count} arrived; ask again")
            return
        count += 1
        yield base64.b64decode(document["keyBytes"]), record_of(document)


def record_of(document: Mapping[str, Any]) -> KeyValue:
    """A record as a line or an answer of one record has it; of a history its value is a VersionedRecord or None."""
    if "validFrom" in document:
        return KeyValue(document["key"], _version_of(document))
    bounds = document.get("window")
    if bounds is None:
        return KeyValue(document["key"], document["value"])
    window = Window(datetime.fromisoformat(bounds["start"]), datetime.fromisoformat(bounds["end"]))
    return KeyValue(Windowed(document["key"], window), document["value"])


def _version_of(document: Mapping[str, Any]) -> VersionedRecord | None:
    since, until = document["validFrom"], document["validTo"]
    if since is None:
        return None
    return VersionedRecord(
        document["value"], datetime.fromisoformat(since), None if until is None else datetime.fromisoformat(until)
    )
