"""Where a task of a process step has come to, as its own store has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import orjson

from streams_runtime.processors.user_processors.punctuation_queue import Saved


@dataclass(frozen=True, slots=True)
class TaskProgress:
    """After how many batches, up to which stream time (ms), and its schedules by number."""

    batches: int = 0
    stream_time: int = -1
    schedules: Mapping[int, Saved] = field(default_factory=dict)

    @classmethod
    def of(cls, data: bytes | None) -> TaskProgress:
        """What is stored; of nothing, the beginning."""
        if data is None:
            return cls()
        found = orjson.loads(data)
        saved = {number: (every, due) for number, every, due in found["schedules"]}
        return cls(found["batches"], found["streamTime"], saved)

    def to_bytes(self) -> bytes:
        """What is to be stored."""
        schedules = [(number, every, due) for number, (every, due) in self.schedules.items()]
        return orjson.dumps({"batches": self.batches, "streamTime": self.stream_time, "schedules": schedules})
