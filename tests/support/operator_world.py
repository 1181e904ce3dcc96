"""A cluster, brokers and an operator that may be killed at any moment, all in memory and in simulated time.

`World.reconcile` does what the operator does: it observes, plans, and carries the plan out action by action. The world
checks at each action what must never happen, and so every test that uses it claims all of that.
"""

from __future__ import annotations

import functools
import itertools
import json
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from streams_operator import names
from streams_operator.model import (
    AwaitedImage,
    Defaults,
    Event,
    InitResult,
    Json,
    KafkaWork,
    Observed,
    ObservedResource,
    Plan,
    PodSignal,
    PodState,
    ResetAnswer,
    TopicsState,
    VersionInForce,
)
from streams_operator.plan import differs, in_force, plan
from streams_operator.plan.objects.document import digest
from streams_operator.plan.pods.standing import STUCK_AFTER
from streams_operator.plan.status.times import seconds_of, text_of
from streams_runtime.api import Reading, StreamsApplication
from streams_runtime.api.spec.spec_values import parse_duration
from streams_runtime.errors import Mistake
from streams_runtime.topics.reset.reset_plan import OffsetMove, ResetOutlook, ResetPlan

START = 1_800_000_000.0
NAME = "orders"
TOPICS = ("orders-totals-changelog", "orders-by-user-repartition")
LONG = 700.0  # seconds; longer than every back-off and every look at the brokers
GRACE = 75.0  # seconds that a pod has to end
IMAGE = "runtime:1"


