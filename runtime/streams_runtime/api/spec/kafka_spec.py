"""The parts of the resource that are about Kafka: the cluster, the internal topics, the processing."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Literal

from pydantic import (
    Field,
    ModelWrapValidatorHandler,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from streams_runtime.api.spec.spec_model import Model
from streams_runtime.api.spec.spec_values import Duration, OffsetReset, Property, format_duration, refusal

_COMMIT_INTERVAL = timedelta(milliseconds=100)
_POLL_DURATION = timedelta(milliseconds=100)
_WARM_UP_TIMEOUT = timedelta(hours=1)
_MAX_TASK_IDLE = timedelta(0)
ACCEPTABLE_RECOVERY_LAG = 10_000
"""Records that a warm task may lag; Kafka Streams' default."""
MOST_TAGS = 5
"""Keys of tags; as in Kafka Streams."""
LEAST_POLL, MOST_POLL = timedelta(milliseconds=1), timedelta(seconds=10)


class SecretRef(Model):
    """A Secret in the application's namespace."""

    name: str = Field(min_length=1, description="Name of the Secret; each of its keys is a client property.")


class SchemaRegistrySpec(Model):
    """The registry that holds the schemas of Avro, Protobuf and JSON."""

    url: str = Field(description="http:// or https:// address; several, joined by commas, are tried in turn.")
    config: dict[str, Property] = Field(
        default_factory=dict,
        description="Properties of the registry's client: basic.auth.user.info, ssl.ca.location,"
        " ssl.certificate.location, ssl.key.location, ssl.key.password, proxy.",
    )
    secret_ref: SecretRef | None = Field(
        default=None,
        description="Secret client properties: basic.auth.user.info (user:password), and ssl.ca.pem,"
        " ssl.certificate.pem and ssl.key.pem as PEM text.",
    )
    auto_register: bool = Field(
        default=True,
        description="Whether the schemas of sinks are registered at the start. false: they have to be there.",
    )


class KafkaSpec(Model):
    """The Kafka cluster and how clients reach it."""

    bootstrap_servers: str | None = Field(
        default=None,
        description="host:port, several joined by commas. Needed in a cluster; a local run starts its own"
        " broker or is given the address.",
    )
    config: dict[str, Property] = Field(
        default_factory=dict,
        description="Client properties by librdkafka's names; those the runtime sets are refused.",
    )
    secret_ref: SecretRef | None = Field(default=None, description="Secret client properties (SASL, TLS).")
    offset_reset: OffsetReset = Field(
        default="earliest",
        description="Kafka's auto.offset.reset: where the partitions of sources begin in which the group has no"
        " committed offset, or one that is no longer there. earliest; latest; a duration such as 1h: the first record"
        " that is not older; none: the application fails. Tables always begin at the beginning.",
    )
    schema_registry: SchemaRegistrySpec | None = Field(
        default=None, description="The schema registry. Needed where a format is avro, protobuf or jsonschema."
    )


class InitSpec(Model):
    """An explicit init(): done once for each new nonce."""

    nonce: int = Field(ge=0, description="A new number asks for one more init().")
    setup_repartition_topics_if_incomplete: bool = Field(
        default=False,
        description="Create missing repartition topics when others exist. Off: data may have been lost.",
    )
    setup_changelog_topics_if_incomplete: bool = Field(
        default=False,
        description="Create missing changelog topics when others exist. Off: state may have been lost.",
    )


class InternalTopicsSpec(Model):
    """The topics that belong to the application: repartition and changelog topics."""

    setup: Literal["automatic", "manual"] = Field(
        default="automatic",
        description="automatic: what is missing is created. manual: only by an explicit init.",
    )
    replication_factor: int = Field(
        default=-1,
        ge=-1,
        le=32767,
        description="Replicas of each internal topic. -1: what the brokers have as default.",
    )
    config: dict[str, Property] = Field(
        default_factory=dict,
        description="Topic properties for all internal topics; they win over the library's.",
    )
    overrides: dict[str, dict[str, Property]] = Field(
        default_factory=dict,
        description="Topic properties for one internal topic, by its name without the application's:"
        " totals-changelog, by-user-repartition. They win over config.",
    )
    init: InitSpec | None = Field(default=None, description="Manual set-up's explicit init.")
    deletion_policy: Literal["Retain", "Delete"] = Field(
        default="Retain",
        description="What happens to them when the resource is deleted. Retain: state is not lost by a slip.",
    )


