"""Files as records: what becomes a number, a string, null; and which line is wrong."""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams_runtime.cli.records.record_files import Record, open_records
from streams_runtime.errors import ConfigException, StreamsException


def read(file: Path, key: str | None = None, nulls: tuple[str, ...] = ()) -> list[Record]:
    with open_records(file, key, nulls) as records:
        return [record for chunk in records.chunks(2) for record in chunk]


def csv_file(folder: Path, text: str) -> Path:
    file = folder / "rows.csv"
    file.write_text(text, encoding="utf-8")
    return file


def value_of(folder: Path, field: str, nulls: tuple[str, ...] = ()) -> bytes:
    [(_, value)] = read(csv_file(folder, f"a,b\n1,{field}\n"), nulls=nulls)
    return value.removeprefix(b'{"a":1,"b":').removesuffix(b"}")


@pytest.mark.parametrize("text", ["0", "7", "-7", "1.50", "-0.25", "1e-05", "2.5E+3", "12345678901234567890123"])
def test_numbers_stay_as_they_are_written(tmp_path: Path, text: str) -> None:
    assert value_of(tmp_path, text) == text.encode()


@pytest.mark.parametrize(
    "text",
    [
        "007",
        "1E5",
        "+5",
        "1.",
        ".5",
        "0x1F",
        "1_000",
        "NaN",
        "Infinity",
        "-",
        "1 2",
        " 1",
        "2013-01-01T10:00:00Z",
        "true",
        "\u0661",
    ],
)
def test_everything_else_is_a_string(tmp_path: Path, text: str) -> None:
    assert json.loads(value_of(tmp_path, text)) == text


def test_an_empty_field_is_null_and_na_is_not(tmp_path: Path) -> None:
    assert value_of(tmp_path, "") == b"null"
    assert value_of(tmp_path, "NA") == b'"NA"'


def test_na_is_null_when_asked_for(tmp_path: Path) -> None:
    assert value_of(tmp_path, "NA", nulls=("NA", "-")) == b"null"


def test_types_are_per_value_not_per_column(tmp_path: Path) -> None:
    records = read(csv_file(tmp_path, "x\n1\nA1\n\n2.0\n"))
    assert [value for _, value in records] == [b'{"x":1}', b'{"x":"A1"}', b'{"x":2.0}']


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\x00"), max_size=30))
def test_any_text_comes_out_as_json_that_reads_back(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    file = tmp_path_factory.mktemp("any") / "rows.csv"
    quoted = text.replace('"', '""')
    file.write_bytes(f'"a%","b""c"\n"x","{quoted}"\n'.encode())
    [(_, value)] = read(file)
    found = json.loads(value)
    assert found["a%"] == "x"
    assert found['b"c'] == (text or None) or found['b"c'] == json.loads(text)


def test_the_keys_text_is_the_field_as_it_is_written(tmp_path: Path) -> None:
    file = csv_file(tmp_path, "a,b\n007,x\n1.50,x\n,x\nNA,x\n")
    assert [key for key, _ in read(file, "a", ("NA",))] == [b"007", b"1.50", None, None]


def test_without_a_key_column_records_have_no_key(tmp_path: Path) -> None:
    assert [key for key, _ in read(csv_file(tmp_path, "a\n1\n"))] == [None]


def test_a_key_column_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    file = csv_file(tmp_path, "carrier,flight\nUA,1\n")
    with pytest.raises(ConfigException, match=r"--key tail.*carrier, flight"), open_records(file, "tail"):
        pass


@pytest.mark.parametrize(
    ("text", "line"),
    [("a,b\n1,2\n3\n", 3), ("a,b\n1,2\n3,4,5\n", 3), ('a,b\n1,"2\n3,4\n', 3), ('a\n"x"y\n', 2)],
)
def test_a_csv_line_that_does_not_fit_is_named_with_its_number(tmp_path: Path, text: str, line: int) -> None:
    with pytest.raises(StreamsException, match=rf"rows\.csv:{line}: "):
        read(csv_file(tmp_path, text))


def test_a_csv_file_with_a_column_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StreamsException, match="named twice: a"):
        read(csv_file(tmp_path, "a,b,a\n1,2,3\n"))


def test_an_empty_csv_file_is_refused_and_one_with_only_names_has_no_records(tmp_path: Path) -> None:
    with pytest.raises(StreamsException, match="no column names"):
        read(csv_file(tmp_path, ""))
    assert read(csv_file(tmp_path, "a,b\n")) == []


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_bytes(b"\xef\xbb\xbfa\n1\n")
    assert read(file, "a") == [(b"1", b'{"a":1}')]


def test_a_file_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_bytes("a\ncafé\n".encode("latin-1"))
    with pytest.raises(StreamsException, match="not UTF-8"):
        read(file)


def test_json_lines_are_written_as_they_stand(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_bytes(b'{"k": "x", "n": 1.50}\r\n\n  {"k":null,"n":12345678901234567890123}\n{"n":1,"k":7}')
    assert read(file, "k") == [
        (b"x", b'{"k": "x", "n": 1.50}'),
        (None, b'{"k":null,"n":12345678901234567890123}'),
        (b"7", b'{"n":1,"k":7}'),
    ]


@pytest.mark.parametrize("line", ["{", '{"a":}', "[1]", '"x"', "1", "null", "{} {}"])
def test_a_json_line_that_is_no_object_is_named_with_its_number(tmp_path: Path, line: str) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"a":1}\n{"a":2}\n{"a":3}\n' + line + "\n")
    with pytest.raises(StreamsException, match=r"rows\.jsonl:4: "):
        read(file)


def test_a_json_line_without_the_key_column_is_named_with_the_columns_it_has(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"a":1,"k":2}\n{"a":1,"b":2}\n')
    with pytest.raises(ConfigException, match=r"--key k: .*rows\.jsonl:2.*a, b"):
        read(file, "k")


@pytest.mark.parametrize("ending", ["csv.gz", "jsonl.gz", "zip"])
def test_packed_files_are_read_as_they_were_before(tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"rows.{ending}"
    data = b'{"a":1}\n' if ending == "jsonl.gz" else b"a\n1\n"
    if ending == "zip":
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("folder/inner.csv", data)
    else:
        file.write_bytes(gzip.compress(data))
    assert read(file) == [(None, b'{"a":1}')]


def test_a_zip_with_several_files_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "rows.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.csv", "a\n")
        archive.writestr("b.csv", "a\n")
    with pytest.raises(ConfigException, match="holds 2 files"):
        read(file)


@pytest.mark.parametrize("name", ["rows.parquet", "rows", "rows.txt.gz"])
def test_an_ending_that_is_not_known_is_refused_with_those_that_are(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(gzip.compress(b""))
    with pytest.raises(ConfigException, match=r"\.jsonl"):
        read(tmp_path / name)


@pytest.mark.parametrize("name", ["absent.csv", "broken.zip", "broken.csv.gz", "cut.csv.gz"])
def test_a_file_that_cannot_be_read_is_named_with_the_reason(tmp_path: Path, name: str) -> None:
    if name.startswith("broken"):
        (tmp_path / name).write_bytes(b"this is neither")
    if name.startswith("cut"):
        (tmp_path / name).write_bytes(gzip.compress(b"a\n" + b"1\n" * 1000)[:-10])
    with pytest.raises(StreamsException, match=rf"{name} can't be read"):
        read(tmp_path / name)
