"""A builder's global tables: there to be joined with, and nothing else."""

from __future__ import annotations

from streams_runtime.builder.recording import Recording


class GlobalKTable:
    """A table that every instance keeps whole (Kafka Streams' GlobalKTable), made by StreamsBuilder.global_table.

    `KStream.join(table, select, key=…)` and `left_join` look values up in it. `name` is what their expressions call it.
    """

    def __init__(self, recording: Recording, name: str) -> None:
        self.name = name
        self._recording = recording
