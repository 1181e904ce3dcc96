"""Streams of a builder grouped by key, and by windows, to be aggregated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from streams_runtime.builder.recording import Recording
from streams_runtime.builder.window_arguments import Time, Windows

if TYPE_CHECKING:
    from streams_runtime.builder.streams_and_tables import KTable


class KGroupedStream:
    """Records grouped by key, to be aggregated (Kafka Streams' KGroupedStream)."""

    def __init__(
        self,
        recording: Recording,
        input: str,
        table_of: Callable[[str], KTable],
        window: Mapping[str, Any] | None = None,
    ) -> None:
        self._recording = recording
        self._input = input
        self._table_of = table_of
        self._window = window
        self._suppress: str | None = None

    def aggregate(
        self, columns: Mapping[str, str] | None = None, /, *, store: str, name: str | None = None, **more: str
    ) -> KTable:
        """Aggregate each key's records into a table, kept in `store` (KGroupedStream#aggregate).

        Each column is an aggregate of Spark SQL, such as `sum(amount)`, given as a mapping or by keyword. The step is
        called as the store where `name` is absent.

        Raises:
            ConfigException: a value can't stand in a resource, such as a Column; write it as text.
        """
        return self._aggregated("aggregate", {**(columns or {}), **more}, store, name)

    def count(self, column: str = "count", *, store: str, name: str | None = None) -> KTable:
        """Count each key's records, in `column` of a table kept in `store` (KGroupedStream#count).

        Errors are those of `aggregate`.
        """
        return self._aggregated("count", {column: "count(*)"}, store, name)

    def windowed_by(
        self, windows: Windows, *, retention: Time | None = None, late: str | None = None
    ) -> WindowedKStream:
        """Aggregate the records of each window by themselves (KGroupedStream#windowedBy).

        `windows` comes from `tumbling`, `hopping`, `sliding` or `session`. `retention` is how long a window can be
        queried, in stream time; None: the shortest that the windows need. `late` names the topic for records that come
        too late; None: they are only counted. Raises nothing.
        """
        window = {windows.kind: windows.fields, "retention": retention, "late": late and {"topic": late}}
        return WindowedKStream(self._recording, self._input, self._table_of, window)

    def _aggregated(self, method: str, columns: Mapping[str, str], store: str, name: str | None) -> KTable:
        given = name if name is not None else store
        fields = {"name": given, "from": self._input, "window": self._window, "aggregate": columns, "store": store}
        self._recording.add("steps", method, {**fields, "suppress": self._suppress})
        return self._table_of(given)


class WindowedKStream(KGroupedStream):
    """Records grouped by key and window, to be aggregated (TimeWindowedKStream and SessionWindowedKStream)."""

    def suppress(self, until: str = "untilWindowCloses") -> WindowedKStream:
        """Pass on only the last contents of each window, once it has closed (KTable#suppress, KIP-328).

        It stands before the aggregate, not behind it as in Java: the step is one, and a table that some read with every
        change and others closed would be two. Raises nothing.
        """
        suppressed = WindowedKStream(self._recording, self._input, self._table_of, self._window)
        suppressed._suppress = until
        return suppressed
