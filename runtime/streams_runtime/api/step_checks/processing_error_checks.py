"""Beside which steps a record that fails can be left out: where it alone decides whether it fails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from streams_runtime.api.flow.flows import UNKNOWN, Stream
from streams_runtime.api.flow.step_graph import inputs_of_step
from streams_runtime.api.reading.readable_parts import Parts
from streams_runtime.api.steps.topology_spec import StepSpec
from streams_runtime.errors import Mistake

_FIELD = "spec.processing.onProcessingError"


def processing_error_mistakes(parts: Parts, streams: Mapping[str, Stream]) -> Iterator[Mistake]:
    """Steps whose failures can't be blamed on a record.

    Which rows of a table a step sees depends on where batches end, so whether it fails over one would, too; and a table
    is restored from its topic, with the records that were left out. Records that a join of streams gives for want of a
    match come with later ones, of which none is to blame.
    """
    action = "fail" if parts.processing is None else parts.processing.on_processing_error.action
    if action == "fail":
        return
    for step in (each.model for each in parts.steps if each.model):
        beside = f"{action} is not there yet beside the step {step.name!r}"
        for name in _own_inputs(step):
            if streams.get(name, UNKNOWN).table:
                found = f"{beside}, which takes its rows from the table {name!r}"
                yield Mistake(_FIELD, found, "use fail, or let steps take their records from streams alone")
        if step.join is not None and step.join.stream is not None and step.join.type != "inner":
            yield Mistake(_FIELD, f"{beside}, a {step.join.type} join of streams", "use fail, or an inner join")
    for sink in (each.model for each in parts.sinks if each.model):
        if sink.topic_by is not None and streams.get(sink.from_, UNKNOWN).table:
            found = f"{action} is not there yet beside a sink with topicBy of the table {sink.from_!r}"
            yield Mistake(_FIELD, found, "use fail, or put a step toStream: {} before the sink")


def _own_inputs(step: StepSpec) -> tuple[str, ...]:
    """What the step takes its rows from, not what it looks up for them."""
    inputs = inputs_of_step(step)
    return inputs if step.join is None else inputs[:1]
