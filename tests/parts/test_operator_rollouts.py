"""A new default image goes to a few applications at a time, and stops at the first one that degrades."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from operator_world import IMAGE, World, application_of, resource, running

from streams_operator.kube.pod_state import pod_state
from streams_operator.model import AwaitedImage, Defaults, Key, PodState
from streams_operator.plan.objects.identity import Identity
from streams_operator.plan.objects.pod_manifest import pod
from streams_operator.reconcile.rollouts import Rollouts, image_of, is_degraded

NEW = "runtime:2"


class Fleet:
    """Applications under one operator, which has just started with a new default image."""

    def __init__(self, count: int, at_a_time: int, **spec: Any) -> None:
        self.worlds = {Key("shop", f"app-{number}"): World(spec) for number in range(count)}
        for world in self.worlds.values():
            world.settle()
        self.at_a_time = at_a_time
        self.now = 0.0
        self.woken: list[Key] = []
        self.restart_operator()

    def __getitem__(self, number: int) -> World:
        return self.worlds[Key("shop", f"app-{number}")]

    def restart_operator(self) -> None:
        count = lambda: len(self.worlds)  # noqa: E731
        self.rollouts = Rollouts(NEW, self.at_a_time, count, self.woken.append, lambda: self.now)
        for world in self.worlds.values():
            world.restart_operator()

    def look(self, key: Key) -> None:
        """One round of one application, and a second of its pods' life."""
        world = self.worlds[key]
        found = world.resource
        assert found is not None
        application = None if world.mistakes else application_of(found)
        image, world.awaited = self.rollouts.image(key, found, application, tuple(world.pods.values()))
        world.defaults = Defaults(image)
        world.reconcile()
        world.pods_go_on()
        world.now += 1.0

    def turn(self) -> None:
        self.now += 1.0
        for key in self.worlds:
            self.look(key)
        assert len(self.under_way) <= self.at_a_time or self.at_a_time == 0

    def until_settled(self, turns: int = 60) -> None:
        for _ in range(turns):
            self.turn()

    def images(self, key: Key) -> set[str]:
        return {pod.image for pod in self.worlds[key].pods.values()}

    @property
    def under_way(self) -> set[Key]:
        return {key for key in self.worlds if len(self.images(key)) > 1}

    @property
    def are_settled(self) -> bool:
        """Whether every application is through with it and says so."""
        settled = {world.condition("Progressing") for world in self.worlds.values()} == {("False", "Settled")}
        return settled and not self.under_way and len(self.have_it) == len(self.worlds)

    @property
    def have_it(self) -> set[int]:
        return {number for number, key in enumerate(self.worlds) if NEW in self.images(key)}


@settings(max_examples=examples(8), deadline=None)
@given(st.integers(1, 6), st.integers(1, 3), st.lists(st.integers(0, 12), max_size=2))
def test_all_get_it_and_no_more_than_so_many_at_a_time(count: int, at_a_time: int, restarts: list[int]) -> None:
    fleet = Fleet(count, at_a_time)
    done_at = None
    for turn in range(80):
        if turn in restarts:
            fleet.restart_operator()
        fleet.turn()  # which claims that no more are under way
        if done_at is None and fleet.are_settled:
            done_at = turn
        if done_at is not None and turn >= max([done_at, *restarts]) + 10:
            break
    assert fleet.have_it == set(range(count))
    assert not fleet.under_way
    assert {world.condition("Progressing") for world in fleet.worlds.values()} == {("False", "Settled")}


def test_others_wait_with_the_image_they_have_and_say_so() -> None:
    fleet = Fleet(3, 1)
    fleet.turn()
    fleet.turn()
    assert fleet.have_it <= {0}
    for number in (1, 2):
        assert fleet[number].condition("Progressing") == ("True", "AwaitingImage")
        assert fleet[number].condition("Ready") == ("True", "Running")
    fleet[2].crash("orders-0")
    before = fleet.rollouts.waiting
    for _ in range(12):
        fleet.look(Key("shop", "app-2"))
    assert fleet.images(Key("shop", "app-2")) == {IMAGE}, "what is made anew is made of it too"
    assert before == fleet.rollouts.waiting == 2


def test_one_that_is_kept_from_changes_amid_its_turn_holds_nobody_up_and_goes_on_where_it_was() -> None:
    fleet = Fleet(2, 1)
    while not fleet.under_way:
        fleet.turn()
    (first,) = fleet.under_way
    (second,) = set(fleet.worlds) - {first}
    fleet.worlds[first].hold()
    for _ in range(60):
        for key in fleet.worlds:
            fleet.look(key)
    assert fleet.images(first) == {IMAGE, NEW}, "nothing of it is changed"
    assert fleet.worlds[first].condition("Progressing") == ("False", "ReconciliationPaused")
    assert fleet.images(second) == {NEW}
    fleet.worlds[first].release()
    fleet.until_settled()
    assert fleet.images(first) == {NEW}


