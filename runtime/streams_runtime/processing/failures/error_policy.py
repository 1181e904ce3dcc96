"""What becomes of a record that fails: as the application says, or a function of the user's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self, cast

from streams_runtime.api.spec.kafka_spec import OnRecordError
from streams_runtime.errors import ConfigException, StreamsException, UserCodeException
from streams_runtime.user_code import load, where_in

Decision = Literal["fail", "continue", "deadLetter"]
_DECISIONS = ("fail", "continue", "deadLetter")


@dataclass(frozen=True, slots=True)
class FailedRecord:
    """A record as a function of the user's sees it that decides what becomes of it.

    It is the one that was read, as it came: `topic`, `partition` and `offset` say where. One that a sink's topic
    refuses is as it would have been written: `topic` is that topic, None where an expression gives none, and it has no
    partition and no offset. `timestamp` is in ms since 1970.
    """

    topic: str | None
    partition: int | None
    offset: int | None
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()

    @classmethod
    def read(cls, row: Mapping[str, Any], timestamp: int) -> Self:
        """Of a row with the record's columns as a topic has them."""
        headers = tuple((each["key"], each["value"]) for each in row["headers"] or [])
        return cls(row["topic"], row["partition"], row["offset"], timestamp, row["key"], row["value"], headers)

    def __str__(self) -> str:
        if self.offset is None:
            return f"of the key {self.key!r:.200} for {self.topic}"
        return f"{self.topic}-{self.partition}@{self.offset}"


@dataclass(frozen=True, slots=True)
class ErrorHandler:
    """A function of the user's that decides record by record."""

    reference: str
    function: Callable[[StreamsException, FailedRecord], object]
    has_letters: bool

    @classmethod
    def of(cls, reference: str, has_letters: bool) -> Self:
        """Imports the function's module. Raises ConfigException: correct the name, or the module."""
        found = load(reference)
        if not callable(found):
            raise ConfigException(f"{reference!r} is {found!r}, which is no function; name one")
        return cls(reference, found, has_letters)

    def decide(self, error: StreamsException, record: FailedRecord) -> Decision:
        """What the function says. Raises UserCodeException: it failed, or says what nobody can do."""
        try:
            found = self.function(error, record)
        except (Exception, SystemExit) as failure:
            raise self._wrong(record, where_in(failure), "Mend it") from failure
        if not isinstance(found, str) or found not in _DECISIONS:
            said = f"it returned {found!r:.100}"
            raise self._wrong(record, said, "Let it return fail, continue or deadLetter") from error
        if found == "deadLetter" and not self.has_letters:
            remedy = f"Give them one beside the function: {{python: {self.reference}, deadLetter: {{topic: NAME}}}}"
            raise self._wrong(record, "it returned deadLetter, and no topic is there for letters", remedy) from error
        return cast(Decision, found)

    def _wrong(self, record: FailedRecord, what: str, remedy: str) -> UserCodeException:
        reason = f"the function {self.reference} could not decide on the record {record}: {what}"
        return UserCodeException(reason, f"{remedy}. Nothing of this batch was committed", of_a_record=False)


@dataclass(frozen=True, slots=True)
class ErrorPolicy:
    """What becomes of a record that is refused: `fail`, `continue`, or `deadLetter` with its topic; or `python`, a
    function of the user's that decides.
    """

    kind: str
    topic: str | None = None
    handler: ErrorHandler | None = None

    @classmethod
    def of(cls, declared: OnRecordError) -> Self:
        """As it is declared. Raises ConfigException: the function is not there."""
        topic = declared.dead_letter.topic if declared.dead_letter else None
        handler = None if declared.python is None else ErrorHandler.of(declared.python, topic is not None)
        return cls(declared.action, topic, handler)

    def sends_letter(self, error: StreamsException, record: FailedRecord) -> bool:
        """Whether there is to be a letter for one record.

        Raises:
            StreamsException: `error` itself, if the record is to fail.
            UserCodeException: the user's function could not decide.
        """
        decision = self.kind if self.handler is None else self.handler.decide(error, record)
        if decision == "fail":
            raise error
        return decision == "deadLetter"

    def done_with(self, letters: int, records: int) -> str:
        """What has become of so many records, of which letters went out, in the words of the log."""
        if letters == records:
            return f"sent to {self.topic}"
        if not letters:
            return "left out"
        return f"left out, but for {letters} that were sent to {self.topic}"
