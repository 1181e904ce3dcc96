"""A builder's global tables: there to be joined with, and nothing else."""

from __future__ import annotations

from streams_runtime.builder.recording import Recording


class GlobalKTable:
    """The last value of each key of a topic, the whole of it in every instance. `name`: what expressions call it.

    `KStream.join(table, select, key=…)` looks values up in it.
    """

    def __init__(self, recording: Recording, name: str) -> None:
        self.name = name
        self._recording = recording
