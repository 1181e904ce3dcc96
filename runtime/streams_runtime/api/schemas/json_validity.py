"""Whether values are valid by a JSON Schema, as the library jsonschema-rs has it; it fetches nothing from anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jsonschema_rs import Validator

_SHOWN = 200  # characters of what the library says, which quotes values
# An expression takes 4 ms and this much memory at most, and the operator reads the schemas of all applications.
_PATTERN_BYTES = 300_000
_PATTERNS = 200


class Validity:
    """Judges values by one schema. Its formats are no rules: json_schema_values sees to times, which are columns."""

    def __init__(self, document: Any) -> None:
        """Compiles the schema.

        Raises:
            ValueError: it is no schema of its draft, or refers to what is not in it; the message says where.
        """
        self._validator = _compiled(document)

    def mistake(self, value: Any) -> str | None:
        """The first thing for which a value (as JSON has it) is not valid, and where that is in it; None: it is."""
        if self._validator.is_valid(value):
            return None
        error = next(iter(self._validator.iter_errors(value)))
        return f"{_shown(error.message)} at {pointer(*error.instance_path)}"


def pointer(*path: object) -> str:
    """The place of a value in a document, as a JSON Pointer in a URI's fragment."""
    return "".join(["#", *(f"/{str(each).replace('~', '~0').replace('/', '~1')}" for each in path)])


def _compiled(document: Any) -> Validator:
    # Only here: the library takes 15 MB, and most applications have no such schema.
    from jsonschema_rs import FancyRegexOptions, ReferencingError, ValidationError, validator_for

    if len(set(_patterns(document))) > _PATTERNS:
        raise ValueError(f"more than {_PATTERNS} patterns at #")
    limits = FancyRegexOptions(size_limit=_PATTERN_BYTES, dfa_size_limit=_PATTERN_BYTES)
    try:
        made: Validator = validator_for(document, validate_formats=False, offline=True, pattern_options=limits)
    except ValidationError as error:
        raise ValueError(f"{_shown(error.message)} at {pointer(*error.instance_path)}") from error
    except ReferencingError as error:
        raise ValueError(_shown(str(error))) from error
    return made


def _patterns(document: Any) -> Iterator[str]:
    """What may be a regular expression, wherever it stands."""
    if isinstance(document, list):
        for each in document:
            yield from _patterns(each)
    elif isinstance(document, dict):
        for name, value in document.items():
            if name == "pattern" and isinstance(value, str):
                yield value
            if name == "patternProperties" and isinstance(value, dict):
                yield from value
            yield from _patterns(value)


def _shown(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
