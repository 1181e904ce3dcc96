"""What the resource may say one day: each refused by name, with the nearest way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streams_runtime.api.spec.kafka_spec import ProcessingSpec
from streams_runtime.api.steps.topology_spec import SourceSpec
from streams_runtime.errors import Mistake

NOT_YET_FIELDS: dict[tuple[str, str], str] = {
    ("StepSpec", "cogroup"): "use merge and then aggregate",
    ("HoppingSpec", "timezone"): "use tumbling with whole days, or leave timezone out; an offset goes by UTC",
}
"""(model, field) of the grammar that is planned, and what would do instead."""


def global_table_limits(processing: ProcessingSpec, sources: Iterable[SourceSpec]) -> Iterator[Mistake]:
    """Sending records of a global table elsewhere, which each instance would do, at each rebuilding of its copy."""
    tables = [source.name for source in sources if source.table is not None and source.table.global_]
    if tables and processing.on_deserialization_error.dead_letter is not None:
        found = f"deadLetter is not there yet for global tables ({', '.join(tables)}), which every instance reads"
        yield Mistake("spec.processing.onDeserializationError", found, "use fail or continue")
