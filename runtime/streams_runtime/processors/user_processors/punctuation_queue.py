"""When callbacks are due, as Kafka Streams' PunctuationQueue has it.

Schedules by stream time are aligned to 0, so that they do not depend on when a task began. Each is due once for all the
times that were passed over together. A schedule is known by its number: that of the call in `init` that made it. With
it a task that goes on elsewhere finds when the schedule is due next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from streams_runtime.processors.user_processors.processor_records import PunctuationType

Callback = Callable[[int], object]
Saved = tuple[int, int | None]
"""Of a schedule by stream time: its interval, and when it is due next (ms); None: it is cancelled."""


@dataclass(slots=True)
class Schedule:
    """A callback and when it is due next (ms); never again where `due` is None. Users hold it to cancel it."""

    number: int
    every: int
    type: PunctuationType
    callback: Callback
    due: int | None

    def cancel(self) -> None:
        """Call it no more (Cancellable#cancel). May be called twice, and from the callback itself."""
        self.due = None


@dataclass(slots=True)
class PunctuationQueue:
    """The schedules of one processor. `saved` are those that the task left, by number."""

    saved: Mapping[int, Saved] = field(default_factory=dict)
    schedules: list[Schedule] = field(default_factory=list)

    def add(self, every: int, type: PunctuationType, callback: Callback, now: int) -> Schedule:
        """A further schedule; `now` is the machine's time, of which one by wall-clock time is counted on."""
        number = len(self.schedules)
        due: int | None = 0 if type is PunctuationType.STREAM_TIME else now + every
        before = self.saved.get(number)
        if type is PunctuationType.STREAM_TIME and before is not None and before[0] == every:
            due = before[1]
        made = Schedule(number, every, type, callback, due)
        self.schedules.append(made)
        return made

    def is_due(self, type: PunctuationType, now: int) -> bool:
        """Whether any is due at this time."""
        return any(each.type is type and each.due is not None and each.due <= now for each in self.schedules)

    def due(self, type: PunctuationType, now: int) -> Iterator[Schedule]:
        """What is due, the earliest first; each is counted on once its callback has been called."""
        while True:
            found = [each for each in self.schedules if each.type is type and each.due is not None and each.due <= now]
            if not found:
                return
            first = min(found, key=lambda each: (each.due, each.number))
            yield first
            if first.due is not None:  # the callback may have cancelled it
                first.due += first.every * ((now - first.due) // first.every + 1)

    def to_save(self) -> Sequence[tuple[int, int, int | None]]:
        """Number, interval and next time of the schedules by stream time."""
        return [
            (each.number, each.every, each.due) for each in self.schedules if each.type is PunctuationType.STREAM_TIME
        ]
