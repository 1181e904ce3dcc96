"""The StreamsApplication resource: what a user writes."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from streams_runtime.api.spec.availability_spec import PROGRESS_DEADLINE, NodeLossSpec, ProgressDeadline
from streams_runtime.api.spec.disruption_spec import DisruptionBudgetSpec
from streams_runtime.api.spec.kafka_spec import InternalTopicsSpec, KafkaSpec, ProcessingSpec
from streams_runtime.api.spec.network_spec import NetworkPolicySpec
from streams_runtime.api.spec.operations.autoscaling_spec import AutoscalingSpec
from streams_runtime.api.spec.operations.reset_spec import ResetSpec
from streams_runtime.api.spec.pod_spec import CodeSpec, StateSpec
from streams_runtime.api.spec.queries_spec import QueriesSpec
from streams_runtime.api.spec.spec_model import Model
from streams_runtime.api.spec.spec_values import Image, Property, format_duration
from streams_runtime.api.spec.template_spec import TemplateSpec
from streams_runtime.api.steps.topology_spec import TopologySpec

GROUP = "streamsoperator.io"
VERSION = "v1alpha1"
KIND = "StreamsApplication"


class MetadataSpec(Model):
    """Kubernetes' own metadata; only `name` matters here, the rest is let through as it is given."""

    name: str = Field(description="Name of the application and of its pods (NAME-0, NAME-1, …).")
    namespace: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    generate_name: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    generation: int | None = None
    self_link: str | None = None
    creation_timestamp: Any = None
    deletion_timestamp: Any = None
    deletion_grace_period_seconds: int | None = None
    finalizers: list[str] | None = None
    owner_references: list[dict[str, Any]] | None = None
    managed_fields: list[dict[str, Any]] | None = None


class SparkSpec(Model):
    """The Spark session of each instance."""

    master: str = Field(
        default="local[*]",
        min_length=1,
        description="Spark's master. local[*]: all cores of the instance. spark://host:port, several after commas: a"
        " standalone cluster, whose workers need this runtime; spark.cores.max of the config is an instance's share."
        " k8s://https://kubernetes.default.svc: executors are pods beside the instance's; spark.executor.instances of"
        " the config says how many each instance has.",
    )
    config: dict[str, Property] = Field(
        default_factory=dict, description="Spark properties; all names begin with spark."
    )


class ApplicationSpec(Model):
    """What the application is."""

    replicas: int = Field(
        default=1,
        ge=0,
        le=10_000,
        description="Instances. More than there are tasks is allowed; those stand idle. With autoscaling: how many to"
        " start with.",
    )
    autoscaling: AutoscalingSpec | None = Field(
        default=None,
        description="Lets the operator choose the number of instances in a cluster, by their lag and by what one"
        " processes; status.autoscaling says how many and why. A change replaces no pods. Absent: replicas says it.",
    )
    application_id: str | None = Field(
        default=None,
        description="Consumer group and prefix of the internal topics; immutable. Absent: metadata.name.",
    )
    image: Image | None = Field(default=None, description="Image of the pods. Absent: the chart's.")
    suspend: bool = Field(default=False, description="true: every pod closes in order and goes away; state stays.")
    paused: bool = Field(
        default=False,
        description="true: no instance processes records (KIP-834). Pods stay, keep their tasks and restore, stores"
        " answer, and lag is shown. A change replaces no pods.",
    )
    reset: ResetSpec | None = Field(
        default=None,
        description="Reads anew, once for each new nonce: offsets, internal topics and volumes, all or nothing. Needs"
        " suspend: true, but for a dryRun. A change replaces no pods.",
    )
    kafka: KafkaSpec = Field(default_factory=KafkaSpec, description="The Kafka cluster.")
    internal_topics: InternalTopicsSpec = Field(
        default_factory=InternalTopicsSpec, description="Repartition and changelog topics."
    )
    processing: ProcessingSpec = Field(default_factory=ProcessingSpec, description="How records are processed.")
    state: StateSpec = Field(default_factory=StateSpec, description="The stores' storage.")
    queries: QueriesSpec = Field(default_factory=QueriesSpec, description="Queries over HTTP.")
    spark: SparkSpec = Field(default_factory=SparkSpec, description="The Spark session.")
    topology: TopologySpec = Field(description="Sources, steps and sinks.")
    code: CodeSpec | None = Field(
        default=None,
        description="The modules that the topology names in Python. Absent: the image's. On a machine they lie beside"
        " the file.",
    )
    topology_change: Literal["refuse", "allow"] | None = Field(
        default=None,
        description="What becomes of a change of topology that loses stores or reads them as something else."
        " refuse: the pods stay as they are, and Degraded says why; allow: it is carried out. Compatible changes"
        " always are. Absent: refuse.",
    )
    template: TemplateSpec = Field(default_factory=TemplateSpec, description="Overrides for the pods.")
    progress_deadline: ProgressDeadline = Field(
        default=PROGRESS_DEADLINE,
        description="How long an instance may go without getting nearer to RUNNING and restored, at least 10s. Past it"
        " Degraded says what holds it up, and Progressing is False with the reason ProgressDeadlineExceeded; the"
        " operator tries on all the same. A restoration that goes on is never too long.",
        json_schema_extra={"default": format_duration(PROGRESS_DEADLINE)},
    )
    rollback: Literal["manual", "automatic"] = Field(
        default="manual",
        description="What becomes of a new version that does not arrive within progressDeadline. manual: the rollout"
        " stands; automatic: pods go back to the last version of which all were RUNNING and restored, and Degraded says"
        " so. A client in ERROR waits for a person in either case, and so does a version that has already run with"
        " other topics.",
    )
    node_loss: NodeLossSpec = Field(
        default_factory=NodeLossSpec, description="Pods whose node does not confirm that they have ended."
    )
    disruption_budget: DisruptionBudgetSpec = Field(
        default_factory=DisruptionBudgetSpec,
        description="How many pods may be taken away at a time, as when nodes are drained. A change replaces no pods.",
    )
    network_policy: NetworkPolicySpec = Field(
        default_factory=NetworkPolicySpec, description="Who may reach the pods. A change replaces no pods."
    )
    restart_nonce: int = Field(
        default=0,
        ge=0,
        description="A greater number replaces every pod once: those that ended in ERROR at once, running ones one by"
        " one, each when the last is RUNNING and restored. It also takes in rotated Secrets and changed code.",
    )
    restart_on_change: list[Literal["secrets", "code"]] = Field(
        default_factory=list,
        max_length=2,
        description="Replaces running pods, one by one, when what they read at their start has changed. secrets: the"
        " Secrets of spec.kafka and spec.state.snapshots, and those that spec.template mounts or takes variables from;"
        " code: the ConfigMap of spec.code, and those of spec.template. Pods that were made without it are replaced"
        " once. A client in ERROR waits for a person all the same.",
    )


class StreamsApplication(Model):
    """One application. `load_application` and `parse_application` make it and check what its fields mean."""

    api_version: Literal["streamsoperator.io/v1alpha1"]
    kind: Literal["StreamsApplication"]
    metadata: MetadataSpec
    spec: ApplicationSpec
    status: dict[str, Any] | None = Field(default=None, description="Written by the operator; not read here.")

    @property
    def name(self) -> str:
        """The resource's name, which pods have in theirs."""
        return self.metadata.name

    @property
    def application_id(self) -> str:
        """The consumer group and the prefix of internal topics: spec.applicationId, or the resource's name."""
        return self.spec.application_id if self.spec.application_id is not None else self.metadata.name
