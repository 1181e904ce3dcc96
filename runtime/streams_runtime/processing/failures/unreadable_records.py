"""What becomes of a batch's records that can't be read, by the policy of the application."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import Self

from streams_runtime.api.spec.kafka_spec import OnRecordError
from streams_runtime.batch.encode import Headers
from streams_runtime.batch.read_accounts import Account
from streams_runtime.batch.stage import Emission, StageOutput
from streams_runtime.errors import DeserializationException
from streams_runtime.kafka.consumer.record_table import LATEST_TIME
from streams_runtime.pipeline.batch_input import BatchInput
from streams_runtime.processing.batch_runner import BatchRunner

_LOGGER = logging.getLogger("streams_runtime.tasks")
_EXCEPTION = DeserializationException.__name__


@dataclass(frozen=True, slots=True)
class ErrorPolicy:
    """What becomes of a record that is refused: `fail`, `continue`, or `deadLetter` with its topic."""

    kind: str
    topic: str | None = None

    @classmethod
    def of(cls, declared: OnRecordError) -> Self:
        """As it is declared."""
        return cls(declared.action, declared.dead_letter.topic if declared.dead_letter else None)


def dead_letters(policy: ErrorPolicy, runner: BatchRunner, batch: BatchInput, result: StageOutput) -> list[Emission]:
    """The letters that the policy sends for records that can't be read; those that it leaves out are told in the log.

    Raises:
        DeserializationException: there is one, and the policy is `fail`.
    """
    letters = []
    for source, account in result.accounts.items():
        if account.first is None:
            continue
        failure = _failure(runner, source, account)
        if policy.kind == "fail":
            raise failure
        _LOGGER.warning(
            "%d records of source %s could not be read and were %s; the first is %s",
            account.broken,
            source,
            "left out" if policy.topic is None else f"sent to {policy.topic}",
            failure,
        )
        if policy.topic is not None:
            letters.append(_letters(runner, source, batch, policy.topic))
    return letters


def _failure(runner: BatchRunner, source: str, account: Account) -> DeserializationException:
    record = account.first
    assert record is not None
    why = runner.why_unreadable(source, record.key, record.value, record.time)
    return DeserializationException(record.topic, record.partition, record.offset, why)


def _letters(runner: BatchRunner, source: str, batch: BatchInput, topic: str) -> Emission:
    """The records as they came, with headers that say why (named as in KIP-1034).

    A letter has its record's time, or that of the clock if no record may have such a time: brokers would refuse one in
    the future, and delete one of 1970.
    """
    rows = runner.broken(source, batch).to_pylist()
    now = int(time.time() * 1000)
    headers: list[Headers | None] = []
    for row in rows:
        why = {
            "exception": _EXCEPTION,
            "message": runner.why_unreadable(source, row["key"], row["value"], row["time"]),
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