class DeadLetter(Model):
    """Where records go that can't be read, over which a step fails, or that a sink's topic refuses."""

    topic: str = Field(description="The topic; headers of each record say what was wrong and where it came from.")


class OnRecordError(Model):
    """What happens to a record that can't be read, over which a step fails, or that a sink's topic refuses: `fail`,
    `continue`, `{deadLetter: {topic: …}}`, or what a function of the user's says: `{python: …}`, beside which
    `deadLetter` may stand.
    """

    action: Literal["fail", "continue", "deadLetter", "python"]
    dead_letter: DeadLetter | None = None
    python: str | None = None

    @model_validator(mode="wrap")
    @classmethod
    def _from_short_form(cls, value: Any, handler: ModelWrapValidatorHandler[OnRecordError]) -> Any:
        if isinstance(value, str) and value in ("fail", "continue"):
            return handler({"action": value})
        if isinstance(value, dict) and set(value) in ({"python"}, {"python", "deadLetter"}):
            return handler({"action": "python", **value})
        if isinstance(value, dict) and set(value) == {"deadLetter"}:
            return handler({"action": "deadLetter", "deadLetter": value["deadLetter"]})
        if isinstance(value, OnRecordError):
            return value
        remedy = "give fail, continue, deadLetter: {topic: NAME} or python: package.module:function"
        raise refusal(f"found {value!r}", remedy)

    @model_serializer(mode="wrap")
    def _to_short_form(self, handler: SerializerFunctionWrapHandler) -> Any:
        found = {name: value for name, value in handler(self).items() if name != "action" and value is not None}
        return found or self.action


