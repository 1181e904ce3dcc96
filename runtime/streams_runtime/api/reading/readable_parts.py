"""A resource as the parts that could be read, so that one mistake does not hide the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from streams_runtime.api.reading.field_paths import under
from streams_runtime.api.spec.autoscaling_spec import AutoscalingSpec
from streams_runtime.api.spec.disruption_spec import DisruptionBudgetSpec
from streams_runtime.api.spec.kafka_spec import InternalTopicsSpec, KafkaSpec, ProcessingSpec
from streams_runtime.api.spec.network_spec import NetworkPolicySpec
from streams_runtime.api.spec.pod_spec import StateSpec
from streams_runtime.api.spec.queries_spec import QueriesSpec
from streams_runtime.api.spec.resource import SparkSpec
from streams_runtime.api.spec.spec_model import Model
from streams_runtime.api.spec.template_spec import TemplateSpec
from streams_runtime.api.steps.topology_spec import SinkSpec, SourceSpec, StepSpec, TopologySpec

T = TypeVar("T", bound=Model)
_TOPOLOGY = "spec.topology"


@dataclass(frozen=True, slots=True)
class Part(Generic[T]):
    """One source, step or sink. `model` is None where it can't be read at all.

    `clean` is False where fields were left out to read it: then what is missing is not to be called missing.
    """

    path: str
    name: str | None
    model: T | None
    clean: bool


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything that checks look at; a section is None where it can't be read."""

    name: str | None
    application_id: str | None
    replicas: int | None
    autoscaling: AutoscalingSpec | None
    kafka: KafkaSpec | None
    internal_topics: InternalTopicsSpec | None
    processing: ProcessingSpec | None
    state: StateSpec | None
    queries: QueriesSpec | None
    spark: SparkSpec | None
    template: TemplateSpec | None
    disruption_budget: DisruptionBudgetSpec | None
    network_policy: NetworkPolicySpec | None
    topology: TopologySpec | None
    sources: tuple[Part[SourceSpec], ...]
    steps: tuple[Part[StepSpec], ...]
    sinks: tuple[Part[SinkSpec], ...]

    @property
    def nodes(self) -> tuple[Part[SourceSpec] | Part[StepSpec], ...]:
        """Sources and steps: all that a `from` can name."""
        return (*self.sources, *self.steps)


def salvage(document: Mapping[str, Any]) -> Parts:
    """The parts of any document, right or wrong."""
    metadata, spec = _mapping(document.get("metadata")), _mapping(document.get("spec"))
    topology = _mapping(spec.get("topology"))
    name = _text(metadata.get("name"))
    # Sources, steps and sinks are read one by one.
    lists = ("sources", "steps", "sinks")
    declared = {key: topology[key] for key in topology if key not in lists} if "topology" in spec else None
    return Parts(
        name=name,
        application_id=_text(spec["applicationId"]) if spec.get("applicationId") is not None else name,
        replicas=_replicas(spec.get("replicas", 1)),
        autoscaling=_autoscaling(spec.get("autoscaling")),
        kafka=_section(KafkaSpec, spec, "kafka"),
        internal_topics=_section(InternalTopicsSpec, spec, "internalTopics"),
        processing=_section(ProcessingSpec, spec, "processing"),
        state=_section(StateSpec, spec, "state"),
        queries=_section(QueriesSpec, spec, "queries"),
        spark=_section(SparkSpec, spec, "spark"),
        template=_section(TemplateSpec, spec, "template"),
        disruption_budget=_section(DisruptionBudgetSpec, spec, "disruptionBudget"),
        network_policy=_section(NetworkPolicySpec, spec, "networkPolicy"),
        topology=_section(TopologySpec, {"topology": declared}, "topology") if declared is not None else None,
        sources=_items(SourceSpec, topology, "sources"),
        steps=_items(StepSpec, topology, "steps"),
        sinks=_items(SinkSpec, topology, "sinks"),
    )


def _section(model: type[T], spec: Mapping[str, Any], field: str) -> T | None:
    """The section, with the defaults of the fields that can't be read."""
    value = spec.get(field, {})
    try:
        return model.model_validate(value)
    except ValidationError as error:
        wrong = {details["loc"][0] for details in error.errors() if details["loc"]}
    if not wrong:
        return None
    # Pydantic names a field whose name is no text by its repr.
    readable = {name: inner for name, inner in value.items() if isinstance(name, str) and name not in wrong}
    return model.model_validate(readable)


def _replicas(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _autoscaling(value: Any) -> AutoscalingSpec | None:
    """None also where a field of it can't be read: then nobody knows which range was meant."""
    try:
        return AutoscalingSpec.model_validate(value)
    except ValidationError:
        return None


def _items(model: type[T], topology: Mapping[str, Any], field: str) -> tuple[Part[T], ...]:
    items = topology.get(field)
    if not isinstance(items, Sequence) or isinstance(items, str):
        return ()
    return tuple(_part(model, item, under(_TOPOLOGY, field, index)) for index, item in enumerate(items))


def _part(model: type[T], item: Any, path: str) -> Part[T]:
    read, clean = _lenient(model, item)
    return Part(path, _text(_mapping(item).get("name")), read, clean)


def _lenient(model: type[T], value: Any) -> tuple[T | None, bool]:
    """The model, if need be without the fields that do not exist; whether it was read as it stands."""
    try:
        return model.model_validate(value), True
    except ValidationError as error:
        unknown = [details["loc"] for details in error.errors() if details["type"] == "extra_forbidden"]
        if len(unknown) < error.error_count() or not isinstance(value, Mapping):
            return None, False
    for loc in unknown:
        value = _without(value, loc)
    try:
        return model.model_validate(value), False
    except ValidationError:
        return None, False


def _without(value: Any, loc: Sequence[int | str]) -> Any:
    if isinstance(value, Mapping):
        kept = dict(value)
        if len(loc) == 1:
            kept.pop(str(loc[0]), None)
        elif loc[0] in kept:
            kept[str(loc[0])] = _without(kept[str(loc[0])], loc[1:])
        return kept
    if isinstance(value, list) and isinstance(loc[0], int) and len(loc) > 1:
        return [_without(item, loc[1:]) if index == loc[0] else item for index, item in enumerate(value)]
    return value


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
