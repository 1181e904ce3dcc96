"""The schema registry of a test driver: schemas by id in memory, as the real one gives them."""

from __future__ import annotations

from streams_runtime.kafka.schema_registry import FoundSchema


class LocalSchemas:
    """Takes every schema under every subject: what is compatible is a real registry's to say."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self.subjects: dict[str, list[int]] = {}
        """The ids of each subject's schemas, in the order in which they came."""

    def schema(self, id: int) -> FoundSchema | None:
        """The schema of this id, which begins at 1; None where there is none."""
        return FoundSchema(self._texts[id - 1], "AVRO", True) if 0 < id <= len(self._texts) else None

    def id_of(self, subject: str, text: str) -> int:
        """The id of the schema, which is the same for every subject that has it."""
        if text not in self._texts:
            self._texts.append(text)
        number = self._texts.index(text) + 1
        ids = self.subjects.setdefault(subject, [])
        if number not in ids:
            ids.append(number)
        return number
