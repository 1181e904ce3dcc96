"""Tables of a builder grouped by another key, to be aggregated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from streams_runtime.builder.recording import Recording

if TYPE_CHECKING:
    from streams_runtime.builder.streams_and_tables import KTable


class KGroupedTable:
    """A table's rows grouped by another key, to be aggregated (Kafka Streams' KGroupedTable).

    A row that changes is taken out of its old group and added to its new one.
    """

    def __init__(self, recording: Recording, input: str, group: str, table_of: Callable[[str], KTable]) -> None:
        self._recording = recording
        self._input = input
        self._group = group
        self._table_of = table_of

    def aggregate(
        self, columns: Mapping[str, str] | None = None, /, *, store: str, name: str | None = None, **more: str
    ) -> KTable:
        """Aggregate each group's rows into a table, kept in `store` (KGroupedTable#aggregate).

        Each column is `count`, `count_if`, `sum` or `avg` in Spark SQL, given as a mapping or by keyword: a row that
        leaves the group is taken out of these again. The step, and its repartition topic after it, is called as the
        store where `name` is absent.

        Raises:
            ConfigException: a value can't stand in a resource, such as a Column; write it as text.
        """
        return self._aggregated("aggregate", {**(columns or {}), **more}, store, name)

    def count(self, column: str = "count", *, store: str, name: str | None = None) -> KTable:
        """Count each group's rows, in `column` of a table kept in `store` (KGroupedTable#count).

        Errors are those of `aggregate`.
        """
        return self._aggregated("count", {column: "count(*)"}, store, name)

    def _aggregated(self, method: str, columns: Mapping[str, str], store: str, name: str | None) -> KTable:
        given = name if name is not None else store
        fields = {"name": given, "from": self._input, "groupBy": self._group, "aggregate": columns, "store": store}
        self._recording.add("steps", method, fields)
        return self._table_of(given)
