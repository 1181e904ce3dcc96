"""A function of the user's decides on each record that fails: what it is given, what it may say, and what follows."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from record_decisions import ASKED
from refused_applications import application

from streams_runtime import FailedRecord, InstanceSettings, StreamsClient
from streams_runtime.api import parse_application
from streams_runtime.api.spec.kafka_spec import OnRecordError
from streams_runtime.batch.read_accounts import Account, BrokenRecord
from streams_runtime.batch.stage import StageOutput
from streams_runtime.builder.resolve_python import read_with_python
from streams_runtime.errors import (
    ConfigException,
    DeserializationException,
    FailedProcessingException,
    StreamsException,
    UserCodeException,
)
from streams_runtime.kafka.consumer.record_table import RAW_SCHEMA
from streams_runtime.pipeline.batch_input import BatchInput
from streams_runtime.processing.failures.error_policy import ErrorHandler, ErrorPolicy
from streams_runtime.processing.failures.failed_records import letter_of
from streams_runtime.processing.failures.unreadable_records import dead_letters

AT = 1_700_000_000_000  # ms
BATCH = BatchInput((), RAW_SCHEMA.empty_table())
FAILED = FailedProcessingException("cast(user as int) failed: CAST_INVALID_INPUT", "Correct it")


class Unreadable:
    """What a runner says of a source whose records can't be read; each has a header that says what to do."""

    def __init__(self, *said: str) -> None:
        self.rows = [
            {
                "_topic": "in",
                "_partition": 0,
                "_offset": offset,
                "_timestamp": AT + offset,
                "_headers": [{"key": "do", "value": each.encode()}],
                "key": None,
                "value": f"{{{offset}".encode(),
                "time": None,
            }
            for offset, each in enumerate(said)
        ]

    def broken(self, source: str, batch: BatchInput) -> pa.Table:
        assert source == "in"
        return pa.Table.from_pylist(self.rows[::-1])  # in no order

    def why_unreadable(self, source: str, key: bytes | None, value: bytes | None, time: int | None) -> str:
        return f"no JSON: {value!r}"

    @property
    def result(self) -> StageOutput:
        first = BrokenRecord("in", 0, 0, None, b"{0", None)
        return StageOutput(accounts={"in": Account(9, len(self.rows), first)})


def policy(function: str, topic: str | None = "letters") -> ErrorPolicy:
    return ErrorPolicy("python", topic, ErrorHandler.of(f"record_decisions:{function}", topic is not None))


def letters(unreadable: Unreadable, given: ErrorPolicy) -> list[Any]:
    ASKED.clear()
    return dead_letters(given, unreadable, BATCH, unreadable.result)  # type: ignore[arg-type]


def record(said: str = "deadLetter", offset: int = 7) -> pa.Table:
    """One that was read."""
    headers = [{"key": "do", "value": said.encode()}]
    time = datetime.fromtimestamp(AT / 1000, UTC)
    row = {"topic": "in", "partition": 1, "offset": offset, "timestamp": time, "key": b"k", "value": b"v"}
    return pa.Table.from_pylist([{**row, "headers": headers}])


def test_of_records_that_cannot_be_read_each_has_its_own_decision(caplog: pytest.LogCaptureFixture) -> None:
    (sent,) = letters(Unreadable("deadLetter", "continue", "continue", "deadLetter"), policy("by_header"))
    assert (sent.topic, sent.values, sent.timestamps) == ("letters", [b"{0", b"{3"], [AT, AT + 3])
    assert dict(sent.headers[1])["__streams.errors.message"] == b"no JSON: b'{3'"
    assert [kind for kind, _ in ASKED] == ["DeserializationException"] * 4
    assert ASKED[3][1] == FailedRecord("in", 0, 3, AT + 3, None, b"{3", (("do", b"deadLetter"),))
    (said,) = (each.getMessage() for each in caplog.records)
    assert "4 records of source in could not be read and were left out, but for 2 that were sent to letters" in said


@pytest.mark.parametrize(
    ("said", "words"), [("continue", "were left out; the"), ("deadLetter", "were sent to letters")]
)
def test_the_log_says_what_became_of_all(said: str, words: str, caplog: pytest.LogCaptureFixture) -> None:
    assert len(letters(Unreadable(said, said), policy("by_header"))) == (said == "deadLetter")
    assert words in caplog.text


