"""spec.reset in the operator: what it waits for, what it refuses, and that what has begun is carried to its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from operator_cases import condition, digest_of, observed, remembered, removed, status_of, told
from operator_world import NAME, START, application_of, resource, running

from streams_operator.model import KafkaWork, Observed, Plan, ResetAnswer
from streams_operator.names import ANNOTATION_HOLD
from streams_operator.plan import plan
from streams_operator.plan.reset.reset_record import record_of, request_of
from streams_operator.reconcile.reconciler import cannot_be_undone
from streams_runtime.api.spec.operations.reset_spec import ResetSpec
from streams_runtime.api.status.resource_status import ApplicationStatus
from streams_runtime.errors import Mistake
from streams_runtime.topics.reset.reset_plan import OffsetMove, ResetOutlook, ResetPlan

MOVES = (OffsetMove("orders", "id-of-orders", ((0, 40),), ((0, 0), (1, 5))),)
TOPICS = ("orders-totals-changelog", "orders-by-user-repartition")
GOOD = ResetOutlook(ResetPlan(TOPICS, MOVES))
UID = "uid-of-orders"


def reset(nonce: int = 1, **more: Any) -> dict[str, Any]:
    return {"nonce": nonce, "to": "earliest", **more}


def suspended(asked: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"suspend": True, "reset": asked or reset(), **more}


def request(spec: Mapping[str, Any]) -> str:
    return request_of(ResetSpec.model_validate(spec["reset"]))


def claim(ordinal: int, owner: str = UID, going: bool = False) -> tuple[tuple[str, str], dict[str, Any]]:
    name = f"state-{NAME}-{ordinal}"
    metadata: dict[str, Any] = {"name": name, "uid": f"uid-{name}", "ownerReferences": [{"uid": owner}]}
    if going:
        metadata["deletionTimestamp"] = "2027-01-15T08:00:00Z"
    return ("PersistentVolumeClaim", name), {"kind": "PersistentVolumeClaim", "metadata": metadata, "spec": {}}


def answer(spec: Mapping[str, Any], step: str = "reset-check", **more: Any) -> ResetAnswer:
    outlook = GOOD if step == "reset-check" and "failure" not in more else None
    return ResetAnswer(step, more.pop("request", request(spec)), **{"at": START, "outlook": outlook, **more})


def shown(found: Observed) -> dict[str, Any]:
    return dict(status_of(found)["reset"])


def begun(spec: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """The status of a reset that has just begun."""
    given = dict(spec or suspended())
    status = status_of(observed(given, reset=answer(given), **more))
    assert status["reset"]["state"] == "Running"
    return status


def work(todo: Plan) -> tuple[str, ...]:
    return () if todo.kafka is None else (todo.kafka.kind,)


def test_one_of_an_application_that_is_not_suspended_is_refused_and_says_what_to_do() -> None:
    spec = {"reset": reset()}
    pods = [running(n, digest_of()) for n in range(2)]
    found = observed(spec, pods, status=remembered(*pods), reset=answer(spec))
    assert (shown(found)["state"], shown(found)["nonce"]) == ("Refused", 1)
    assert "set spec.suspend to true, and give spec.reset a greater nonce" in shown(found)["message"]
    assert work(plan(found)) == ()
    assert [(each.type, each.reason) for each in plan(found).events] == [("Warning", "ResetRefused")]
    # Whoever suspends it later for another reason does not have it reset.
    later = observed({**spec, "suspend": True}, status=status_of(found), reset=answer(spec))
    assert shown(later)["state"] == "Refused"
    assert work(plan(later)) == ()
    again = suspended(reset(2))
    assert plan(observed(again, status=status_of(found))).kafka == KafkaWork(
        "reset-check", 2, request(again), ResetSpec.model_validate(again["reset"])
    )


def test_it_waits_for_pods_to_close_before_the_brokers_are_asked() -> None:
    pods = [running(0, digest_of(), deleting=True)]
    found = observed(suspended(), pods, status=remembered(*pods))
    assert shown(found)["state"] == "Pending"
    assert "orders-0" in shown(found)["message"]
    assert work(plan(found)) == ()
    assert work(plan(observed(suspended(), status=status_of(found)))) == ("reset-check",)


def test_members_of_the_group_are_waited_for_and_named() -> None:
    spec = suspended()
    found = observed(spec, reset=answer(spec, outlook=ResetOutlook(GOOD.plan, members=("orders-1 at /10.0.0.7",))))
    assert shown(found)["state"] == "Pending"
    assert "orders-1 at /10.0.0.7" in shown(found)["message"]
    assert work(plan(found)) == ()
    assert plan(found).requeue_after == 10
    assert condition(status_of(found), "Progressing")["reason"] == "Resetting"
    later = observed(spec, status=status_of(found), reset=found.reset, now=START + 10)
    assert work(plan(later)) == ("reset-check",)
    assert plan(later).status is None, "it waits on without a write"
    late = status_of(observed(spec, status=status_of(found), reset=found.reset, now=START + 3600))
    assert condition(late, "Degraded")["reason"] == "ProgressDeadlineExceeded"
    assert "orders-1 at /10.0.0.7" in condition(late, "Degraded")["message"]


def test_brokers_that_do_not_answer_are_asked_again() -> None:
    spec = suspended()
    found = observed(spec, reset=answer(spec, failure=("BrokerNotAvailable", "no broker answers at kafka:9092")))
    assert (shown(found)["state"], shown(found)["message"]) == ("Pending", "no broker answers at kafka:9092")
    assert plan(found).requeue_after == 10
    later = observed(spec, status=status_of(found), reset=found.reset, now=START + 11)
    assert work(plan(later)) == ("reset-check",)


def test_refusals_change_nothing_and_hold_until_something_else_is_asked_for() -> None:
    spec = suspended()
    refusals = ("orders: no partition 7", "2030 is in the future")
    found = observed(spec, reset=answer(spec, outlook=ResetOutlook(None, refusals)))
    assert shown(found)["state"] == "Refused"
    assert shown(found)["message"] == "nothing was changed: orders: no partition 7; 2030 is in the future"
    assert plan(observed(spec, status=status_of(found), reset=answer(spec))).status is None
    other = suspended(reset(1, to="latest"))
    assert work(plan(observed(other, status=status_of(found), reset=answer(spec)))) == ("reset-check",)


def test_a_refusal_needs_a_person_until_the_resource_asks_for_something_else() -> None:
    spec = suspended()
    refused = {"outlook": ResetOutlook(None, ("orders: no partition 7",))}
    found = observed(spec, reset=answer(spec, **refused))
    status = status_of(found)
    degraded = condition(status, "Degraded")
    assert (degraded["status"], degraded["reason"]) == ("True", "ResetRefused")
    assert "the reset of nonce 1 was refused: nothing was changed: orders: no partition 7" in degraded["message"]
    assert [each.reason for each in plan(found).events if "Reset" in each.reason] == ["ResetRefused"], "said once"
    assert plan(observed(spec, status=status)).status is None, "it stays so without a write"
    held = observed(spec, status=status, metadata={"annotations": {ANNOTATION_HOLD: "true"}})
    assert condition(status_of(held), "Degraded")["reason"] == "ResetRefused"
    for other in ({"suspend": True}, suspended(reset(2)), suspended(reset(to="latest"))):
        assert condition(status_of(observed(other, status=status)), "Degraded")["status"] == "False"
    rehearsed = suspended(reset(dryRun=True))
    asked = observed(rehearsed, reset=answer(rehearsed, **refused))
    assert shown(asked)["state"] == "Refused"
    assert condition(status_of(asked), "Degraded")["status"] == "False", "a dry run has said what it was asked for"


def test_a_dry_run_says_what_would_go_and_changes_nothing_also_while_pods_run() -> None:
    spec = {"reset": reset(dryRun=True)}
    pods = [running(n, digest_of()) for n in range(2)]
    found = observed(spec, pods, status=remembered(*pods), reset=answer(spec), objects=dict([claim(0), claim(1)]))
    said = shown(found)
    assert said["state"] == "DryRun"
    assert said["topics"] == list(TOPICS)
    assert said["offsets"] == [
        {"topic": "orders", "topicId": "id-of-orders", "partitions": 2, "before": "0:40", "after": "0:0 1:5"}
    ]
    assert said["volumes"] == ["state-orders-0", "state-orders-1"]
    assert said["message"] == (
        "would delete and make anew 2 internal topics, set the offsets of 2 partitions (40 records back), delete 2"
        " volume claims; the application has to be suspended first: spec.suspend: true"
    )
    assert work(plan(found)) == ()
    assert removed(plan(found), "PersistentVolumeClaim") == []
    assert told(plan(found)) == ["ResetDryRun"]
    real = suspended(reset(dryRun=False))
    assert work(plan(observed(real, status=status_of(found), reset=answer(spec)))) == ("reset-check",), "same nonce"


def test_its_steps_follow_each_other_and_each_is_on_record_before_it_is_done() -> None:
    spec, objects = suspended(), dict([claim(0), claim(1), claim(7, owner="uid-of-another")])
    first = observed(spec, reset=answer(spec), objects=objects)
    assert (shown(first)["state"], shown(first)["step"]) == ("Running", "Topics")
    assert plan(first).kafka == KafkaWork("reset-topics", 1, request(spec))
    assert cannot_be_undone(plan(first)), "it has to rest on what the API server has now"
    second = observed(spec, status=status_of(first), reset=answer(spec, "reset-topics"), objects=objects)
    assert shown(second)["step"] == "Offsets"
    assert plan(second).kafka == KafkaWork("reset-offsets", 1, request(spec), moves=MOVES)
    third = observed(spec, status=status_of(second), reset=answer(spec, "reset-offsets"), objects=objects)
    assert shown(third)["step"] == "Volumes"
    assert removed(plan(third), "PersistentVolumeClaim") == ["state-orders-0", "state-orders-1"]
    assert work(plan(third)) == ()
    going = dict([claim(0, going=True), claim(7, owner="uid-of-another")])
    fourth = observed(spec, status=status_of(third), objects=going)
    assert plan(fourth).remove == ()
    assert shown(fourth)["state"] == "Running", "it waits until they are gone"
    last = observed(spec, status=status_of(fourth), objects=dict([claim(7, owner="uid-of-another")]))
    assert shown(last)["state"] == "Done"
    assert "step" not in shown(last)
    assert shown(last)["message"] == (
        "deleted and made anew 2 internal topics, set the offsets of 2 partitions (40 records back), deleted 2 volume"
        " claims"
    )
    assert told(plan(last)) == ["ResetDone"]
    assert plan(observed(spec, status=status_of(last), reset=answer(spec))).status is None
    assert work(plan(observed(spec, status=status_of(last), reset=answer(spec)))) == ()


def test_a_change_without_a_greater_nonce_does_nothing_and_is_told() -> None:
    spec = suspended(reset(internalTopics="Keep"))
    running = status_of(observed(spec, reset=answer(spec, outlook=ResetOutlook(ResetPlan((), MOVES)))))
    done = status_of(observed(spec, status=running, reset=answer(spec, "reset-offsets")))
    changed = observed(suspended(reset(1, to="latest")), status=done, reset=answer(spec))
    assert work(plan(changed)) == ()
    assert shown(changed)["state"] == "Done"
    assert (
        shown(changed)["message"] == f"{done['reset']['message']}; spec.reset has changed, and its nonce is not greater"
    )
    back = observed(spec, status=status_of(changed))
    assert shown(back) == done["reset"]
    assert plan(observed(spec, status=done)).status is None


def test_keeping_internal_topics_sets_offsets_and_touches_nothing_else() -> None:
    spec, objects = suspended(reset(internalTopics="Keep")), dict([claim(0)])
    outlook = ResetOutlook(ResetPlan((), MOVES))
    first = observed(spec, reset=answer(spec, outlook=outlook), objects=objects)
    assert work(plan(first)) == ("reset-offsets",)
    last = observed(spec, status=status_of(first), reset=answer(spec, "reset-offsets"), objects=objects)
    assert shown(last)["state"] == "Done"
    assert removed(plan(last), "PersistentVolumeClaim") == []
    assert shown(last)["message"] == "set the offsets of 2 partitions (40 records back)"


@pytest.mark.parametrize(
    "spec",
    [
        {"suspend": False, "reset": reset()},
        {"suspend": True},
        {"suspend": False},
        suspended(reset(2, to="latest", internalTopics="Keep")),
        suspended(reset(1, dryRun=True)),
    ],
    ids=["resumed", "taken out", "resumed and taken out", "another nonce", "a dry run"],
)
def test_what_has_begun_goes_on_as_it_began_whatever_the_spec_says(spec: dict[str, Any]) -> None:
    of = request(suspended())
    status = begun()
    found = observed(spec, status=status)
    assert plan(found).kafka == KafkaWork("reset-topics", 1, of)
    assert [each for each in plan(found).apply if each["kind"] in ("Pod", "PersistentVolumeClaim")] == []
    assert condition(status_of(found), "Progressing")["reason"] == "Resetting"
    assert condition(status_of(found), "Ready")["reason"] == "Resetting"
    found = observed(spec, status=status_of(found), reset=answer(suspended(), "reset-topics"))
    assert plan(found).kafka == KafkaWork("reset-offsets", 1, of, moves=MOVES)
    last = observed(spec, status=status_of(found), reset=answer(suspended(), "reset-offsets"))
    assert (shown(last)["state"], shown(last)["nonce"]) == ("Done", 1)
    after = observed(spec, status=status_of(last))
    pods = [each for each in plan(after).apply if each["kind"] == "Pod"]
    assert len(pods) == (0 if spec["suspend"] else 2)
    asks = spec.get("reset", {}).get("nonce") == 2
    assert work(plan(after)) == (("reset-check",) if asks else ())


@pytest.mark.parametrize(("step", "status"), [("reset-topics", begun), ("reset-offsets", None)])
def test_a_step_that_fails_is_tried_again_and_says_why(step: str, status: Any) -> None:
    spec = suspended()
    before = begun()
    if status is None:
        before = status_of(observed(spec, status=before, reset=answer(spec, "reset-topics")))
    failed = answer(spec, step, failure=("IllegalState", "the group orders has members: x at h"))
    found = observed(spec, status=before, reset=failed)
    assert shown(found)["state"] == "Running"
    assert shown(found)["message"].endswith(": the group orders has members: x at h")
    assert work(plan(found)) == ()
    assert plan(observed(spec, status=status_of(found), reset=failed)).requeue_after == 10
    again = observed(spec, status=status_of(found), reset=failed, now=START + 10)
    assert work(plan(again)) == (step,)


def test_an_answer_of_an_earlier_reset_of_the_same_words_does_not_count() -> None:
    spec = suspended()  # somebody has removed the status: the operator still remembers what it did then
    status = status_of(observed(spec, reset=answer(spec, at=START), now=START + 60))
    assert status["reset"]["state"] == "Running"
    found = observed(spec, status=status, reset=answer(spec, "reset-topics", at=START + 59), now=START + 61)
    assert work(plan(found)) == ("reset-topics",)


def test_what_the_brokers_said_long_ago_is_asked_anew() -> None:
    spec = suspended()
    assert work(plan(observed(spec, reset=answer(spec), now=START + 121))) == ("reset-check",)


def test_an_explicit_init_waits_for_the_reset() -> None:
    internal = {"internalTopics": {"setup": "manual", "init": {"nonce": 3}}}
    spec = suspended(**internal)
    found = observed(spec, status=begun(spec))
    assert work(plan(found)) == ("reset-topics",)
    last = observed(spec, status=status_of(found), reset=answer(spec, "reset-topics"))
    last = observed(spec, status=status_of(last), reset=answer(spec, "reset-offsets"))
    assert shown(last)["state"] == "Done"
    assert work(plan(observed(spec, status=status_of(last)))) == ("init",)


def test_an_application_on_hold_is_left_alone_and_goes_on_afterwards() -> None:
    status = begun()
    held = observed(suspended(), status=status, metadata={"annotations": {ANNOTATION_HOLD: "true"}})
    assert (plan(held).kafka, plan(held).remove) == (None, ())
    assert shown(held) == status["reset"]
    assert condition(status_of(held), "Ready")["reason"] == "Resetting"
    assert work(plan(observed(suspended(), status=status_of(held)))) == ("reset-topics",)


def test_an_invalid_spec_keeps_what_has_begun_and_makes_no_pod() -> None:
    status = begun()
    found = observed({"suspend": False}, status=status)
    invalid = Observed(found.resource, None, (Mistake("spec.x", "y", "z"),), found.now, defaults=found.defaults)
    assert status_of(invalid)["reset"] == status["reset"]
    assert plan(invalid).kafka is None
    assert plan(invalid).apply == ()


def test_a_deletion_goes_before_a_reset() -> None:
    status = begun()
    going = {"deletionTimestamp": "2027-01-15T08:00:00Z", "finalizers": []}
    found = observed(suspended(), status=status, metadata=going)
    assert plan(found).kafka is None
    assert not plan(found).finalizer


def test_one_that_was_taken_out_before_it_began_is_over() -> None:
    pending = status_of(observed(suspended()))
    assert pending["reset"]["state"] == "Pending"
    assert shown(observed({"suspend": True}, status=pending))["state"] == "Refused"


def test_one_that_does_not_come_to_its_end_needs_a_person() -> None:
    status = begun()
    failed = answer(suspended(), "reset-topics", failure=("Config", "the broker refused it"), at=START + 3590)
    found = status_of(observed(suspended(), status=status, reset=failed, now=START + 3600))
    assert condition(found, "Degraded")["reason"] == "ProgressDeadlineExceeded"
    assert "the reset of nonce 1 is Running since" in condition(found, "Degraded")["message"]
    assert "the broker refused it" in condition(found, "Degraded")["message"]
    assert condition(found, "Progressing")["status"] == "False"


@pytest.mark.parametrize(
    "spoil",
    [
        {"step": "Somewhere"},
        {"step": None},
        {"request": ""},
        {"nonce": None},
        {"offsets": [{"topic": "orders", "after": "0:x"}]},
        {"offsets": [{"topic": "", "after": "0:1"}, {"topic": "orders", "after": "0:-1"}]},
    ],
)
def test_a_record_that_somebody_has_spoilt_is_none(spoil: dict[str, Any]) -> None:
    status = begun()
    status["reset"] |= spoil
    assert record_of(ApplicationStatus.read(status).reset) is None
    found = observed({"suspend": False}, status=status)
    assert [each["metadata"]["name"] for each in plan(found).apply if each["kind"] == "Pod"] == ["orders-0", "orders-1"]


def test_a_record_is_read_as_it_was_written() -> None:
    status = begun(objects=dict([claim(0)]))
    record = record_of(ApplicationStatus.read(status).reset)
    assert record is not None
    assert (record.status.document(), record.moves) == (status["reset"], MOVES)


def test_a_reset_is_nothing_that_pods_read() -> None:
    assert digest_of(suspended()) == digest_of()
    assert application_of(resource(suspended())).spec.reset is not None
