"""What the operator sees of an application, and what it decides: the values between observe, plan and apply.

All are plain values: `plan` is a function of an `Observed` and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from streams_operator.application_load import Load, LoadMemory
from streams_runtime.api import Reading, StreamsApplication
from streams_runtime.api.spec.operations.reset_spec import ResetSpec
from streams_runtime.api.spec.template_spec import ResourcesSpec
from streams_runtime.errors import Mistake
from streams_runtime.topics.reset.reset_plan import OffsetMove, ResetOutlook
from streams_runtime.topology.changes.change import Change

Json = Mapping[str, Any]
"""A Kubernetes object, or a part of one."""

Ref = tuple[str, str]
"""Kind and name of an object in the application's namespace."""


class Key(NamedTuple):
    """A resource, by namespace and name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class PodState:
    """One pod with the application's label. Times are seconds since 1970.

    `state` is the client's state by the pod's Running condition, None before it has said anything; `error` is
    (exception class, message) from its Restartable condition or its termination message.
    """

    name: str
    uid: str
    ordinal: int | None  # None: not one of ours by its name
    phase: str
    created_at: float
    deleting: bool = False
    digest: str = ""  # ANNOTATION_SPEC
    nonce: int = 0  # ANNOTATION_NONCE
    ready: bool = False
    state: str | None = None
    restored: bool = False
    records_left: int = 0
    spark_ready: bool = True  # False while Spark, which may refuse the topology, starts beside a client
    restartable: bool = True
    shutdown_requested: bool = False  # its client asks for the shutdown of the whole application
    shutdown_signaled: bool = False  # ANNOTATION_SHUTDOWN: its client is to end, as another one asked
    leave_signaled: bool = False  # ANNOTATION_LEAVE: its client leaves the group when it closes
    pause_signaled: bool = False  # ANNOTATION_PAUSED: its client is to process nothing
    paused: bool = False  # its client says that it processes nothing
    error: tuple[str, str] | None = None
    exit_code: int | None = None  # of the ended container; None while it runs, or when the node was lost
    ended_at: float | None = None
    started_at: float | None = None
    ip: str | None = None
    tls: bool = False  # whether it answers by HTTPS
    reason: str = ""  # why it ended or can't start, in Kubernetes' words: OOMKilled, Evicted, ImagePullBackOff
    message: str = ""  # the same as a sentence
    node: str = ""  # empty: none was found yet
    gone_by: float | None = None  # when a pod that is being deleted was to be gone
    forced: bool = False  # its deletion waits for no node any more
    doubted: bool = False  # it has to answer before a decision may rest on its conditions
    silent: bool = False  # it has not answered for long, though others do
    inputs: Mapping[str, str] = field(default_factory=dict)  # ANNOTATION_INPUTS
    image: str = ""  # ANNOTATION_IMAGE


@dataclass(frozen=True, slots=True)
class InstanceAccount:
    """What a pod's `/state` says, as far as the resource's status shows it."""

    tasks: tuple[str, ...] = ()
    lag: int | None = None
    records_left: int = 0
    records_per_second: float | None = None  # of the restoration in progress
    # What moves with every record makes no answer another one that somebody has to look at.
    position: int | None = field(default=None, compare=False)  # sum of the offsets that its tasks have come to
    standby_lag: int | None = field(default=0, compare=False)  # of its standbys; None: one has not said
    at: float = field(default=0.0, compare=False)  # when it answered, by a monotonic clock


@dataclass(frozen=True, slots=True)
class TopicsState:
    """The internal topics on the brokers, against what the application needs.

    `failure` is (reason, message) of what keeps them from being ready or from being checked: the exception's
    class without `Exception` (MissingInternalTopics, MisconfiguredInternalTopics, MissingSourceTopics,
    BrokerNotAvailable, …).
    """

    checked_at: float
    ready: bool
    existing: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    tasks: int | None = None
    failure: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class InitResult:
    """What the explicit init() of a nonce came to: Created, AlreadySetUp, or why not (as in TopicsSeen.failure)."""

    nonce: int
    result: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class ResetAnswer:
    """What a step of a reset (a KafkaWork's kind) came to at the brokers; `request`: the reset's, as KafkaWork has it.

    `outlook` is that of a check. `failure` is (reason, message) as in TopicsState; None: it was done.
    """

    step: str
    request: str
    at: float
    outlook: ResetOutlook | None = None
    failure: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Defaults:
    """What the chart decides for all applications."""

    image: str
    delete_deadline: float = 120.0  # seconds until deletion goes on without the brokers
    image_pull_policy: str = "IfNotPresent"
    grace_seconds: int = 75  # a pod's terminationGracePeriodSeconds
    run_as_user: int | None = 10001  # of pods whose template has no securityContext; None: the cluster chooses
    resources: ResourcesSpec | None = None  # of containers whose template has none
    namespace: str = "default"  # the operator's own
    executors_as_pods: bool = False  # whether the operator holds the rights that such applications' pods need


@dataclass(frozen=True, slots=True)
class AwaitedImage:
    """The default image that an application waits for; `stopped`: it goes to no further application as things are."""

    image: str
    at_a_time: int
    stopped: bool


@dataclass(frozen=True, slots=True)
class RollbackTarget:
    """From the version in force to the last one that was stable, whose digest is `version`.

    `obstacle` is why it can't be made again; empty: it can. `changed` are internal topics and topics of sinks that only
    one of the two has, and stores that one would misread of the other.
    """

    version: str
    obstacle: str = ""
    changed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ObservedResource:
    """What the API server has of one application: the resource, read as a model, with its pods and other objects.

    `pods` are in the order of their names; `objects` are by (kind, name). `document` is the application as its pods
    read it; empty: it was not made yet.
    """

    resource: Json
    reading: Reading
    pods: tuple[PodState, ...] = ()
    objects: Mapping[tuple[str, str], Json] = field(default_factory=dict)
    document: bytes = b""


@dataclass(frozen=True, slots=True)
class VersionInForce:
    """The version that pods are to be of, as `plan.in_force` decides.

    `refused` is what speaks against the resource's own topology; empty: it is in force, unless `rolled_back`.
    `application` is None exactly when `mistakes` is not empty. `rollback_target` is None where there is nowhere to go
    back to, or spec.rollback does not ask for it.
    """

    application: StreamsApplication | None
    mistakes: tuple[Mistake, ...] = ()
    refused: tuple[Change, ...] = ()
    rolled_back: bool = False
    rollback_target: RollbackTarget | None = None
    document: bytes = b""  # the application as its pods read it, where the decision needed it; else empty


@dataclass(frozen=True, slots=True)
class Observed:
    """Everything that a decision about one resource rests on.

    `application` is the one in force: with `refused` not the resource's but the deployed one, as far as pods read it
    (`plan.in_force`). It is None exactly when `mistakes` is not empty. `objects` holds the other objects with the
    application's label by (kind, name). `topics` is None until the brokers were checked.
    """

    resource: Json
    application: StreamsApplication | None
    mistakes: tuple[Mistake, ...]
    now: float
    pods: tuple[PodState, ...] = ()
    objects: Mapping[tuple[str, str], Json] = field(default_factory=dict)
    accounts: Mapping[str, InstanceAccount] = field(default_factory=dict)
    refused: tuple[Change, ...] = ()  # what keeps the resource's topology from being in force
    rolled_back: bool = False  # the version in force is the one that status.rolledBack says was gone back to
    rollback_target: RollbackTarget | None = None  # None: it is the last stable one itself, or nobody wants to go back
    inputs: Mapping[str, str] = field(default_factory=dict)  # of spec.restartOnChange: digests by `Kind/name`
    topics: TopicsState | None = None
    init: InitResult | None = None  # of a nonce that status does not have yet
    reset: ResetAnswer | None = None  # of the last step that was asked for
    topics_deleted: bool = False  # deletionPolicy has been carried out, or has failed for good
    defaults: Defaults = field(default_factory=lambda: Defaults(""))  # its image may be an earlier one: see `awaited`
    awaited: AwaitedImage | None = None  # None: it has the default image, or one of its own
    document: bytes = b""  # of `application`, as its pods read it; empty: not made yet
    refusals: Mapping[str, str] = field(default_factory=dict)  # by pod name: why the API server did not make it
    load: Load = field(default_factory=Load)  # of an application with spec.autoscaling


@dataclass(frozen=True, slots=True)
class Removal:
    """Delete one object, only if it still has this uid. `force`: without waiting for the pod's node."""

    kind: str
    name: str
    uid: str
    force: bool = False


@dataclass(frozen=True, slots=True)
class PodSignal:
    """Put an annotation with `text` (None: take it off) on one pod, only if it still has this uid."""

    pod: str
    uid: str
    annotation: str
    text: str | None


@dataclass(frozen=True, slots=True)
class KafkaWork:
    """What is to be done at the brokers before the next decision. It runs in a thread, with a deadline.

    check: read only. setup: create what is missing (automatic). init: one explicit init() for `nonce`.
    delete: remove the internal topics. The steps of a reset: reset-check says what `reset` would do, and changes
    nothing; reset-topics deletes the internal topics and makes them anew; reset-offsets carries out the `moves`.
    `request` tells resets apart.
    """

    kind: Literal["check", "setup", "init", "delete", "reset-check", "reset-topics", "reset-offsets"]
    nonce: int = 0
    request: str = ""
    reset: ResetSpec | None = None
    moves: tuple[OffsetMove, ...] = ()


@dataclass(frozen=True, slots=True)
class Event:
    """A Kubernetes event."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do now, in this order: status first, so that what was decided is on record before it is done.

    `status` None: leave it. `finalizer`: whether the resource should have FINALIZER. `requeue_after`: seconds until the
    resource is reconciled again without any event; None: on an event only.
    """

    status: Json | None = None
    finalizer: bool = True
    apply: Sequence[Json] = ()
    signals: Sequence[PodSignal] = ()
    remove: Sequence[Removal] = ()
    kafka: KafkaWork | None = None
    events: Sequence[Event] = ()
    requeue_after: float | None = None
    lag: int | None = None  # exact, for metrics; the status shows it more coarsely
    load: LoadMemory | None = None  # None: remember nothing of it
