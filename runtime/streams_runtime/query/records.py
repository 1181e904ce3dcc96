"""Records as they go over HTTP: one JSON object a line, in chunks; a failure on the way is the last."""

from __future__ import annotations

import threading
from typing import Final

import orjson
import structlog
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from streams_runtime.errors import StreamsException
from streams_runtime.query.composite import MergedEntries
from streams_runtime.query.problems import Problem, defect_problem, problem_of
from streams_runtime.query.views import StoreCodec
from streams_runtime.query.wire import to_json

MEDIA_TYPE: Final = "application/x-ndjson"
_CHUNK_BYTES: Final = 32 * 1024  # a trip between threads each; larger ones only make the first record later

_log = structlog.get_logger(__name__)


class RecordLines:
    """Reads `entries` into chunks of lines `{"key": …, "value": …}`.

    The first chunk is read at once, so that an exception that comes before any record is raised from the
    constructor and can still become a status. A later one becomes the last line, `{"problem": {…}}`: a
    reader that sees no such line has everything. `key_bytes` adds the key's bytes in base64 as `keyBytes`;
    the lines are in the order of these bytes.
    """

    def __init__(self, entries: MergedEntries, codec: StoreCodec, key_bytes: bool = False) -> None:
        self._entries = entries
        self._codec = codec
        self._key_bytes = key_bytes
        self._ended = False
        self._lines: list[bytes] = []
        self._reading = threading.Lock()
        self._left = False
        try:
            self._fill()
        except BaseException:
            entries.close()
            raise

    def __iter__(self) -> RecordLines:
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
                self._entries.close()
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
            entry = next(self._entries, None)
            if entry is None:
                self._ended = True
                return
            line = self._line(*entry)
            self._lines.append(line)
            size += len(line)

    def _line(self, key: bytes, value: bytes) -> bytes:
        record = {"key": self._codec.key.decode(key), "value": self._codec.decode_value(value)}
        if self._key_bytes:
            record["keyBytes"] = key
        return to_json(record) + b"\n"

    def _end_with(self, problem: Problem) -> None:
        self._ended = True
        self._lines.append(orjson.dumps({"problem": problem.document()}) + b"\n")


class RecordResponse(StreamingResponse):
    """Sends RecordLines, and closes them however the request ends: by itself, a lost reader, a shutdown."""

    def __init__(self, lines: RecordLines) -> None:
        super().__init__(lines, media_type=MEDIA_TYPE)
        self._record_lines = lines

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._record_lines.close()
