"""From a file, a text or a mapping to a StreamsApplication, with all mistakes at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from streams_runtime.api.checks.setting_checks import setting_mistakes
from streams_runtime.api.checks.topic_checks import internal_topic_fields, topic_mistakes
from streams_runtime.api.flow.step_graph import graph_mistakes
from streams_runtime.api.reading.expression_marks import placed
from streams_runtime.api.reading.field_paths import position
from streams_runtime.api.reading.mistakes import from_validation
from streams_runtime.api.reading.python_origins import retold
from streams_runtime.api.reading.readable_parts import Parts, salvage
from streams_runtime.api.reading.yaml_document import read_document
from streams_runtime.api.spec.kafka_spec import KafkaSpec
from streams_runtime.api.spec.limits import SHORTEN, excess, oversized
from streams_runtime.api.spec.resource import StreamsApplication
from streams_runtime.api.sql.declared_expressions import SqlField, sql_fields
from streams_runtime.api.step_checks.shape_checks import shape_mistakes
from streams_runtime.api.step_checks.stream_checks import stream_mistakes
from streams_runtime.errors import ConfigException, InvalidApplicationException, Mistake


@dataclass(frozen=True, slots=True)
class Reading:
    """What came of reading a resource: `application` is None exactly when there are mistakes.

    `sql` holds the expressions and schemas, and `kafka` the client properties, of what could be read. `origins`: what
    a user knows parts of the document as that are in no file, by their paths.
    """

    application: StreamsApplication | None
    mistakes: tuple[Mistake, ...]
    sql: tuple[SqlField, ...]
    kafka: KafkaSpec | None
    document: Mapping[str, Any]
    origins: Mapping[str, str] = field(default_factory=dict)
    functions: tuple[str, ...] = ()
    """Names of the user's own functions, which expressions may call."""

    @property
    def reported(self) -> tuple[Mistake, ...]:
        """The mistakes as a user is told them: with the place in their code instead of one in no file of theirs."""
        return retold(self.mistakes, self.origins)

    def with_more(self, found: Iterable[Mistake]) -> Reading:
        """The same with what other checks found; of two mistakes in one field the first is kept."""
        fields = {mistake.path for mistake in self.mistakes}
        more = [mistake for mistake in found if mistake.path not in fields]
        if not more:
            return self
        return replace(self, application=None, mistakes=_in_order(self.document, [*self.mistakes, *more]))


def load_application(file: str | Path) -> StreamsApplication:
    """The application in a YAML or JSON file.

    Raises InvalidApplicationException, which lists every mistake, and ConfigException for an unreadable file.
    """
    return accepted(read_application(read_text(file), str(file)))


def parse_application(given: str | Mapping[str, Any], source: str = "application") -> StreamsApplication:
    """The application in a text, or in a mapping as the API server gives it; mistakes call it `source`.

    Raises InvalidApplicationException, which lists every mistake.
    """
    return accepted(read_application(given, source))


def read_text(file: str | Path) -> str:
    """The file's text. Raises ConfigException: correct the file's name, its rights or its encoding."""
    try:
        return Path(file).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ConfigException(f"there is no file {file}; give the path of a StreamsApplication") from None
    except UnicodeDecodeError:
        raise ConfigException(f"{file} is not UTF-8 text; save it as UTF-8") from None
    except OSError as error:
        raise ConfigException(f"{file} can't be read: {error.strerror}; give the path of a readable file") from error


def read_application(given: str | Mapping[str, Any], source: str = "application") -> Reading:
    """The same as `parse_application`, with the mistakes as values."""
    try:
        document = read_document(given, source) if isinstance(given, str) else given
    except InvalidApplicationException as error:
        return Reading(None, error.mistakes, (), None, {})
    if too_large := excess(document):
        return Reading(None, (Mistake(source, too_large, SHORTEN),), (), None, {})
    parts = salvage(document)
    application: StreamsApplication | None = None
    found = [*oversized(document.get("spec"), "spec")]
    try:
        application = StreamsApplication.model_validate(document)
    except ValidationError as error:
        found += from_validation(error, StreamsApplication)
    found += placed(_meaning_mistakes(parts), given if isinstance(given, str) else None)
    mistakes = _in_order(document, found)
    return Reading(
        application=application if not mistakes else None,
        mistakes=mistakes,
        sql=tuple(sql_fields(parts)),
        kafka=parts.kafka,
        document=document,
        functions=tuple(parts.topology.functions) if parts.topology is not None else (),
    )


def _meaning_mistakes(parts: Parts) -> Iterator[Mistake]:
    yield from setting_mistakes(parts, internal_topic_fields(parts))
    yield from shape_mistakes(parts)
    yield from graph_mistakes(parts)
    yield from topic_mistakes(parts)
    yield from stream_mistakes(parts)


def _in_order(document: Mapping[str, Any], mistakes: Iterable[Mistake]) -> tuple[Mistake, ...]:
    """Each once, in the order of the file."""
    return tuple(sorted(dict.fromkeys(mistakes), key=lambda mistake: position(document, mistake.path)))


def accepted(reading: Reading) -> StreamsApplication:
    """The application that was read. Raises InvalidApplicationException, which lists every mistake."""
    if reading.application is None:
        raise InvalidApplicationException(reading.reported)
    return reading.application
