"""Beside which steps a record that fails can be left out: where it alone decides whether it fails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from streams_runtime.api.flow.flows import UNKNOWN, Stream
from streams_runtime.api.flow.own_changelogs import row_inputs
from streams_runtime.api.flow.step_graph import is_suppressed, ordered_steps
from streams_runtime.api.reading.readable_parts import Parts
from streams_runtime.api.steps.topology_spec import StepSpec
from streams_runtime.errors import Mistake

_FIELD = "spec.processing.onProcessingError"


def processing_error_mistakes(parts: Parts, streams: Mapping[str, Stream]) -> Iterator[Mistake]:
    """Steps whose failures can't be blamed on a record.

    Of the rows of an aggregate or a toTable a step sees some, which ones depends on where batches end, so whether it
    fails would, too. Rows of a table of a topic are its records, but for what a groupBy or a join by a foreign key
    sends on, and changes that wait. Records that a join of streams gives for want of a match come with later ones, of
    which none is to blame.
    """
    action = "fail" if parts.processing is None else parts.processing.on_processing_error.action
    if action == "fail":
        return
    tables = frozenset(name for name, stream in streams.items() if stream.table)
    of_topics = _tables_of_topics(parts, tables)
    for step in (each.model for each in parts.steps if each.model):
        beside = f"{action} is not there yet beside the step {step.name!r}"
        for name in row_inputs(step, tables):
            if name in tables and not (name in of_topics and _takes_records(step)):
                found = f"{beside}, which takes its rows from the table {name!r}"
                remedy = "use fail, or let such steps take their records from streams, or from tables of topics by"
                yield Mistake(_FIELD, found, f"{remedy} where, select, toStream without suppress and joins by key")
        if step.join is not None and step.join.stream is not None and step.join.type != "inner":
            yield Mistake(_FIELD, f"{beside}, a {step.join.type} join of streams", "use fail, or an inner join")
    for sink in (each.model for each in parts.sinks if each.model):
        if sink.topic_by is not None and streams.get(sink.from_, UNKNOWN).table:
            found = f"{action} is not there yet beside a sink with topicBy of the table {sink.from_!r}"
            yield Mistake(_FIELD, found, "use fail, or put a step toStream: {} before the sink")


def _takes_records(step: StepSpec) -> bool:
    """Whether a step over a table of a topic sees each of its records, at once and beside what it was read from."""
    if step.join is not None:
        return step.join.key is None
    return step.group_by is None and not is_suppressed(step)


def _tables_of_topics(parts: Parts, tables: frozenset[str]) -> frozenset[str]:
    """The tables whose rows are records of topics, filtered, put in other columns, or beside each other by key."""
    found = {source.name for source in parts.sources if source.name in tables}
    for step in ordered_steps(parts):
        model = step.model
        if model is None or model.name not in tables or model.aggregate is not None or model.to_table is not None:
            continue
        if _takes_records(model) and all(name in found for name in row_inputs(model, tables)):
            found.add(model.name)
    return frozenset(found)
