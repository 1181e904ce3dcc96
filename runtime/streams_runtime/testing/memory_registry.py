"""The schema registry of a test driver: schemas by id in memory, as the real one gives them."""

from __future__ import annotations

from streams_runtime.kafka.schema_registry import FoundSchema


class LocalSchemas:
    """Takes every schema under every subject: what is compatible is a real registry's to say."""

    def __init__(self) -> None:
        self._known: list[FoundSchema] = []
        self.subjects: dict[str, list[int]] = {}
        """The ids of each subject's schemas, in the order in which they came."""

    def schema(self, id: int) -> FoundSchema | None:
        """The schema of this id, which begins at 1; None where there is none."""
        return self._known[id - 1] if 0 < id <= len(self._known) else None

    def id_of(self, subject: str, text: str, kind: str = "AVRO") -> int:
        """The id of the schema, which is the same for every subject that has it."""
        given = FoundSchema(text, kind)
        if given not in self._known:
            self._known.append(given)
        number = self._known.index(given) + 1
        ids = self.subjects.setdefault(subject, [])
        if number not in ids:
            ids.append(number)
        return number
