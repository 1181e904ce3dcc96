"""A member joins anew when it does not hear what the group assigns to it, and only then."""

from __future__ import annotations

import pytest

from streams_runtime.errors import BrokerNotAvailableException
from streams_runtime.kafka.consumer.unheard_assignment import AssignmentDoubt, HeartbeatLog
from streams_runtime.kafka.types import GroupMember, TopicPartition

A, B, C = (TopicPartition("orders", number) for number in range(3))
LOST = "[thrd:GroupCoordinator]: GroupCoordinator/1: Timed out ConsumerGroupHeartbeatRequest in flight (after 5002ms, …"


class Doubt:
    """One under test, with a clock; `counted` is what the group counts as this member's. None: it counts no such."""

    def __init__(self) -> None:
        self.now = 100.0
        self.asked = 0
        self.doubt = AssignmentDoubt("one|host|1", lambda: self.now)

    def look(
        self,
        unheard: int,
        has: set[TopicPartition],
        counted: set[TopicPartition] | None,
        target: set[TopicPartition] | None = None,
    ) -> bool:
        def members() -> list[GroupMember]:
            self.asked += 1
            return [member("two|host|1", {C}), *([] if counted is None else [member("one|host|1", counted, target)])]

        return self.doubt.is_justified(unheard, frozenset(has), members)


def member(client: str, has: set[TopicPartition], target: set[TopicPartition] | None = None) -> GroupMember:
    return GroupMember(client, None, client, "host", tuple(sorted(has)), None if target is None else tuple(target))


@pytest.fixture
def it() -> Doubt:
    return Doubt()


def test_nobody_is_asked_as_long_as_all_answers_come(it: Doubt) -> None:
    for _ in range(3):
        assert not it.look(0, {A}, {B})
        it.now += 16
    assert it.asked == 0


@pytest.mark.parametrize("counted", [{A}, {A, B, C}, set()])
def test_what_differs_at_two_looks_was_missed(it: Doubt, counted: set[TopicPartition]) -> None:
    assert not it.look(1, {A, B}, counted)
    it.now += 15
    assert not it.look(1, {A, B}, counted)
    assert it.asked == 1
    it.now += 1
    assert it.look(1, {A, B}, counted)


def test_what_the_group_waits_for_at_two_looks_was_missed(it: Doubt) -> None:
    assert not it.look(1, {A, B}, {A, B}, {A})
    it.now += 16
    assert it.look(1, {A, B}, {A, B}, {A})


@pytest.mark.parametrize("target", [{A, B}, {A, B, C}])
def test_what_another_member_has_to_give_back_first_is_not_missed(it: Doubt, target: set[TopicPartition]) -> None:
    for _ in range(3):
        assert not it.look(1, {A, B}, {A, B}, target)
        it.now += 16
    assert it.asked == 1


def test_after_an_agreement_nobody_is_asked_until_the_next_answer_is_lost(it: Doubt) -> None:
    assert not it.look(1, {A}, {A})
    for _ in range(3):
        it.now += 16
        assert not it.look(1, {A}, {B})
    assert it.asked == 1
    it.look(2, {A}, {B})
    assert it.asked == 2


@pytest.mark.parametrize(("has", "counted"), [({A}, {A, B}), ({A, B}, {A}), ({A, B}, None), ({A, B}, {B})])
def test_what_changes_meanwhile_is_still_being_heard(
    it: Doubt, has: set[TopicPartition], counted: set[TopicPartition] | None
) -> None:
    assert not it.look(1, {A, B}, {A, B, C})
    it.now += 16
    assert not it.look(1, has, counted)


def test_whom_the_group_has_put_out_hears_it_otherwise(it: Doubt) -> None:
    for _ in range(3):
        assert not it.look(1, {A}, None)
        it.now += 16
    assert it.asked == 3


def test_a_group_that_can_not_be_asked_is_asked_at_the_next_look(it: Doubt) -> None:
    def away() -> list[GroupMember]:
        raise BrokerNotAvailableException("away")

    with pytest.raises(BrokerNotAvailableException):
        it.doubt.is_justified(1, frozenset({A}), away)
    assert not it.look(1, {A}, {B})
    assert it.asked == 0
    it.now += 16
    assert not it.look(1, {A}, {B})
    it.now += 16
    assert it.look(1, {A}, {B})


@pytest.mark.parametrize(
    ("text", "count"),
    [(LOST, 1), (LOST.replace("ConsumerGroupHeartbeat", "Fetch"), 0), ("Timed out 1 in-flight, 0 retry-queued", 0)],
)
def test_lost_answers_are_counted_by_what_librdkafka_says(text: str, count: int) -> None:
    log = HeartbeatLog()
    log.log(20, "%s [%s] %s", "REQTMOUT", "one#consumer-1", text)
    assert log.unheard == count