class ProcessingSpec(Model):
    """How records are processed."""

    guarantee: Literal["at_least_once", "exactly_once_v2"] = Field(
        default="at_least_once",
        description="What holds after a failure. at_least_once: Kafka Streams' default too; a batch may be done again."
        " exactly_once_v2: never seen twice by readers of committed records, in transactions of Kafka's.",
    )
    stream_threads: int = Field(
        default=1,
        ge=1,
        le=1000,
        description="Threads of an instance; 1: Spark spreads a batch over the cores itself.",
    )
    commit_interval: Duration = Field(
        default=_COMMIT_INTERVAL,
        description="Longest time between commits: bounds what a crash does twice. 0ms: every batch.",
        json_schema_extra={"default": format_duration(_COMMIT_INTERVAL)},
    )
    poll_duration: Duration = Field(
        default=_POLL_DURATION,
        description="Kafka Streams' poll.ms: the longest wait for records in one read of changelogs and of global"
        " tables' topics. 1ms to 10s; a rebalance waits for a read that goes on.",
        json_schema_extra={"default": format_duration(_POLL_DURATION)},
    )
    max_batch_records: int | None = Field(
        default=None,
        ge=1,
        description="Most records in a batch; bounds memory. Large, since each Spark job costs about 0.1 s. Default"
        " 500000; where all records become aggregates by key as they are read, as many as have about 250000 keys,"
        " and 1000000 at most.",
    )
    max_task_idle: Duration = Field(
        default=_MAX_TASK_IDLE,
        description="Kafka Streams' max.task.idle.ms: how long a task that reads several topics waits for one that has"
        " nothing, before it goes on with what the others have. 0ms: not at all.",
        json_schema_extra={"default": format_duration(_MAX_TASK_IDLE)},
    )
    standby_replicas: int = Field(default=0, ge=0, description="Warm copies of each store on other instances.")
    rack_aware_assignment_tags: list[str] = Field(
        default_factory=list,
        max_length=MOST_TAGS,
        description="Kafka Streams' rack.aware.assignment.tags: keys of labels, such as topology.kubernetes.io/zone, by"
        " whose values an instance that has a task and those that keep its standbys differ, as far as there are enough."
        " An instance's values are those of its pod's labels, or else of its node's; at most 5 keys.",
    )
    acceptable_recovery_lag: int = Field(
        default=ACCEPTABLE_RECOVERY_LAG,
        ge=0,
        le=(1 << 53) - 1,  # the API server takes a bound for a double, and a larger one is none of whole numbers
        description="Kafka Streams' acceptable.recovery.lag: an instance that is added takes a task over from one that"
        " processes it when its store lags at most so many records.",
    )
    warm_up_timeout: Duration = Field(
        default=_WARM_UP_TIMEOUT,
        description="How long an instance that is added waits for that. Then it takes its tasks over all the same, and"
        " they stop until they are restored. 0ms: it never waits.",
        json_schema_extra={"default": format_duration(_WARM_UP_TIMEOUT)},
    )
    on_deserialization_error: OnRecordError = Field(
        default_factory=lambda: OnRecordError.model_validate("fail"),
        description="fail: the application stops and names the record; continue: it is counted and left out;"
        " deadLetter: {topic}: it goes there; python: package.module:function, which says so of each record. Default"
        " fail: no record is lost unseen.",
        json_schema_extra={"x-kubernetes-preserve-unknown-fields": True},
    )
    on_processing_error: OnRecordError = Field(
        default_factory=lambda: OnRecordError.model_validate("fail"),
        description="What becomes of a record over which an expression, a function or a class of yours fails. fail: the"
        " application stops; continue: the record is counted and left out, as if nobody had written it; deadLetter:"
        " {topic}: it goes there; python: package.module:function, which says so of each record. Default fail: no"
        " record is lost unseen.",
        json_schema_extra={"x-kubernetes-preserve-unknown-fields": True},
    )
    on_production_error: OnRecordError = Field(
        default_factory=lambda: OnRecordError.model_validate("fail"),
        description="What becomes of a record that a sink's topic refuses: it is too large, has no key for a topic that"
        " is compacted, or a time that the topic does not take. fail: the application stops; continue: the record is"
        " counted and left out; deadLetter: {topic}: it goes there; python: package.module:function, which says so of"
        " each record. Default fail: no record is lost unseen.",
        json_schema_extra={"x-kubernetes-preserve-unknown-fields": True},
    )
    on_uncaught_exception: Literal["shutdownClient", "shutdownApplication", "replaceThread"] = Field(
        default="shutdownClient",
        description="What an unexpected error ends. shutdownClient: this instance, in ERROR; shutdownApplication: all"
        " instances; replaceThread: the thread only, five times in a row and once more for each minute that goes well,"
        " then the instance.",
    )

    metrics_recording_level: Literal["INFO", "DEBUG"] = Field(
        default="INFO",
        description="Kafka Streams' metrics.recording.level: which metrics are recorded and shown. INFO: what an alert"
        " or a dashboard needs, at almost no cost. DEBUG: also single steps, reads of stores and RocksDB's statistics,"
        " which cost some processor time. TRACE is not there.",
    )

    @property
    def exactly_once(self) -> bool:
        """Whether records are processed in transactions."""
        return self.guarantee == "exactly_once_v2"

    @property
    def error_handlers(self) -> dict[str, str]:
        """The functions of the user's that decide on records, by the fields that name them."""
        found = {f"{field}.python": each.python for field, each in self._on_record_errors.items()}
        return {field: reference for field, reference in found.items() if reference is not None}

    @property
    def letter_topics(self) -> dict[str, str]:
        """The topics of dead letters, by the fields that name them."""
        found = {f"{field}.deadLetter.topic": each.dead_letter for field, each in self._on_record_errors.items()}
        return {field: letters.topic for field, letters in found.items() if letters is not None}

    @property
    def _on_record_errors(self) -> dict[str, OnRecordError]:
        """What becomes of records, by field."""
        return {
            "spec.processing.onDeserializationError": self.on_deserialization_error,
            "spec.processing.onProcessingError": self.on_processing_error,
            "spec.processing.onProductionError": self.on_production_error,
        }
