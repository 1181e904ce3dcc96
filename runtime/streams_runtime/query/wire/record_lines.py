"""Records as they go over HTTP: one JSON object a line, in chunks; the last line says how the answer ended."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Final, Generic, Protocol, TypeVar

import orjson
import structlog
from anyio import CapacityLimiter, to_thread
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from streams_runtime.errors import StreamsException
from streams_runtime.query.wire.json_values import COMPLETE, PROBLEM, to_json
from streams_runtime.query.wire.problems import Problem, defect_problem, problem_of

MEDIA_TYPE: Final = "application/x-ndjson"
_CHUNK_BYTES: Final = 32 * 1024  # a trip between threads each; larger ones only make the first record later

_log = structlog.get_logger(__name__)

R_co = TypeVar("R_co", covariant=True)
R = TypeVar("R")


class Walk(Protocol[R_co]):
    """An iterator over a store that has to be closed."""

    def take(self, most: int) -> Sequence[R_co]:
        """The next records, `most` at most; fewer are the last ones."""

    def close(self) -> None: ...


class RecordLines(Generic[R]):
    """Reads what `walk` gives into chunks of lines; `shown` makes the object of a line, which has the member `key`.

    The first chunk is read at once, so that an exception that comes before any record is raised from the
    constructor and can still become a status. A later one becomes the last line, `{"problem": {…}}`. The last line of a
    whole answer is `{"complete": {"records": N}}`, with `"more": true` where `limit` left out others: an answer with
    neither was cut off on its way, whatever HTTP says. Never more than one chunk is held, and none is read before the
    one before it was taken.
    """

    def __init__(self, walk: Walk[R], shown: Callable[[R], Mapping[str, object]], limit: int | None = None) -> None:
        self._walk = walk
        self._limit = limit
        self._shown = shown
        self._ended = False
        self._count = 0
        self._lines: list[bytes] = []
        self._reading = threading.Lock()
        self._left = False
        try:
            self._fill()
        except BaseException:
            walk.close()
            raise

    def __iter__(self) -> RecordLines[R]:
        return self

    def __next__(self) -> bytes:
        try:
            with self._reading:
                return self._chunk()
        finally:
            if self._left:
                self.close()

    def close(self) -> None:
        """Give the store's resources back: at once, or after the chunk that another thread is reading."""
        self._left = True
        if self._reading.acquire(blocking=False):
            try:
                self._walk.close()
            finally:
                self._reading.release()

    def _chunk(self) -> bytes:
        if self._left:
            raise StopIteration
        if not self._lines and not self._ended:
            try:
                self._fill()
            except StreamsException as error:
                self._end_with(problem_of(error))
            except Exception:
                _log.exception("query.failed")
                self._end_with(defect_problem())
        if not self._lines:
            raise StopIteration
        chunk = b"".join(self._lines)
        self._lines = []
        return chunk

    def _fill(self) -> None:
        size = 0
        while size < _CHUNK_BYTES:
            # As many as fill the chunk, if they are as long as those before.
            wanted = (_CHUNK_BYTES - size) * len(self._lines) // size if size else 1
            wanted = max(wanted, 1)
            left = wanted if self._limit is None else self._limit - self._count
            wanted = min(wanted, left + 1)  # one more than is shown tells whether there are more
            taken = self._walk.take(wanted)
            records = taken[:left]
            for record in records:
                self._lines.append(to_json(self._shown(record)) + b"\n")
                size += len(self._lines[-1])
            self._count += len(records)
            if len(taken) > left:
                self._end({COMPLETE: {"records": self._count, "more": True}})
                self._walk.close()
                return
            if len(taken) < wanted:
                self._end({COMPLETE: {"records": self._count}})
                return

    def _end_with(self, problem: Problem) -> None:
        self._end({PROBLEM: problem.document()})

    def _end(self, last: Mapping[str, object]) -> None:
        self._ended = True
        self._lines.append(orjson.dumps(last) + b"\n")


async def _chunks(lines: RecordLines[R], walks: CapacityLimiter) -> AsyncIterator[bytes]:
    while (chunk := await to_thread.run_sync(next, lines, None, limiter=walks)) is not None:
        yield chunk


class RecordResponse(StreamingResponse):
    """Sends RecordLines, and closes them however the request ends: by itself, a lost reader, a shutdown."""

    def __init__(self, lines: RecordLines[R], walks: CapacityLimiter) -> None:
        """Chunks are read in the threads of `walks`, the first of `lines` having been read already."""
        super().__init__(_chunks(lines, walks), media_type=MEDIA_TYPE)
        self._close = lines.close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._close()