def test_it_stops_at_the_first_that_degrades_and_goes_on_when_that_is_mended(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "streams_operator.reconcile.rollouts")
    fleet = Fleet(3, 1, progressDeadline="10s")
    fleet[0].defaults = Defaults(NEW)
    fleet[0].halt("Pending")
    fleet.until_settled()
    assert fleet.rollouts.stopped
    assert fleet.have_it == {0}
    assert fleet[0].condition("Degraded") == ("True", "ProgressDeadlineExceeded")
    for number in (1, 2):
        assert fleet[number].condition("Progressing") == ("False", "ImageRolloutStopped")
        assert fleet[number].condition("Degraded") == ("False", "AsExpected")
    assert [line.levelname for line in caplog.records] == ["WARNING"]
    assert "shop/app-0 is Degraded with it" in caplog.messages[0]
    fleet.restart_operator()
    fleet.until_settled()
    assert fleet.rollouts.stopped, "a new operator sees it in the pods and in status"
    assert fleet.have_it == {0}
    fleet[0].mend()
    fleet.until_settled()
    assert fleet.have_it == {0, 1, 2}
    assert not fleet.rollouts.stopped
    assert caplog.records[-1].levelname == "INFO"


def test_one_that_was_degraded_before_its_turn_stops_nobody() -> None:
    fleet = Fleet(3, 1)
    fleet[0].fail("orders-1")
    fleet[0].settle()
    assert fleet[0].condition("Degraded")[0] == "True"
    fleet.until_settled()
    assert fleet.have_it == {0, 1, 2}


def test_what_befalls_one_that_has_arrived_stops_nobody() -> None:
    fleet = Fleet(3, 1)
    while fleet.have_it != {0, 1}:
        fleet.turn()
    fleet[0].fail("orders-0")
    fleet.until_settled()
    assert fleet.have_it == {0, 1, 2}
    assert fleet[0].condition("Degraded")[0] == "True"


@pytest.mark.parametrize("spec", [{"image": "own:1"}, {"suspend": True}, {"replicas": 0}])
def test_one_without_pods_of_the_default_image_has_nothing_to_wait_for(spec: dict[str, Any]) -> None:
    fleet = Fleet(2, 1)
    fleet[0].change(**spec)
    fleet[0].settle()
    fleet.until_settled()
    assert fleet.images(Key("shop", "app-1")) == {NEW}
    assert fleet.images(Key("shop", "app-0")) <= {"own:1"}


def test_an_invalid_one_takes_no_turn() -> None:
    fleet = Fleet(2, 1)
    fleet[0].mistakes = (object(),)  # type: ignore[assignment]
    key = Key("shop", "app-0")
    image = fleet.rollouts.image(key, fleet[0].resource or {}, None, tuple(fleet[0].pods.values()))
    assert image == (NEW, None)
    fleet.look(Key("shop", "app-1"))
    fleet.look(Key("shop", "app-1"))
    assert fleet[1].condition("Progressing") == ("True", "RollingOut")


def pods(*images: str) -> Sequence[PodState]:
    return [replace(running(number, "digest"), image=image) for number, image in enumerate(images)]


def test_nobody_has_a_turn_before_all_have_been_looked_at() -> None:
    now, woken = [0.0], list[Key]()
    count = [3]
    rollouts = Rollouts(NEW, 1, lambda: count[0], woken.append, lambda: now[0])
    one, two, three = (Key("shop", name) for name in "abc")
    document = resource()
    application = application_of(document)
    waits = (IMAGE, AwaitedImage(NEW, 1, False))
    assert rollouts.image(one, document, application, pods(IMAGE, IMAGE)) == waits
    assert rollouts.image(two, document, application, pods(IMAGE)) == waits
    assert woken == []
    assert rollouts.image(three, document, application, pods(IMAGE, NEW)) == (NEW, None), "it had begun"
    assert rollouts.image(one, document, application, pods(IMAGE, IMAGE)) == waits
    assert rollouts.image(three, document, application, pods(NEW, NEW)) == (NEW, None)
    assert woken == [one]
    assert rollouts.image(one, document, application, pods(IMAGE, IMAGE)) == (NEW, None)
    assert rollouts.image(two, document, application, pods(IMAGE)) == waits
    count[0] = 2
    rollouts.forget(one)
    assert woken == [one, two]
    rollouts.clear()
    assert rollouts.image(two, document, application, pods(IMAGE)) == waits
    now[0] = 61.0
    assert rollouts.image(two, document, application, pods(IMAGE)) == (NEW, None), "some can't be looked at"


ONE, TWO = Key("shop", "a"), Key("shop", "b")
DEGRADED = {"conditions": [{"type": "Degraded", "status": "True"}]}


def turn(rollouts: Rollouts, key: Key, *images: str, degraded: bool = False) -> str:
    """The image that an application of two replicas has in a round."""
    document = {**resource(), "status": DEGRADED if degraded else {}}
    return rollouts.image(key, document, application_of(document), pods(*images))[0]


