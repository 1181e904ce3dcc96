"""One task's object of a user's class: its calls in the order of records, and where it has come to.

What the task has come to (its stream time, and when its schedules are due) lies in a store of the step's own, which is
written with the batch. So a task that goes on elsewhere, or after a failure, goes on where it was: an object whose
batch was not committed is not the one that the store speaks of, and another one is made.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streams_runtime.errors import StreamsException, UserCodeException
from streams_runtime.processors.user_processors.declared_types import ValueCodec, columns_type, key_type
from streams_runtime.processors.user_processors.processor_call import Call, CurrentCall, Forwarded
from streams_runtime.processors.user_processors.processor_context import Declared, ProcessorContext, StoreView
from streams_runtime.processors.user_processors.processor_records import PunctuationType
from streams_runtime.processors.user_processors.punctuation_queue import PunctuationQueue
from streams_runtime.processors.user_processors.record_batches import TIMESTAMP, BatchCall, ForwardedBatch
from streams_runtime.processors.user_processors.stores.segmented_overlay import SegmentedOverlay
from streams_runtime.processors.user_processors.stores.session_store_view import SessionStoreView
from streams_runtime.processors.user_processors.stores.state_store_view import StateStoreView
from streams_runtime.processors.user_processors.stores.store_overlay import StoreOverlay
from streams_runtime.processors.user_processors.stores.stored_forms import StoredForms
from streams_runtime.processors.user_processors.stores.window_store_view import WindowStoreView
from streams_runtime.processors.user_processors.task_progress import TaskProgress
from streams_runtime.processors.user_processors.task_rows import TaskRows
from streams_runtime.state.database.open_database import StoreClosed
from streams_runtime.state.processor_class import ProcessorClass
from streams_runtime.state.serdes import key_serde
from streams_runtime.state.store import KeyValueStore, Updates
from streams_runtime.state.window_store import SegmentedStore, SessionStore, WindowStore
from streams_runtime.topology.nodes.process_node import ProcessNode, ProcessorStore
from streams_runtime.topology.nodes.source_and_sink_nodes import Format
from streams_runtime.user_code import where_in

_LOGGER = logging.getLogger("streams_runtime.processors")
_OURS = str(Path(__file__).parents[2])
_PROGRESS = b"progress"
_Waiting = tuple[int, int, int]
"""A row for a process_batch: which record was read, its row, and the stream time with it."""
OwnStore = KeyValueStore | WindowStore | SessionStore


@dataclass(slots=True)
class TaskRead:
    """A record that the task has read: the largest time of its topic's partition, and the rows of it that reach the
    step.

    It counts for the stream time also if nothing of it does. `number` is whatever the caller knows it by.
    """

    number: int
    time: int
    rows: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Result:
    """What was forwarded behind a record that the task has read.

    Where a punctuator forwarded it, `row` is None, and `due` is when the punctuator was due (ms).
    """

    read: int
    row: int | None
    record: Forwarded
    due: int = 0


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What a process_batch forwarded, in the order of records: of each row the record that was read, and its row."""

    reads: Sequence[int]
    rows: Sequence[int]
    batch: ForwardedBatch


Results = list[Result | BatchResult]


