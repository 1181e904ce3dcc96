"""Files of records, CSV or JSON Lines, as keys and JSON values; read in pieces, whatever their size."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, cast

import orjson

from streams_runtime.errors import ConfigException, StreamsException

Record = tuple[bytes | None, bytes]

_ENDINGS = ".csv, .csv.gz, .jsonl, .jsonl.gz, or .zip with one of these in it"
# A number is what JSON takes for one, so it can be copied as it is written. Not 007, which is an
# identifier; nor 1E5, which is a code more often than a number, while programs write exponents with a sign
# (1e-05).
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-][0-9]+)?")
# Fields whose JSON is remembered: columns repeat themselves, and a look-up costs less than a match.
_REMEMBERED = 100_000


@dataclass(frozen=True, slots=True)
class RecordFile:
    """An open file of records. `size` and `position()` are in bytes of the same measure, for showing
    progress.
    """

    records: Iterator[Record]
    size: int
    position: Callable[[], int]

    def chunks(self, rows: int) -> Iterator[list[Record]]:
        """The records, up to `rows` at a time.

        Raises StreamsException, naming file and line, for a line that is no record.
        """
        while chunk := list(islice(self.records, rows)):
            yield chunk


@contextmanager
def open_records(file: Path, key: str | None, nulls: Collection[str] = ()) -> Iterator[RecordFile]:
    """Opens a file by its ending.

    `key` is the column whose text becomes the record's key; without it records have no key. In CSV an empty
    field is null, and so is one that is equal to one of `nulls`.

    Raises ConfigException for an ending that is not known or a key column that is not there,
    StreamsException for a file that can't be read.
    """
    with ExitStack() as stack:
        try:
            name, stream, size, position = _opened(file, stack)
        except (OSError, zipfile.BadZipFile) as failure:
            reason = failure.strerror if isinstance(failure, OSError) else str(failure)
            raise StreamsException(f"{file} can't be read: {reason}. Check the path and the file") from failure
        if name.endswith(".csv"):
            text = stack.enter_context(io.TextIOWrapper(stream, encoding="utf-8-sig", newline=""))
            found = _csv_records(file, text, key, frozenset(nulls))
        else:
            found = _json_records(file, stream, key)
        records = _reading(file, found)
        # The first record is read here, so that a wrong file or key is known before anything is sent.
        first = list(islice(records, 1))
        yield RecordFile(_chained(first, records), size, position)


def _opened(file: Path, stack: ExitStack) -> tuple[str, IO[bytes], int, Callable[[], int]]:
    name, size = file.name.lower(), file.stat().st_size
    if name.endswith(".zip"):
        archive = stack.enter_context(zipfile.ZipFile(file))
        members = [member for member in archive.infolist() if not member.is_dir()]
        if len(members) != 1:
            raise ConfigException(f"{file} holds {len(members)} files; give a .zip with exactly one")
        inner = members[0]
        stream: IO[bytes] = stack.enter_context(archive.open(inner))
        return _known(file, inner.filename.lower()), stream, inner.file_size, stream.tell
    raw = stack.enter_context(file.open("rb"))
    if name.endswith(".gz"):
        unpacked = stack.enter_context(gzip.GzipFile(fileobj=raw))
        return _known(file, name.removesuffix(".gz")), cast("IO[bytes]", unpacked), size, raw.tell
    return _known(file, name), raw, size, raw.raw.tell if isinstance(raw, io.BufferedReader) else raw.tell


def _known(file: Path, name: str) -> str:
    if not name.endswith((".csv", ".jsonl")):
        raise ConfigException(f"{file} is not of a known kind; give a file that ends with {_ENDINGS}")
    return name


def _reading(file: Path, records: Iterator[Record]) -> Iterator[Record]:
    try:
        yield from records
    except (OSError, EOFError, zipfile.BadZipFile) as failure:
        raise StreamsException(f"{file} can't be read to its end: {failure}. Get the file again") from failure


def _chained(first: Iterable[Record], rest: Iterator[Record]) -> Iterator[Record]:
    yield from first
    yield from rest


class _JsonOfFields(dict[str, str]):
    """The JSON text of a CSV field, remembered."""

    def __init__(self, nulls: Collection[str]) -> None:
        super().__init__()
        self._nulls = nulls

    def __missing__(self, field: str) -> str:
        if len(self) >= _REMEMBERED:
            self.clear()
        if field == "" or field in self._nulls:
            text = "null"
        elif _NUMBER.fullmatch(field):
            text = field
        else:
            text = orjson.dumps(field).decode()
        self[field] = text
        return text


def _csv_records(file: Path, text: IO[str], key: str | None, nulls: frozenset[str]) -> Iterator[Record]:
    reader = csv.reader(text, strict=True)
    try:
        columns = next(reader, [])
        _check_columns(file, columns)
        at = _index_of_key(file, columns, key)
        json_of = _JsonOfFields(nulls).__getitem__
        names = (orjson.dumps(column).decode().replace("%", "%%") for column in columns)
        template = "{" + ",".join(f"{name}:%s" for name in names) + "}"
        for row in reader:
            if len(row) != len(columns):
                if not row:
                    continue
                found = f"{len(row)} fields where the first line names {len(columns)} columns"
                raise _bad_line(file, reader.line_num, found)
            value = (template % tuple(map(json_of, row))).encode()
            field = row[at] if at is not None else ""
            yield (field.encode() if field and field not in nulls else None), value
    except csv.Error as failure:
        raise _bad_line(file, reader.line_num, str(failure)) from failure
    except UnicodeDecodeError as failure:
        raise StreamsException(
            f"{file}: after line {reader.line_num}: not UTF-8 ({failure.reason}). Convert the file to UTF-8"
        ) from failure


def _check_columns(file: Path, columns: list[str]) -> None:
    if not columns:
        raise StreamsException(f"{file}:1: no column names; the first line of a CSV file names its columns")
    twice = sorted({column for column in columns if columns.count(column) > 1})
    if twice:
        raise StreamsException(f"{file}:1: columns named twice: {', '.join(twice)}. Rename one of each")


def _index_of_key(file: Path, columns: list[str], key: str | None) -> int | None:
    if key is None:
        return None
    if key not in columns:
        raise ConfigException(f"--key {key}: {file} has no such column; it has {', '.join(columns)}")
    return columns.index(key)


def _json_records(file: Path, stream: IO[bytes], key: str | None) -> Iterator[Record]:
    for number, line in enumerate(stream, start=1):
        value = line.strip()
        if not value:
            continue
        try:
            document = orjson.loads(value)
        except orjson.JSONDecodeError as failure:
            raise _bad_line(file, number, f"not JSON: {failure.msg} at column {failure.colno}") from failure
        if not isinstance(document, dict):
            raise _bad_line(file, number, f"a JSON {_kind(document)} where an object has to be")
        if key is not None and key not in document:
            raise ConfigException(f"--key {key}: {file}:{number}: no such column; there are {', '.join(document)}")
        yield (None if key is None else _key_text(document[key])), value


def _key_text(value: object) -> bytes | None:
    if value is None:
        return None
    return value.encode() if isinstance(value, str) else orjson.dumps(value)


def _kind(document: object) -> str:
    names = {list: "array", str: "string", bool: "boolean", type(None): "null"}
    return names.get(type(document), "number")


def _bad_line(file: Path, line: int, found: str) -> StreamsException:
    return StreamsException(f"{file}:{line}: {found}. Correct or remove the line")
