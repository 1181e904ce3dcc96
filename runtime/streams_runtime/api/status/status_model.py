"""What all models of the status have in common."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel


class StatusModel(BaseModel):
    """A frozen part of the status, with camelCase names in the document.

    Fields are in the order in which they are written. One that is not known is None, and the document leaves it out;
    the others have an empty value where a document has none. Raises ValidationError for a value of another type.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="ignore",
        strict=True,
        alias_generator=to_camel,
        populate_by_name=True,
        serialize_by_alias=True,
        # Open in the definition: an operator that is newer than it loses nothing of what it writes.
        json_schema_extra={"x-kubernetes-preserve-unknown-fields": True},
    )

    @classmethod
    def read(cls, document: object) -> Self:
        """A document as the API server has it, whoever wrote it.

        A field that is not there, or of another type, is one that was never written. Raises nothing.
        """
        if not document:
            return cls()
        try:
            return cls.model_validate(document, by_alias=True, by_name=False)
        except ValidationError as error:
            fields = [
                each["loc"] for each in error.errors(include_url=False, include_context=False, include_input=False)
            ]
        return cls.read(_without(document, fields)) if () not in fields else cls()

    def document(self) -> dict[str, Any]:
        """The document to write."""
        return self.model_dump(by_alias=True, exclude_none=True, exclude_unset=True)


def _without(document: object, fields: Sequence[tuple[str | int, ...]]) -> object:
    """A copy without the values at these places."""
    found: Any = copy.deepcopy(document)
    # The last entries of a list go first, so that the others stay where they are.
    for *way, last in sorted(fields, key=lambda field: [(isinstance(part, str), part) for part in field], reverse=True):
        holder = found
        for part in way:
            holder = holder[part]
        del holder[last]
    return found