class ProcessorTask:
    """The processor of one task. Used by the task's thread alone."""

    def __init__(
        self,
        node: ProcessNode,
        described: ProcessorClass,
        task_id: str,
        stores: Mapping[str, OwnStore],
        clock: Callable[[], int],
    ) -> None:
        """`stores` are the task's; `clock` gives ms. No code of the user's is called before it is needed."""
        self._node, self._class, self._clock = node, described, clock
        self._task_id = task_id
        self._stores = stores
        key = None if node.key is None else ValueCodec(key_type(node.key))
        self._declared = Declared(ValueCodec(columns_type(node.value)), key, node.outputs)
        self._progress = TaskProgress()
        self._made: Any = None
        self._current = CurrentCall(Call())
        self._written: Mapping[str, StoreOverlay | SegmentedOverlay] = {}
        self._queue = PunctuationQueue()

    def process(self, reads: Iterable[TaskRead], rows: TaskRows) -> Results:
        """Work off what the task has read; schedules by stream time are called behind the record that lets it come.

        A class that takes batches is given all rows up to there together.

        Raises:
            UserCodeException: the class failed; the message has the class, the key and the record. What this batch has
                done is forgotten.
            ProcessorStateException: a store can't be read.
        """
        self.make_ready()
        found: Results = []
        waiting: list[_Waiting] = []
        try:
            stream_time = self._progress.stream_time
            for read in reads:
                stream_time = max(stream_time, read.time)
                if self._class.takes_batches:
                    waiting += [(read.number, row, stream_time) for row in read.rows]
                    if self._queue.is_due(PunctuationType.STREAM_TIME, stream_time):
                        found += self._process_batch(waiting, rows)
                        waiting = []
                else:
                    for row in read.rows:
                        found += self._process(read.number, row, rows, stream_time)
                found += self._punctuate(PunctuationType.STREAM_TIME, stream_time, stream_time, read.number)
            found += self._process_batch(waiting, rows)
        except BaseException:
            self.close()
            raise
        self._note(stream_time)
        return found

    def punctuate(self) -> Results | None:
        """Call the schedules by wall-clock time that are due; None: none is.

        Raises as `process`.
        """
        if not self.is_due():
            return None
        stream_time = self._progress.stream_time
        try:
            found = self._punctuate(PunctuationType.WALL_CLOCK_TIME, self._clock(), stream_time, 0)
        except BaseException:
            self.close()
            raise
        self._note(stream_time)
        return found

    def is_due(self) -> bool:
        """Whether a schedule by wall-clock time is due. Raises as `process`."""
        self.make_ready()
        return self._queue.is_due(PunctuationType.WALL_CLOCK_TIME, self._clock())

    def updates(self) -> list[tuple[OwnStore, Updates]]:
        """What the stores will hold once the batch is committed; they are not asked again before."""
        found = [(self._stores[name], each.take_updates()) for name, each in self._written.items()]
        progress = Updates([_PROGRESS], [self._progress.to_bytes()], [max(self._progress.stream_time, 0)])
        return [(store, updates) for store, updates in found if len(updates)] + [
            (self._stores[self._node.progress_store], progress)
        ]

    @property
    def stream_time(self) -> int:
        """The largest timestamp that the task has read (ms); -1 before the first."""
        return self._progress.stream_time

    def make_ready(self) -> None:
        """See to it that there is an object, and that it is the one of which the stores know.

        Raises UserCodeException: the class can't be made, or its init failed.
        """
        stored = TaskProgress.of(self._stores[self._node.progress_store].get(_PROGRESS))
        if self._made is not None and stored.batches == self._progress.batches:
            return
        self.close()
        self._progress = stored
        self._queue = PunctuationQueue(stored.schedules)
        self._written = {each.name: _overlay(self._stores[each.name]) for each in self._node.stores}
        self._made = self._called("its constructor", "", self._class.make)
        self._current.now = Call(stream_time=stored.stream_time, is_init=True)
        self._context = self._new_context()
        try:
            if self._class.has_init:
                self._called("init", "", self._made.init, self._context)
        except BaseException:
            self.close()
            raise
        self._current.now = Call(stream_time=stored.stream_time)

    def _new_context(self) -> ProcessorContext:
        views = {each.name: self._view(each) for each in self._node.stores}
        return ProcessorContext(self._task_id, self._current, views, self._declared, self._queue, self._clock)

    def _view(self, store: ProcessorStore) -> StoreView:
        keys, values = key_serde(Format(store.key_format)), ValueCodec(columns_type(store.value))
        forms, written = StoredForms(store.name, store.key_format, keys, values), self._written[store.name]
        if isinstance(written, SegmentedOverlay):
            kind = SessionStoreView if store.kind == "session" else WindowStoreView
            return kind(store.name, forms, written, self._current)
        return StateStoreView(store.name, forms, written, self._current)

    def close(self) -> None:
        """Call the object's close, if it has one, and let it go. May be called twice; what close raises is logged."""
        made, self._made = self._made, None
        if made is None or not self._class.has_close:
            return
        try:
            made.close()
        except Exception as error:
            _LOGGER.warning("%s: %s failed in close: %s", self._node.path, self._node.reference, _what(error))

    def _process(self, read: int, row: int, rows: TaskRows, stream_time: int) -> Results:
        record, metadata = rows.record(row), rows.metadata(row)
        call = Call(record.timestamp, stream_time, record, metadata, [])
        of = f" for the key {_short(record.key)} of {metadata}"
        return [Result(read, row, each) for each in self._run(call, "process", of, self._made.process, record)]

    def _process_batch(self, waiting: Sequence[_Waiting], rows: TaskRows) -> Results:
        if not waiting:
            return []
        reads, numbers, times = zip(*waiting, strict=True)
        given = rows.batch(numbers, times)
        call = Call(given[TIMESTAMP][-1].as_py(), times[-1], batch=BatchCall(given))
        first, last = rows.metadata(numbers[0]), rows.metadata(numbers[-1])
        of = f" for the {len(given)} records from {first} to {last}" if len(given) > 1 else f" for the record {first}"
        self._run(call, "process_batch", of, self._batch_called, call)
        forwarded = call.batch.in_record_order() if call.batch is not None else None
        if forwarded is None:
            return []
        own = forwarded.rows.to_pylist()
        return [BatchResult([reads[each] for each in own], [numbers[each] for each in own], forwarded)]

    def _batch_called(self, call: Call) -> None:
        assert call.batch is not None
        returned = self._made.process_batch(call.batch.given)
        if returned is not None:
            self._context.forward_batch(returned)

    def _punctuate(self, type: PunctuationType, now: int, stream_time: int, read: int) -> Results:
        found: Results = []
        for schedule in self._queue.due(type, now):
            what, due = f"a punctuator at the {type} {now}", schedule.due or 0
            into = self._run(Call(now, stream_time, forwarded=[]), what, "", schedule.callback, now)
            found += [Result(read, None, each, due) for each in into]
        return found

    def _run(
        self, call: Call, what: str, of: str, function: Callable[..., object], argument: object
    ) -> list[Forwarded]:
        self._current.now = call
        try:
            self._called(what, of, function, argument)
        finally:
            self._current.now = Call(call.time, call.stream_time)
        return call.forwarded or []

    def _called(self, what: str, of: str, function: Callable[..., Any], *arguments: object) -> Any:
        """Call code of the user's; what the stores raise passes through as it is. `of`: of which records, if of any."""
        try:
            return function(*arguments)
        except (StreamsException, StoreClosed):
            raise
        except Exception as error:
            where = of or f" of the task {self._task_id}"
            raise UserCodeException(
                f"{self._node.path}.process: {self._node.reference} failed in {what}{where}: {_what(error)}",
                "Mend the class and start the application again; these records are processed anew then",
                bool(of) and not isinstance(error, MemoryError),
            ) from error

    def _note(self, stream_time: int) -> None:
        saved = {number: (every, due) for number, every, due in self._queue.to_save()}
        self._progress = TaskProgress(self._progress.batches + 1, stream_time, saved)


def _overlay(store: OwnStore) -> StoreOverlay | SegmentedOverlay:
    return SegmentedOverlay(store) if isinstance(store, SegmentedStore) else StoreOverlay(store)


def _what(error: BaseException) -> str:
    """What the user's code raised, and the last line of theirs that it passed through."""
    theirs = [each for each in traceback.extract_tb(error.__traceback__) if not each.filename.startswith(_OURS)]
    if not theirs:
        return where_in(error)
    text = " ".join(str(error).split())
    name = f"{type(error).__name__}{': ' if text else ''}{text}"
    return f"{name} ({Path(theirs[-1].filename).name}, line {theirs[-1].lineno})"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else text[:197] + "..."