def test_an_application_has_not_arrived_before_it_has_all_its_pods() -> None:
    rollouts = Rollouts(NEW, 1, lambda: 2, lambda _: None)
    turn(rollouts, TWO, IMAGE, IMAGE)
    assert turn(rollouts, ONE, IMAGE, NEW) == NEW
    assert turn(rollouts, ONE, NEW) == NEW
    assert turn(rollouts, TWO, IMAGE, IMAGE) == IMAGE
    assert turn(rollouts, ONE, NEW, NEW) == NEW
    assert turn(rollouts, TWO, IMAGE, IMAGE) == NEW


def test_nobody_has_a_turn_after_one_that_is_degraded_though_there_is_room() -> None:
    rollouts = Rollouts(NEW, 5, lambda: 2, lambda _: None)
    turn(rollouts, TWO, IMAGE, IMAGE)
    assert turn(rollouts, ONE, IMAGE, NEW, degraded=True) == NEW
    assert turn(rollouts, TWO, IMAGE, IMAGE) == IMAGE
    assert turn(rollouts, ONE, IMAGE, NEW) == NEW
    assert turn(rollouts, TWO, IMAGE, IMAGE) == NEW


def test_what_was_degraded_at_its_turn_stops_others_only_if_it_degrades_again() -> None:
    rollouts = Rollouts(NEW, 1, lambda: 2, lambda _: None)
    turn(rollouts, TWO, IMAGE, IMAGE)
    assert turn(rollouts, ONE, IMAGE, IMAGE, degraded=True) == IMAGE
    assert turn(rollouts, ONE, IMAGE, IMAGE, degraded=True) == NEW
    for degraded, stopped in ((True, False), (False, False), (True, True)):
        turn(rollouts, ONE, IMAGE, NEW, degraded=degraded)
        assert rollouts.stopped is stopped


def test_one_that_gives_up_an_image_of_its_own_keeps_its_turn_no_longer_than_others() -> None:
    rollouts = Rollouts(NEW, 1, lambda: 2, lambda _: None)
    turn(rollouts, TWO, IMAGE, IMAGE)
    own = resource({"image": "own:1"})
    assert rollouts.image(ONE, own, application_of(own), pods("own:1", "own:1")) == (NEW, None)
    for images in (("own:1", "own:1"), ("own:1", NEW), (NEW, NEW)):
        assert turn(rollouts, ONE, *images) == NEW
    assert turn(rollouts, TWO, IMAGE, IMAGE) == NEW


def test_pods_whose_image_is_not_on_record_wait_for_nothing() -> None:
    rollouts = Rollouts(NEW, 1, lambda: 2, lambda _: None)
    assert turn(rollouts, ONE, "", "") == NEW
    assert rollouts.waiting == 0


def test_the_image_that_a_pod_was_to_have_counts_and_not_what_admission_made_of_it() -> None:
    made = pod(Identity.of(resource()), application_of(resource()), 0, "digest", Defaults(IMAGE))
    made["metadata"]["uid"] = "u"
    made["spec"]["containers"][0]["image"] = f"mirror.example/{IMAGE}"
    assert pod_state(made, "orders").image == IMAGE


def test_without_a_limit_nobody_waits() -> None:
    rollouts = Rollouts(NEW, 0, lambda: 9, lambda _: None)
    assert rollouts.image(Key("shop", "a"), resource(), application_of(resource()), pods(IMAGE)) == (NEW, None)


def test_the_image_of_an_application_in_a_rollout_is_that_of_its_highest_pod() -> None:
    assert image_of(pods(IMAGE, "b", NEW)) == NEW
    assert image_of([replace(pods("b")[0], ordinal=None)]) == image_of([]) == ""


@pytest.mark.parametrize("status", [None, 7, {}, {"conditions": 7}, {"conditions": [7, {}, {"type": "Degraded"}]}])
def test_a_strange_status_is_not_degraded(status: Any) -> None:
    assert not is_degraded({"status": status})
    assert is_degraded({"status": {"conditions": [7, {"type": "Degraded", "status": "True"}]}})


@pytest.mark.parametrize(
    ("reason", "counts"), [("ResetRefused", False), ("TopologyChangeRefused", False), ("PodsCrashed", True)]
)
def test_what_was_refused_to_one_application_stops_the_image_of_no_other(reason: str, counts: bool) -> None:
    said = {"type": "Degraded", "status": "True", "reason": reason}
    assert is_degraded({"status": {"conditions": [said]}}) == counts


def test_an_application_that_is_scaled_by_its_load_has_arrived_with_all_that_are_wanted() -> None:
    fleet = Fleet(2, 1, replicas=1, autoscaling={"minReplicas": 2, "maxReplicas": 3})
    for _ in range(60):
        fleet.turn()
        if not any(world.awaited for world in fleet.worlds.values()):
            break
    arrived = next(key for key in fleet.worlds if fleet.images(key) == {NEW})
    assert [each.ready for each in fleet.worlds[arrived].pods.values()] == [True, True]
    fleet.until_settled()
    assert all(fleet.images(key) == {NEW} for key in fleet.worlds)
