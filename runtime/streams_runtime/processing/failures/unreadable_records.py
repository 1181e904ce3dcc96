"""What becomes of a batch's records that can't be read, by the policy of the application."""

from __future__ import annotations

import logging
import time
from typing import Any

from streams_runtime.batch.encode import Headers
from streams_runtime.batch.read_accounts import Account
from streams_runtime.batch.stage import Emission, StageOutput
from streams_runtime.errors import DeserializationException
from streams_runtime.kafka.consumer.record_table import LATEST_TIME
from streams_runtime.pipeline.batch_input import BatchInput
from streams_runtime.processing.batch_runner import BatchRunner
from streams_runtime.processing.failures.error_policy import ErrorPolicy, FailedRecord

_LOGGER = logging.getLogger("streams_runtime.tasks")
_EXCEPTION = DeserializationException.__name__
_Row = dict[str, Any]


def dead_letters(policy: ErrorPolicy, runner: BatchRunner, batch: BatchInput, result: StageOutput) -> list[Emission]:
    """The letters that the policy sends for records that can't be read; those that it leaves out are told in the log.

    Raises:
        DeserializationException: there is one that is to `fail`.
        UserCodeException: the user's function could not decide on one.
    """
    letters = []
    for source, account in result.accounts.items():
        if account.first is None:
            continue
        failure = _failure(runner, source, account)
        if policy.kind == "fail":
            raise failure
        rows = _to_be_sent(policy, runner, source, batch)
        _LOGGER.warning(
            "%d records of source %s could not be read and were %s; the first is %s",
            account.broken,
            source,
            policy.done_with(len(rows), account.broken),
            failure,
        )
        if rows and policy.topic is not None:
            letters.append(_letters(rows, policy.topic))
    return letters


def _to_be_sent(policy: ErrorPolicy, runner: BatchRunner, source: str, batch: BatchInput) -> list[_Row]:
    """The records for which there are to be letters, each with `why` it can't be read. Raises as `dead_letters`."""
    if policy.kind == "continue":
        return []
    rows: list[_Row] = runner.broken(source, batch).to_pylist()
    for row in rows:
        row["why"] = runner.why_unreadable(source, row["key"], row["value"], row["time"])
    if policy.handler is None:
        return rows
    rows.sort(key=lambda row: (row["_topic"], row["_partition"], row["_offset"]))
    return [row for row in rows if policy.sends_letter(_error(row), _record(row))]


def _error(row: _Row) -> DeserializationException:
    return DeserializationException(row["_topic"], row["_partition"], row["_offset"], row["why"])


def _record(row: _Row) -> FailedRecord:
    place = {name: row[f"_{name}"] for name in ("topic", "partition", "offset", "headers")}
    return FailedRecord.read({**row, **place}, row["_timestamp"])


def _failure(runner: BatchRunner, source: str, account: Account) -> DeserializationException:
    record = account.first
    assert record is not None
    why = runner.why_unreadable(source, record.key, record.value, record.time)
    return DeserializationException(record.topic, record.partition, record.offset, why)


def _letters(rows: list[_Row], topic: str) -> Emission:
    """The records as they came, with headers that say why (named as in KIP-1034).

    A letter has its record's time, or that of the clock if no record may have such a time: brokers would refuse one in
    the future, and delete one of 1970.
    """
    now = int(time.time() * 1000)
    headers: list[Headers | None] = []
    for row in rows:
        why = {
            "exception": _EXCEPTION,
            "message": row["why"],
            "topic": row["_topic"],
            "partition": row["_partition"],
            "offset": row["_offset"],
        }
        own = [(each["key"], each["value"]) for each in row["_headers"] or []]
        headers.append([*own, *((f"__streams.errors.{name}", str(text).encode()) for name, text in why.items())])
    return Emission(
        topic,
        False,
        [row["key"] for row in rows],
        [row["value"] for row in rows],
        [row["_timestamp"] if 0 <= row["_timestamp"] <= LATEST_TIME else now for row in rows],
        headers,
    )