def test_the_first_one_that_is_to_fail_ends_the_batch() -> None:
    with pytest.raises(DeserializationException, match=r"record in-0@1 can't be read: no JSON: b'\{1'"):
        letters(Unreadable("continue", "fail", "deadLetter", "fail"), policy("by_header"))
    assert [each.offset for _, each in ASKED] == [0, 1]


def test_a_record_that_fails_alone_is_decided_on_too(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    ASKED.clear()
    sent = letter_of(policy("by_header"), record("deadLetter"), FAILED)
    assert sent is not None
    assert (sent.topic, sent.keys, sent.timestamps) == ("letters", [b"k"], [AT])
    assert [("FailedProcessingException", FailedRecord("in", 1, 7, AT, b"k", b"v", (("do", b"deadLetter"),)))] == ASKED
    assert letter_of(policy("by_header"), record("continue"), FAILED) is None
    assert [each.getMessage().partition(":")[0] for each in caplog.records] == [
        "the record in-1@7 failed and was sent to letters",
        "the record in-1@7 failed and was left out",
    ]
    with pytest.raises(FailedProcessingException) as failing:
        letter_of(policy("by_header"), record("fail"), FAILED)
    assert failing.value is FAILED


@pytest.mark.parametrize(
    ("function", "topic", "words"),
    [
        ("raising", "letters", "on the record in-1@7: KeyError: 'in' (record_decisions.py, line "),
        ("unsure", "letters", "it returned None. Let it return fail, continue or deadLetter"),
        ("columnar", "letters", "it returned array(['continue', 'fail']"),
        ("by_header", "letters", "it returned 'Continue'. Let it return"),
        ("by_error", None, "it returned deadLetter, and no topic is there for letters. Give them one beside"),
    ],
)
def test_a_function_that_cannot_decide_ends_the_batch_and_loses_nothing(
    function: str, topic: str | None, words: str
) -> None:
    with pytest.raises(UserCodeException) as failing:
        letter_of(policy(function, topic), record("Continue"), FAILED)
    assert f"record_decisions:{function} could not decide" in str(failing.value)
    assert words in str(failing.value)
    assert not failing.value.of_a_record  # or the record would be left out


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(ConfigException, match="is 'continue', which is no function"):
        ErrorHandler.of("record_decisions:SAYING", True)
    with pytest.raises(ConfigException, match="did you mean 'by_header'"):
        ErrorHandler.of("record_decisions:by_headr", True)


@pytest.mark.parametrize(
    "short",
    [
        "fail",
        {"deadLetter": {"topic": "t"}},
        {"python": "a:b"},
        {"python": "a.b:c", "deadLetter": {"topic": "t"}},
    ],
)
def test_it_is_written_as_it_was_read(short: Any) -> None:
    read = OnRecordError.model_validate(short)
    assert read.model_dump(by_alias=True) == short
    assert OnRecordError.model_validate(read.model_dump(by_alias=True)) == read


def test_functions_are_looked_for_where_code_is() -> None:
    fields = ("onDeserializationError", "onProcessingError", "onProductionError")
    names = ("record_decisions:by_headr", "record_decisions:SAYING", "record_decisions:by_error")
    processing = {field: {"python": name} for field, name in zip(fields, names, strict=True)}
    given = application(processing=processing)
    assert parse_application(given).spec.processing.error_handlers == {
        f"spec.processing.{field}.python": name for field, name in zip(fields, names, strict=True)
    }
    found = {each.path: str(each) for each in read_with_python(given, folder=Path(__file__).parent).mistakes}
    assert found.keys() == {f"spec.processing.{field}.python" for field in fields[:2]}
    assert "did you mean 'by_header'" in found["spec.processing.onDeserializationError.python"]
    assert "name a plain function" in found["spec.processing.onProcessingError.python"]


def test_letters_of_a_policy_without_function_are_as_before() -> None:
    given = Unreadable("x", "y")
    assert letters(given, ErrorPolicy("continue")) == []
    (sent,) = letters(given, ErrorPolicy("deadLetter", "letters"))
    assert sorted(sent.values) == [b"{0", b"{1"]
    assert ASKED == []
    with pytest.raises(StreamsException):
        letters(given, ErrorPolicy("fail"))


@pytest.mark.parametrize("field", ["onDeserializationError", "onProcessingError", "onProductionError"])
def test_a_client_is_not_made_without_its_function(field: str, tmp_path: Path) -> None:
    given = parse_application(application(processing={field: {"python": "record_decisions:by_headr"}}))
    with pytest.raises(ConfigException, match="did you mean 'by_header'"):
        StreamsClient(given, InstanceSettings("i-0", "127.0.0.1:1", tmp_path))
