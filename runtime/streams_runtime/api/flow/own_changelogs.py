"""Which tables of topics have a changelog of their own, since their topics have records that they leave out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from streams_runtime.api.flow.step_graph import inputs_of_step, tables_of
from streams_runtime.api.spec.kafka_spec import ProcessingSpec
from streams_runtime.api.steps.topology_spec import SinkSpec, SourceSpec, StepSpec


def tables_with_changelogs(
    processing: ProcessingSpec, sources: Sequence[SourceSpec], steps: Sequence[StepSpec], sinks: Iterable[SinkSpec]
) -> frozenset[str]:
    """The names of those sources: a table that were restored from its topic would get back what was left out.

    Records that can't be read are left out of every table, those over which a step fails of the tables whose rows steps
    or sinks take. Global tables are rebuilt from their topics, and leave out the same records each time.
    """
    tables = frozenset(source.name for source in sources if source.table is not None and not source.table.global_)
    if processing.on_deserialization_error.action != "fail":
        return tables
    if processing.on_processing_error.action == "fail":
        return frozenset()
    taken = {sink.from_ for sink in sinks}
    every_table = tables_of(sources, steps)
    for step in steps:
        taken.update(row_inputs(step, every_table))
    return tables & taken


def row_inputs(step: StepSpec, tables: frozenset[str]) -> tuple[str, ...]:
    """What the step takes its rows from, not what it looks up for them; of a join of two of the `tables` both."""
    inputs = inputs_of_step(step)
    return inputs if step.join is None or step.from_ in tables else inputs[:1]
