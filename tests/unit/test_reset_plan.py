"""What a reset would do, and everything that speaks against it, without any broker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams_runtime.api import parse_application, read_application
from streams_runtime.api.spec.operations.reset_spec import ResetSpec
from streams_runtime.topics.reset.reset_plan import OffsetMove, PartitionLog, ResetSurvey, TopicLog, plan_reset
from streams_runtime.topology.declared.build_topology import build_topology

NOW = 1_800_000_000.0  # 2027-01-15T08:00:00Z
FUTURE = "2027-01-15T08:00:01Z"
PAST = "2026-01-31T08:00:00Z"
CHANGELOG = "app-totals-changelog"
IN_THE_FUTURE = f"{FUTURE} is in the future, as it is 2027-01-15T08:00:00+00:00: give a time that has passed, or latest"
READ_BY_OTHERS = (
    f"the internal topic {CHANGELOG} is read by the group audit, copy too: stop whatever reads it, or keep internal"
    " topics"
)
NOT_IN_FORCE = (
    "the topology in force has no source gone with offsets of a group: name others, or let the topology that has them"
    " be deployed first"
)
NO_RIGHT = (
    f"the brokers do not let this login delete {CHANGELOG}: grant it to the user of spec.kafka.config, or keep internal"
    " topics"
)
JSON = {"format": "json", "schema": "user STRING, amount BIGINT"}


def document(reset: Any = None) -> dict[str, Any]:
    key = {"format": "string"}
    return {
        "apiVersion": "streamsoperator.io/v1alpha1",
        "kind": "StreamsApplication",
        "metadata": {"name": "app"},
        "spec": {
            **({} if reset is None else {"reset": reset}),
            "topology": {
                "sources": [
                    {"name": "sales", "topic": "orders", "key": key, "value": JSON},
                    {"name": "users", "topic": "people", "key": key, "value": JSON, "table": {"store": "users"}},
                    {
                        "name": "rates",
                        "topic": "rates-topic",
                        "key": key,
                        "value": JSON,
                        "table": {"store": "rates", "global": True},
                    },
                ],
                "steps": [
                    {"name": "joined", "from": "sales", "join": {"table": "users", "select": {"u": "users.user"}}},
                    {
                        "name": "rated",
                        "from": "joined",
                        "join": {"table": "rates", "key": "user", "select": {"r": "rates.amount"}},
                    },
                    {"name": "totals", "from": "rated", "aggregate": {"n": "count(*)"}, "store": "totals"},
                ],
                "sinks": [{"from": "totals", "topic": "totals"}],
            },
        },
    }


TOPOLOGY = build_topology(parse_application(document()))


def asked(to: Any = "earliest", **more: Any) -> ResetSpec:
    return ResetSpec.model_validate({"nonce": 1, "to": to, **more})


def logs(**more: Any) -> Mapping[str, TopicLog]:
    return {
        "orders": TopicLog("id-orders", {0: PartitionLog(5, 50, 20, **more), 1: PartitionLog(0, 9, None, **more)}),
        "people": TopicLog("id-people", {0: PartitionLog(0, 7, 7, **more), 1: PartitionLog(2, 2, 2, **more)}),
    }


def survey(**more: Any) -> ResetSurvey:
    return ResetSurvey(**{"logs": logs(), "internal": (CHANGELOG,), **more})


@pytest.mark.parametrize(
    ("to", "orders", "people"),
    [
        ("earliest", ((0, 5), (1, 0)), ((0, 0), (1, 2))),
        ("latest", ((0, 50), (1, 9)), ((0, 7), (1, 2))),
    ],
)
def test_every_source_with_offsets_of_the_group_is_set_where_nothing_else_is_said(
    to: str, orders: Any, people: Any
) -> None:
    outlook = plan_reset(asked(to), TOPOLOGY, survey(), NOW)
    assert outlook.refusals == ()
    assert outlook.plan is not None
    assert outlook.plan.topics == (CHANGELOG,)
    assert outlook.plan.moves == (
        OffsetMove("orders", "id-orders", ((0, 20),), orders),
        OffsetMove("people", "id-people", ((0, 7), (1, 2)), people),
    ), "the topic of the global table is not among them"
    assert outlook.plan.partitions == 4


def test_a_time_goes_to_its_first_record_or_to_the_end_where_there_is_none_as_late() -> None:
    found = ResetSurvey({**logs(at_time=None), "orders": TopicLog("id", {0: PartitionLog(5, 50, 20, at_time=31)})})
    outlook = plan_reset(asked(PAST), TOPOLOGY, found, NOW)
    assert outlook.plan is not None
    assert [move.after for move in outlook.plan.moves] == [((0, 31),), ((0, 7), (1, 2))]


def test_only_the_named_sources_and_partitions_are_set() -> None:
    by_source = plan_reset(asked(sources=["users"]), TOPOLOGY, survey(), NOW).plan
    assert by_source is not None
    assert [move.topic for move in by_source.moves] == ["people"]
    by_offset = plan_reset(asked({"offsets": {"sales": {"1": 9}}}), TOPOLOGY, survey(), NOW).plan
    assert by_offset is not None
    assert by_offset.moves == (OffsetMove("orders", "id-orders", (), ((1, 9),)),)


@pytest.mark.parametrize(
    ("reset", "found", "refusals"),
    [
        (
            asked({"offsets": {"sales": {"0": 4, "1": 10, "2": 0}}}),
            survey(),
            (
                "sales: orders-0 has the offsets 5 to 50, and not 4: give one of these",
                "sales: orders-1 has the offsets 0 to 9, and not 10: give one of these",
                "sales: the topic orders has 2 partitions, and no partition 2",
            ),
        ),
        (
            asked(FUTURE),
            survey(),
            (IN_THE_FUTURE,),
        ),
        (
            asked(),
            survey(logs={"people": logs()["people"]}),
            ("the source sales reads the topic orders, which is not there: create it",),
        ),
        (asked(sources=["sales", "gone"]), survey(), (NOT_IN_FORCE,)),
        (asked({"offsets": {"gone": {"0": 1}}}), survey(), (NOT_IN_FORCE,)),
        (asked(), survey(problems=("sink topics are missing: totals",)), ("sink topics are missing: totals",)),
        (
            asked(),
            survey(readers={CHANGELOG: ("audit", "copy")}),
            (READ_BY_OTHERS,),
        ),
        (
            asked(),
            survey(undeletable=(CHANGELOG,)),
            (NO_RIGHT,),
        ),
    ],
    ids=[
        "offsets",
        "future",
        "no topic",
        "another topology",
        "another topology by offset",
        "problems",
        "readers",
        "rights",
    ],
)
def test_everything_that_speaks_against_it_is_said_at_once(
    reset: ResetSpec, found: ResetSurvey, refusals: tuple[str, ...]
) -> None:
    outlook = plan_reset(reset, TOPOLOGY, found, NOW)
    assert outlook.plan is None
    assert outlook.refusals == refusals


def test_members_are_told_and_are_no_refusal() -> None:
    outlook = plan_reset(asked(), TOPOLOGY, survey(members=("app-0 at h",)), NOW)
    assert (outlook.plan is not None, outlook.members) == (True, ("app-0 at h",))


@given(
    st.lists(st.tuples(st.integers(0, 100), st.integers(0, 100), st.none() | st.integers(0, 200)), min_size=1),
    st.sampled_from(["earliest", "latest", PAST]),
)
def test_no_offset_is_set_that_its_log_does_not_have(partitions: list[tuple[int, int, int | None]], to: str) -> None:
    log = TopicLog(
        "id",
        {
            number: PartitionLog(start, start + length, committed, start + length // 2)
            for number, (start, length, committed) in enumerate(partitions)
        },
    )
    plan = plan_reset(asked(to), TOPOLOGY, ResetSurvey({"orders": log, "people": log}), NOW).plan
    assert plan is not None
    for move in plan.moves:
        assert dict(move.after).keys() == log.partitions.keys()
        assert all(log.partitions[number].start <= at <= log.partitions[number].end for number, at in move.after)
        assert dict(move.before) == {
            n: each.committed for n, each in log.partitions.items() if each.committed is not None
        }


MISTAKES: list[tuple[Any, str, str]] = [
    ({"to": "earliest"}, "spec.reset.nonce", "is missing"),
    ({"nonce": 1}, "spec.reset.to", "is missing"),
    ({"nonce": -1, "to": "earliest"}, "spec.reset.nonce", "-1"),
    ({"nonce": 1, "to": "first"}, "spec.reset.to", "found 'first'"),
    ({"nonce": 1, "to": 5}, "spec.reset.to", "found 5"),
    ({"nonce": 1, "to": "2026-01-31T08:00:00"}, "spec.reset.to", "found '2026-01-31T08:00:00'"),
    ({"nonce": 1, "to": "2026-02-31T08:00:00Z"}, "spec.reset.to", "found '2026-02-31T08:00:00Z'"),
    ({"nonce": 1, "to": "1969-01-31T08:00:00Z"}, "spec.reset.to", "before 1970"),
    ({"nonce": 1, "to": {"offset": 4}}, "spec.reset.to", "found {'offset': 4}"),
    ({"nonce": 1, "to": {"offsets": {"sales": {"0": -1}}}}, "spec.reset.to.offsets.sales", "-1"),
    ({"nonce": 1, "to": {"offsets": {"sales": {}}}}, "spec.reset.to.offsets.sales", "names no partition"),
    ({"nonce": 1, "to": {"offsets": {"sales": {"first": 1}}}}, "spec.reset.to.offsets.sales.first", "no partition"),
    ({"nonce": 1, "to": {"offsets": {"sale": {"0": 1}}}}, "spec.reset.to.offsets.sale", "no source"),
    ({"nonce": 1, "to": "earliest", "sources": ["orders"]}, "spec.reset.sources[0]", "'orders' is no source"),
    ({"nonce": 1, "to": "earliest", "sources": ["rates"]}, "spec.reset.sources[0]", "global table"),
    ({"nonce": 1, "to": "earliest", "sources": ["users", "users"]}, "spec.reset.sources[1]", "named twice"),
    (
        {"nonce": 1, "to": {"offsets": {"sales": {"0": 1}}}, "sources": ["users"]},
        "spec.reset.to.offsets.sales",
        "is not among spec.reset.sources",
    ),
    ({"nonce": 1, "to": "earliest", "internalTopics": "keep"}, "spec.reset.internalTopics", "keep"),
    ({"nonce": 1, "to": "earliest", "force": True}, "spec.reset.force", ""),
]


@pytest.mark.parametrize(("reset", "path", "found"), MISTAKES, ids=[f"{path} {found}" for _, path, found in MISTAKES])
def test_a_mistake_in_spec_reset_has_its_field_and_a_remedy(reset: Any, path: str, found: str) -> None:
    mistakes = read_application(document(reset)).mistakes
    assert [each for each in mistakes if each.path.startswith(path) and found in each.found and each.remedy], mistakes


def test_what_was_asked_for_is_written_as_it_was_read() -> None:
    for to in ("earliest", "latest", PAST, {"offsets": {"sales": {"0": 7}}}):
        given = {"nonce": 2, "to": to, "sources": [], "internalTopics": "Keep", "dryRun": True}
        assert ResetSpec.model_validate(given).model_dump(mode="json", by_alias=True) == given
        reading = read_application(document(given))
        assert reading.mistakes == ()