def resource(spec: Mapping[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    """A small valid application, as the API server gives it; `spec` is laid over it."""
    return {
        "apiVersion": "streamsoperator.io/v1alpha1",
        "kind": "StreamsApplication",
        "metadata": {"name": NAME, "namespace": "shop", "uid": "uid-of-orders", "generation": 1, **metadata},
        "spec": {
            "replicas": 2,
            "kafka": {"bootstrapServers": "kafka:9092"},
            "topology": {
                "sources": [
                    {
                        "name": "orders",
                        "topic": "orders",
                        "key": {"format": "string"},
                        "value": {"format": "json", "schema": "user STRING, amount DOUBLE"},
                    }
                ],
                "steps": [
                    {"name": "by-user", "from": "orders", "keyBy": "user"},
                    {"name": "totals", "from": "by-user", "aggregate": {"n": "count(*)"}, "store": "totals"},
                ],
                "sinks": [{"from": "totals", "topic": "totals"}],
            },
            **(spec or {}),
        },
    }


def application_of(resource: Json) -> StreamsApplication:
    """The model of a resource; what it means is not checked."""
    return StreamsApplication.model_validate({name: value for name, value in resource.items() if name != "status"})


@functools.lru_cache(maxsize=64)
def _application_in(pickled: bytes) -> StreamsApplication:
    """`application_of`, once for all rounds in which nobody edits the resource, as in the operator."""
    return application_of(pickle.loads(pickled))


def _copied(value: Any) -> Any:
    """A deep copy of plain values, in a tenth of the time that `copy.deepcopy` takes."""
    return pickle.loads(pickle.dumps(value))


def running(ordinal: int, made_from: str, **changes: Any) -> PodState:
    """A pod that does its part."""
    pod = PodState(
        name=f"{NAME}-{ordinal}",
        uid=f"uid-{ordinal}",
        ordinal=ordinal,
        phase="Running",
        created_at=START - 100,
        digest=made_from,
        ready=True,
        state="RUNNING",
        restored=True,
        started_at=START - 90,
    )
    return replace(pod, **changes)


def ready_topics(at: float = START) -> TopicsState:
    """All internal topics, seen to be there."""
    return TopicsState(at, True, existing=TOPICS, tasks=4)


@dataclass(slots=True)
class Killed(Exception):
    """The operator's process ended in the middle of a plan."""


class World:
    """One application. `kills` are the numbers of actions, counted over its life, after which the operator dies."""

    def __init__(self, spec: Mapping[str, Any] | None = None, kills: Sequence[int] = ()) -> None:
        self.now = START
        self.resource: dict[str, Any] | None = resource(spec)
        self.pods: dict[str, PodState] = {}
        self.objects: dict[tuple[str, str], dict[str, Any]] = {}
        self.brokers_up = True
        self.on_brokers: set[str] = set()
        self.intruder = False  # somebody else's process is in the group
        self.refusal = ""  # what the brokers have against any reset
        self.offsets = 0  # of the group, in each partition: pods that run process ever more
        self.resets: list[int] = []  # nonces of those that are whole
        self._before_reset: dict[str, Any] = {}
        self._makings = dict.fromkeys(TOPICS, 0)  # how often each internal topic was made
        self.defaults = Defaults(IMAGE)
        self.events: list[Event] = []
        self.writes = 0
        self.mistakes: tuple[Mistake, ...] = ()
        self.awaited: AwaitedImage | None = None
        self.inputs: dict[str, str] = {}  # digests of what spec.restartOnChange follows, by `Kind/name`
        self._kills = set(kills)
        self._actions = 0
        self._deaths = 0
        self._uids = (f"uid-{number}" for number in itertools.count(1))
        self._rolled: set[str] = set()
        self._in_error: dict[str, tuple[str, int]] = {}
        self._asked: dict[str, tuple[str, int]] = {}
        self._told: dict[str, int] = {}  # by uid: the restartNonce then
        self._inits: list[int] = []
        self._lost: set[str] = set()  # uids of pods whose node is lost
        self._halting: dict[str, str] = {}  # by digest: the phase or state that pods of this version do not get out of
        self._forget()

    # What the operator does

    def observe(self) -> Observed:
        """What the operator sees."""
        assert self.resource is not None
        version = self._in_force()
        return Observed(
            resource=_copied(self.resource),
            application=version.application,
            mistakes=version.mistakes,
            refused=version.refused,
            rolled_back=version.rolled_back,
            rollback_target=version.rollback_target,
            inputs=dict(self.inputs),
            awaited=self.awaited,
            now=self.now,
            pods=tuple(self.pods.values()),
            objects=_copied(self.objects),
            topics=self._topics,
            init=self._init,
            topics_deleted=self._topics_deleted,
            reset=self._reset,
            defaults=self.defaults,
            document=version.document,
        )

    def reconcile(self) -> Plan:
        """One round, unless the operator is killed in it; the next one begins without any memory then."""
        todo = plan(self.observe())
        try:
            self._carry_out(todo)
        except Killed:
            self._deaths += 1
            self._forget()
        return todo

    def settle(self) -> None:
        """Reconcile and let time pass until nothing happens any more for longer than anything takes."""
        quiet_since = self.now
        for _ in range(2000):
            if self.resource is None:
                return
            before = (self.writes, set(self.on_brokers), self._deaths)
            todo = self.reconcile()
            changed = self.pods_go_on() or before != (self.writes, self.on_brokers, self._deaths)
            if changed:
                quiet_since = self.now
            elif self.now - quiet_since > LONG:
                return
            self.now += 1.0 if changed else min(todo.requeue_after or LONG, LONG)
        raise AssertionError(f"no end of it: {plan(self.observe())}")

    # What happens to it

    def change(self, **spec: Any) -> None:
        """Somebody edits the spec."""
        assert self.resource is not None
        self.resource["spec"].update(spec)
        self.resource["metadata"]["generation"] += 1
        self._topics = None  # it is about another application, perhaps
        for name in self._in_error.keys() - self.pods.keys():
            if self.spec.get("suspend") or int(name.removeprefix(f"{NAME}-")) >= self.wanted:
                del self._in_error[name]  # as for a pod that is removed then: see _remove

    def halt(self, at: str) -> None:
        """Pods of the version in force get no further than this phase, or state."""
        self._halting[self.digest] = at

    def mend(self) -> None:
        """All of them do again."""
        self._halting.clear()

    def crash(self, name: str, code: int = 137) -> None:
        """The pod's process ends as nobody wanted it to."""
        if self._runs(name):
            self._end(name, "Failed", code, reason="OOMKilled")

    def fail(self, name: str) -> None:
        """The pod's client ends in ERROR."""
        if self._runs(name):
            self._end(name, "Failed", 70, state="ERROR", restartable=False, error=("LockException", "held"))
            self._in_error[name] = (self.pods[name].digest, self._answers_to(name))

    def ask(self, name: str) -> None:
        """The pod's client ends in ERROR and asks for the end of all."""
        if self._runs(name):
            self.fail(name)
            self.pods[name] = replace(self.pods[name], shutdown_requested=True)
            self._asked[name] = self._in_error[name]

    def end(self, name: str) -> None:
        """The pod's client ends in order, unasked."""
        if self._runs(name):
            self._end(name, "Succeeded", 0, state="NOT_RUNNING")

    def remove_pod(self, name: str) -> None:
        """Somebody deletes a pod."""
        if name in self.pods:
            self.pods[name] = replace(self.pods[name], deleting=True, ready=False, gone_by=self.now + GRACE)

    def lose(self, name: str) -> None:
        """The pod's node is lost: Kubernetes marks the pod and deletes it, and nobody confirms its end."""
        if self._runs(name):
            pod = self.pods[name]
            self._lost.add(pod.uid)
            self.pods[name] = replace(pod, ready=False, deleting=True, gone_by=self.now + GRACE)

    def add_pod(self, pod: PodState) -> None:
        """Somebody makes a pod with the application's label, if there is none of that name."""
        self.pods.setdefault(pod.name, pod)

    def spoil_objects(self, first: int) -> None:
        """Somebody edits the Service and deletes every other object, from the one of this number on."""
        for key in sorted(self.objects)[first:]:
            if key[0] == "Service":
                self.objects[key]["spec"]["clusterIP"] = "10.0.0.1"
            elif key[0] != "ConfigMap":
                del self.objects[key]

    def delete(self) -> None:
        """Somebody deletes the resource."""
        assert self.resource is not None
        self.resource["metadata"].setdefault("deletionTimestamp", text_of(self.now))

    def hold(self) -> None:
        """Somebody asks for nothing to be changed."""
        assert self.resource is not None
        self.resource["metadata"]["annotations"] = {names.ANNOTATION_HOLD: "true"}

    def release(self) -> None:
        """It may be changed again."""
        assert self.resource is not None
        self.resource["metadata"].pop("annotations", None)

    def restart_operator(self) -> None:
        """The operator starts anew."""
        self._forget()

    @property
    def status(self) -> Json:
        """The resource's status."""
        assert self.resource is not None
        found: Json = self.resource.get("status") or {}
        return found

    def condition(self, type: str) -> tuple[str, str]:
        """(status, reason) of a condition."""
        found = next(each for each in self.status["conditions"] if each["type"] == type)
        return found["status"], found["reason"]

    @property
    def spec(self) -> Json:
        """The resource's spec."""
        assert self.resource is not None
        found: Json = self.resource["spec"]
        return found

    @property
    def wanted(self) -> int:
        """Instances: spec.replicas, or what spec.autoscaling has chosen."""
        chosen = self.status.get("autoscaling") if self.spec.get("autoscaling") else None
        return int((chosen or self.spec)["replicas"])

    @property
    def nonce(self) -> int:
        """spec.restartNonce."""
        return int(self.spec.get("restartNonce", 0))

    @property
    def digest(self) -> str:
        """What pods are to be made from."""
        application = self._in_force().application
        assert application is not None
        return digest(application, "shop", self.defaults)

    def document(self, made_from: str) -> Json:
        """The application that a ConfigMap holds."""
        found: Json = json.loads(self.objects["ConfigMap", names.config(NAME, made_from)]["data"][names.CONFIG_FILE])
        return found

    def _in_force(self) -> VersionInForce:
        assert self.resource is not None
        asked = {name: value for name, value in self.resource.items() if name != "status"}
        application = None if self.mistakes else _application_in(pickle.dumps(asked))
        reading = Reading(application, self.mistakes, (), None, self.resource)
        pods = tuple(sorted(self.pods.values(), key=lambda pod: pod.name))
        return in_force(ObservedResource(self.resource, reading, pods, self.objects), self.defaults)

    def end_state(self) -> Any:
        """Everything that should be the same whatever the operator went through; no uids, no times."""
        if self.resource is None:
            return ("gone", sorted(self.pods), sorted(self.on_brokers))
        pods = {pod.name: (pod.digest, pod.nonce, pod.state, pod.phase, pod.paused) for pod in self.pods.values()}
        objects = {
            key: {**obj, "metadata": {name: value for name, value in obj["metadata"].items() if name != "uid"}}
            for key, obj in self.objects.items()
        }
        return pods, objects, sorted(self.on_brokers), _without_times(self.status)

    # The actions of a plan, one by one

    def _carry_out(self, todo: Plan) -> None:
        assert self.resource is not None
        metadata = self.resource["metadata"]
        if "annotations" in metadata and "deletionTimestamp" not in metadata:
            done = (todo.apply, todo.remove, todo.kafka, [each for each in todo.signals if not self.mistakes])
            assert not any(done), f"changed while on hold: {done}"
        if todo.status is not None:
            self._act()
            self._check_reset(todo.status)
            self.resource["status"] = _copied(todo.status)
        if not todo.finalizer:
            self._act()
            self._let_go()
            return
        for obj in todo.apply:
            self._act()
            self._apply(obj)
        for signal in todo.signals:
            self._act()
            self._signal(signal)
        for removal in todo.remove:
            self._act()
            if removal.force:
                self._force_out(removal.name, removal.uid)
            else:
                self._remove(removal.kind, removal.name, removal.uid)
        if todo.kafka is not None:
            self._act(write=False)
            self._at_the_brokers(todo.kafka)
        self.events += todo.events

    def _act(self, write: bool = True) -> None:
        self._actions += 1
        if self._actions in self._kills:
            raise Killed
        self.writes += write

    def _forget(self) -> None:
        self._topics: TopicsState | None = None
        self._init: InitResult | None = None
        self._topics_deleted = False
        self._reset: ResetAnswer | None = None

    def _let_go(self) -> None:
        self.resource = None
        self.objects.clear()
        self.pods = {name: pod for name, pod in self.pods.items() if pod.digest == ""}

    def _apply(self, obj: Json) -> None:
        key = (obj["kind"], obj["metadata"]["name"])
        if obj["kind"] == "Pod":
            self._make(obj)
            return
        existing = self.objects.get(key)
        assert differs(obj, existing), f"{key} was applied, which changed nothing"
        if existing is not None:
            assert not existing.get("immutable") or _data(existing) == _data(obj), f"{key} can't change"
        uid = existing["metadata"]["uid"] if existing is not None else next(self._uids)
        self.objects[key] = _copied(dict(obj)) | {"metadata": {**obj["metadata"], "uid": uid}}

    def _make(self, obj: Json) -> None:
        metadata = obj["metadata"]
        name, made_from = metadata["name"], metadata["annotations"][names.ANNOTATION_SPEC]
        assert name not in self.pods, f"{name} is there already"
        assert self._topics is not None, "a pod was made before anybody looked at the topics"
        assert self._topics.ready, "a pod was made before its topics were ready"
        assert ("ConfigMap", names.config(NAME, made_from)) in self.objects, "its ConfigMap is not there"
        assert self.status["instances"], "a pod was made before it was on record"
        assert not self._resetting, "a pod was made before the reset was whole"
        self._may_replace(name, made_from)
        self._in_error.pop(name, None)
        self._asked.pop(name, None)
        uid, told = next(self._uids), names.ANNOTATION_SHUTDOWN in metadata["annotations"]
        if told:
            assert (made_from, self.nonce) in self._requests, f"{name} was told unasked"
            self._told[uid] = self.nonce
        self.pods[name] = PodState(
            name=name,
            uid=uid,
            ordinal=int(name.removeprefix(f"{NAME}-")),
            phase="Pending",
            created_at=self.now,
            digest=made_from,
            nonce=int(metadata["annotations"][names.ANNOTATION_NONCE]),
            image=metadata["annotations"][names.ANNOTATION_IMAGE],
            inputs=json.loads(metadata["annotations"].get(names.ANNOTATION_INPUTS, "{}")),
            shutdown_signaled=told,
            pause_signaled=metadata["annotations"].get(names.ANNOTATION_PAUSED) == names.PAUSED,
        )

    def _signal(self, signal: PodSignal) -> None:
        pod = self.pods[signal.pod]
        assert pod.uid == signal.uid
        if signal.annotation == names.ANNOTATION_LEAVE:
            assert signal.text in (names.LEAVING, None)
            assert pod.leave_signaled is not (signal.text == names.LEAVING), f"{pod.name} was told twice"
            self.pods[pod.name] = replace(pod, leave_signaled=signal.text == names.LEAVING)
        elif signal.annotation == names.ANNOTATION_SHUTDOWN:
            self._tell(signal.pod, signal.uid)
        else:
            assert signal.annotation == names.ANNOTATION_PAUSED
            wanted = bool(self.spec.get("paused"))
            assert signal.text == (names.PAUSED if wanted else None)
            assert pod.pause_signaled is not wanted, f"{pod.name} was told twice"
            self.pods[pod.name] = replace(pod, pause_signaled=wanted)

    def _tell(self, name: str, uid: str) -> None:
        pod = self.pods[name]
        assert not pod.shutdown_signaled, f"{name} was told twice"
        answering = self._answers_to(name)
        assert (pod.digest, answering) in self._requests, f"{name} was told unasked"
        self._told[uid] = answering
        self.pods[name] = replace(pod, shutdown_signaled=True)

    def _remove(self, kind: str, name: str, uid: str) -> None:
        if kind != "Pod":
            assert self.objects[kind, name]["metadata"]["uid"] == uid
            assert not any(names.config(NAME, pod.digest) == name for pod in self.pods.values()), f"{name} is in use"
            if kind == "PersistentVolumeClaim":
                assert self._resetting, f"{name} was deleted without a reset"
                assert self.status["reset"]["internalTopics"] == "Delete", f"{name} was to be kept"
            del self.objects[kind, name]
            return
        pod = self.pods[name]
        assert pod.uid == uid
        assert not pod.deleting, f"{name} was removed twice"
        assert self.resource is not None
        deleting = "deletionTimestamp" in self.resource["metadata"]
        for_good = deleting or self.spec.get("suspend") or self._resetting or (pod.ordinal or 0) >= self.wanted
        if pod.exit_code is None:
            assert pod.leave_signaled is bool(for_good), (
                f"{name} is removed {'for good' if for_good else 'to come back'}"
            )
        if not for_good:
            if name in self._in_error:
                self._may_replace(name, self.digest)
            elif pod.shutdown_signaled and pod.exit_code is None:
                assert pod.digest != self.digest or self._told[uid] < self.nonce, f"{name} was to end, and was replaced"
            elif pod.state is not None and pod.exit_code is None:
                self._may_roll(pod)
        else:
            self._in_error.pop(name, None)  # whoever asks for fewer pods, and for more again, has asked
        self.pods[name] = replace(pod, deleting=True, ready=False, gone_by=self.now + GRACE)

    def _force_out(self, name: str, uid: str) -> None:
        pod = self.pods[name]
        assert pod.uid == uid
        assert pod.gone_by is not None
        after = parse_duration(self.spec["nodeLoss"]["forceDeleteAfter"]).total_seconds()
        assert self.now >= pod.gone_by + after, f"{name} was deleted by force too soon"
        del self.pods[name]

    def _to_be_replaced(self, pod: PodState, wanted: str) -> bool:
        outdated = pod.digest != wanted or self._answers_to(pod.name) < self.nonce
        return outdated or any(pod.inputs.get(name) != now for name, now in self.inputs.items())

    def _answers_to(self, name: str) -> int:
        """The restartNonce that a pod was made with, or was on record as running under."""
        return max([self.pods[name].nonce, *(each["restartNonce"] for each in self._records if each["name"] == name)])

    @property
    def _requests(self) -> set[tuple[str, int]]:
        """The versions and numbers whose end was asked for, by pods that can be seen or are on record for it."""
        known = self.pods.keys() | {each["name"] for each in self._records if each.get("shutdownRequested")}
        return {asked for name, asked in self._asked.items() if name in known}

    @property
    def _records(self) -> Sequence[Json]:
        found: Sequence[Json] = self.status.get("instances", ())
        return found

    def _may_replace(self, name: str, made_from: str) -> None:
        if name in self._in_error:
            of, nonce = self._in_error[name]
            assert of != made_from or nonce < self.nonce, f"{name} ended in ERROR and was replaced unasked"

    def _may_roll(self, pod: PodState) -> None:
        of_present = f"{pod.name} runs, is of the present version, and answers to the present number and inputs"
        wanted = self.digest
        assert self._to_be_replaced(pod, wanted), of_present
        self._rolled &= set(self.pods) | {f"{NAME}-{ordinal}" for ordinal in range(self.wanted)}
        # One that has not arrived may itself be replaced, by the next version.
        self._rolled = {name for name in self._rolled if not self._arrived(name) and name != pod.name}
        assert not self._rolled, f"{pod.name} was replaced while {self._rolled} are not there yet"
        for other in (f"{NAME}-{ordinal}" for ordinal in range(self.wanted)):
            assert other in self.pods, f"{pod.name} was replaced while {other} is not there"
            late = self.now - (self.pods[other].gone_by or self.now)
            closing = self.pods[other].deleting and late < STUCK_AFTER
            assert not closing, f"{pod.name} was replaced while {other} is closing"
            older = [
                each
                for each in self.pods.values()
                if self._to_be_replaced(each, wanted) and (each.ordinal or 0) > (pod.ordinal or 0)
            ]
            assert all(each.deleting for each in older), f"{pod.name} was replaced before {older}"
        self._rolled.add(pod.name)

    @property
    def _resetting(self) -> bool:
        return bool(self.status.get("reset", {}).get("state") == "Running")

    def _check_reset(self, new: Json) -> None:
        """A reset that begins notes what there was; one that ends has changed all of it, or kept what it has to."""
        before, now = self.status.get("reset", {}), new.get("reset", {})
        if before.get("state") == "Running" and now.get("state") != "Running":
            assert now["state"] == "Done", f"a reset that had begun ended as {now}"
            assert self.offsets == 0, "the offsets were not set"
            deleted = now["internalTopics"] == "Delete"
            assert all((self._makings[name] > self._before_reset[name]) is deleted for name in TOPICS), now
            claims = {name for kind, name in self.objects if kind == "PersistentVolumeClaim"}
            assert claims == (set() if deleted else self._before_reset["claims"]), f"{claims} after {now}"
            assert now["nonce"] not in self.resets, "it was done twice"
            self.resets.append(now["nonce"])
        if now.get("state") == "Running" and before.get("state") != "Running":
            assert self.spec.get("suspend"), "a reset began while the application was not suspended"
            assert not self.refusal, "it was refused"
            claims = {name for kind, name in self.objects if kind == "PersistentVolumeClaim"}
            self._before_reset = {**self._makings, "claims": claims}

    def _step_of_reset(self, work: KafkaWork) -> None:
        failure, outlook = None, None
        if not self.brokers_up:
            failure = ("BrokerNotAvailable", "no broker answers at kafka:9092")
        elif work.kind == "reset-check":
            move = OffsetMove("orders", "id", ((0, self.offsets),), ((0, 0),))
            there = tuple(sorted(self.on_brokers)) if work.reset and work.reset.internal_topics == "Delete" else ()
            refusals = (self.refusal,) if self.refusal else ()
            members = (f"{NAME}-9 at h",) if self.intruder else ()
            outlook = ResetOutlook(None if refusals else ResetPlan(there, (move,)), refusals, members)
        else:
            assert self._resetting, "the brokers were changed before that was on record"
            assert not any(pod.digest for pod in self.pods.values()), "a reset under pods"
            if self.intruder:
                failure = ("IllegalState", "the group orders has members")
            elif work.kind == "reset-topics":
                self._makings = {name: count + 1 for name, count in self._makings.items()}
                self.on_brokers = set(TOPICS)
                self._topics = ready_topics(self.now)
            else:
                assert [move.after for move in work.moves] == [((0, 0),)]
                self.offsets = 0
        self._reset = ResetAnswer(work.kind, work.request, self.now, outlook, failure)

    def _at_the_brokers(self, work: KafkaWork) -> None:
        if work.kind.startswith("reset"):
            self._step_of_reset(work)
            return
        assert not self._resetting, f"{work} while a reset is under way"
        if not self.brokers_up:
            seen = self._topics
            failure = ("BrokerNotAvailable", "no broker answers at kafka:9092")
            self._topics = TopicsState(
                self.now, False, seen.existing if seen else (), seen.missing if seen else (), None, failure
            )
            if work.kind == "init":
                self._init = InitResult(work.nonce, *failure)
            return
        if work.kind == "delete":
            assert all(pod.digest == "" for pod in self.pods.values()), "topics were deleted under running pods"
            self.on_brokers, self._topics_deleted = set(), True
        if work.kind == "setup":
            assert self.spec.get("internalTopics", {}).get("setup", "automatic") == "automatic"
            self.on_brokers = set(TOPICS)
        if work.kind == "init":
            self._explicit_init(work.nonce)
        missing = tuple(topic for topic in TOPICS if topic not in self.on_brokers)
        existing = tuple(topic for topic in TOPICS if topic in self.on_brokers)
        self._topics = TopicsState(self.now, not missing, existing, missing, tasks=4)

    def _explicit_init(self, nonce: int) -> None:
        """KIP-698's init() without parameters."""
        if not self.on_brokers:
            self.on_brokers = set(TOPICS)
            self._init = InitResult(nonce, "Created", f"created {', '.join(TOPICS)}")
        elif self.on_brokers == set(TOPICS):
            self._init = InitResult(nonce, "AlreadySetUp")
        else:
            self._init = InitResult(nonce, "MissingInternalTopics", "some are missing")
        self._inits.append(nonce)

    @property
    def inits(self) -> Sequence[int]:
        """The nonces for which init() was called."""
        return self._inits

    # The pods' own life

    def _runs(self, name: str) -> bool:
        return name in self.pods and self.pods[name].exit_code is None and not self.pods[name].deleting

    def _arrived(self, name: str) -> bool:
        return name in self.pods and self.pods[name].state == "RUNNING" and self.pods[name].exit_code is None

    def _end(self, name: str, phase: str, code: int, **changes: Any) -> None:
        pod = self.pods[name]
        self.pods[name] = replace(pod, phase=phase, exit_code=code, ended_at=self.now, ready=False, **changes)

    def pods_go_on(self) -> bool:
        """One stage further for each pod; False when none had one before it."""
        before = dict(self.pods)
        for name, pod in before.items():
            if pod.digest == "":
                continue
            if pod.deleting and pod.uid in self._lost:
                continue
            if pod.deleting:
                del self.pods[name]
            elif pod.exit_code is not None:
                continue
            elif pod.digest in self._halting and self._halting[pod.digest] in (pod.phase, pod.state):
                why = ("ImagePullBackOff", "no such image") if pod.phase == "Pending" else ("", "")
                self.pods[name] = replace(pod, reason=why[0], message=why[1])
            elif pod.phase == "Pending":
                self.pods[name] = replace(pod, phase="Running", started_at=self.now, state="REBALANCING")
            elif pod.shutdown_signaled:
                self._in_error[name] = (pod.digest, self._told[pod.uid])
                error = ("ShutdownRequestedException", "another one asked for it")
                self._end(name, "Failed", 70, state="ERROR", restartable=False, error=error)
            elif pod.state == "REBALANCING":
                self.pods[name] = replace(pod, state="RUNNING", restored=True, ready=True)
                self.offsets += 1
            elif pod.paused is not pod.pause_signaled:
                self.pods[name] = replace(pod, paused=pod.pause_signaled)
        return before != self.pods


def _data(obj: Json) -> Any:
    return obj.get("data"), obj.get("binaryData")


def _without_times(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_times(each) for name, each in value.items() if name not in ("uid", "lastTransitionTime")}
    if isinstance(value, list):
        return [_without_times(each) for each in value]
    return None if seconds_of(value) is not None else value
