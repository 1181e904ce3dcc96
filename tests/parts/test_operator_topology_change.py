"""A change of topology that would lose state: refused until it is allowed, whatever happens meanwhile."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from operator_world import NAME, World, application_of, resource

from streams_operator import names
from streams_operator.plan.objects.document import as_deployed, document


def topology(store: str = "totals", **more: Any) -> dict[str, Any]:
    """The world's topology, with another store, or with fields of its aggregate step replaced."""
    found: dict[str, Any] = copy.deepcopy(resource()["spec"]["topology"])
    found["steps"][1] |= {"store": store, **more}
    return found


def stores(world: World) -> set[str]:
    """The stores of the versions that the pods are of."""
    versions = [world.document(pod.digest) for pod in world.pods.values()]
    return {step["store"] for each in versions for step in each["spec"]["topology"]["steps"] if "store" in step}


@pytest.fixture
def world() -> World:
    found = World({"replicas": 3})
    found.settle()
    return found


def refused(world: World) -> bool:
    return world.condition("Degraded") == ("True", "TopologyChangeRefused")


def message(world: World) -> str:
    return str(next(each["message"] for each in world.status["conditions"] if each["type"] == "Degraded"))


def test_running_pods_stay_and_the_condition_and_one_event_say_what_would_be_lost(world: World) -> None:
    before, told = dict(world.pods), len(world.events)
    world.change(topology=topology("sums"))
    world.settle()
    assert world.pods == before
    assert refused(world)
    assert "store totals: only the old topology has it" in message(world)
    assert "orders-totals-changelog stays on the brokers" in message(world)
    assert "spec.topologyChange is allow" in message(world)
    assert world.condition("Ready") == ("True", "Running")
    assert world.condition("Progressing") == ("False", "TopologyChangeRefused")
    (event,) = world.events[told:]
    assert (event.type, event.reason) == ("Warning", "TopologyChangeRefused")
    assert "store totals" in event.message


def test_it_is_carried_out_once_it_is_allowed(world: World) -> None:
    world.change(topology=topology("sums"))
    world.settle()
    world.change(topologyChange="allow")
    world.settle()
    assert stores(world) == {"sums"}
    assert world.condition("Degraded") == ("False", "AsExpected")
    # What has been carried out stays so without it.
    before = dict(world.pods)
    world.change(topologyChange=None)
    world.settle()
    assert world.pods == before
    assert not refused(world)


def test_the_old_topology_put_back_is_no_change(world: World) -> None:
    before = dict(world.pods)
    world.change(topology=topology("sums"))
    world.settle()
    world.change(topology=topology())
    world.settle()
    assert world.pods == before
    assert world.condition("Degraded") == ("False", "AsExpected")


def test_a_compatible_change_needs_no_leave(world: World) -> None:
    changed = topology()
    changed["steps"].append({"name": "many", "from": "totals", "where": "n > 5"})
    world.change(topology=changed)
    world.settle()
    assert {len(world.document(pod.digest)["spec"]["topology"]["steps"]) for pod in world.pods.values()} == {3}
    assert not refused(world)


def test_a_new_operator_says_the_same_and_writes_nothing(world: World) -> None:
    world.change(topology=topology("sums"))
    world.settle()
    written, told = world.writes, len(world.events)
    world.restart_operator()
    world.settle()
    assert (world.writes, len(world.events)) == (written, told)
    assert refused(world)


def test_what_crashes_or_is_added_meanwhile_is_of_the_deployed_version(world: World) -> None:
    version = world.digest
    world.change(topology=topology("sums"), processing={"maxBatchRecords": 7})
    world.crash(f"{NAME}-1")
    world.settle()
    world.change(replicas=5)
    world.settle()
    assert len(world.pods) == 5
    assert {(pod.digest, pod.state) for pod in world.pods.values()} == {(version, "RUNNING")}


def test_a_pod_in_error_comes_back_by_its_nonce_with_the_deployed_version(world: World) -> None:
    version = world.digest
    world.fail(f"{NAME}-1")
    world.settle()
    world.change(topology=topology("sums"))
    world.settle()
    assert world.pods[f"{NAME}-1"].state == "ERROR"
    world.change(restartNonce=1)
    world.settle()
    assert {(pod.digest, pod.state) for pod in world.pods.values()} == {(version, "RUNNING")}


@pytest.mark.parametrize(
    ("away", "back"), [({"suspend": True}, {"suspend": False}), ({"replicas": 0}, {"replicas": 3})]
)
def test_an_application_without_pods_is_deployed_all_the_same(
    world: World, away: dict[str, Any], back: dict[str, Any]
) -> None:
    world.change(**away)
    world.settle()
    assert not world.pods
    world.change(topology=topology("sums"))
    world.settle()
    assert refused(world)
    world.restart_operator()
    world.change(**back)
    world.settle()
    assert stores(world) == {"totals"}
    assert refused(world)


def test_the_deployed_version_is_kept_while_a_suspended_application_changes_again_and_again(world: World) -> None:
    world.change(suspend=True)
    world.settle()
    world.change(processing={"maxBatchRecords": 7})
    world.settle()
    world.change(topology=topology("sums"))
    world.settle()
    assert refused(world)
    world.change(suspend=False)
    world.settle()
    assert stores(world) == {"totals"}


def test_what_was_never_deployed_may_be_changed() -> None:
    world = World({"internalTopics": {"setup": "manual"}})
    world.settle()
    assert not world.pods
    world.change(topology=topology("sums"))
    world.settle()
    assert not refused(world)
    assert "deployed" not in world.status


def test_a_new_image_of_the_chart_is_rolled_out_with_the_deployed_topology(world: World) -> None:
    world.change(topology=topology("sums"))
    world.settle()
    before = {pod.digest for pod in world.pods.values()}
    world.defaults = type(world.defaults)("runtime:2")
    world.settle()
    assert {pod.digest for pod in world.pods.values()}.isdisjoint(before)
    assert stores(world) == {"totals"}
    assert refused(world)


def test_pods_of_an_operator_that_recorded_nothing_are_compared_with(world: World) -> None:
    assert world.resource is not None
    del world.resource["status"]["deployed"]
    world.change(topology=topology("sums"))
    world.settle()
    assert stores(world) == {"totals"}
    assert refused(world)
    assert world.status["deployed"] == world.digest


def test_without_the_deployed_version_nothing_is_changed_and_the_config_map_is_named(world: World) -> None:
    before = dict(world.pods)
    del world.objects["ConfigMap", names.config(NAME, world.digest)]
    version = world.digest
    world.change(topology=topology("sums"))
    world.settle()
    assert world.pods == before
    assert world.condition("Ready") == ("False", "InvalidSpec")
    ready = next(each["message"] for each in world.status["conditions"] if each["type"] == "Ready")
    assert ready.startswith("spec.topology: can't be compared with the deployed one")
    assert names.config(NAME, version) in ready
    world.change(topologyChange="allow")
    world.settle()
    assert stores(world) == {"sums"}


def test_the_topics_that_are_looked_at_and_deleted_are_those_of_the_deployed_topology(world: World) -> None:
    world.change(topology=topology("sums"), internalTopics={"deletionPolicy": "Delete"})
    world.settle()
    application = world.observe().application
    assert application is not None
    assert application.spec.topology.steps[1].store == "totals"
    assert application.spec.internal_topics.deletion_policy == "Delete"


def test_many_changes_are_told_within_what_a_condition_may_hold(world: World) -> None:
    long = {f"{'column' * 20}{number}": "count(*)" for number in range(60)}
    world.change(topology=topology(aggregate=long))
    world.settle()
    assert refused(world)
    assert len(message(world).encode()) <= 16_000
    assert "and 41 more" in message(world)
    assert message(world).endswith("spec.topologyChange is allow")
    written, told = world.writes, len(world.events)
    world.reconcile()
    assert (world.writes, len(world.events)) == (written, told)


def test_a_deployed_document_with_the_resource_s_own_fields_is_the_same_document() -> None:
    manual = {"setup": "manual"}
    deployed = application_of(resource({"internalTopics": manual, "processing": {"commitInterval": "1s"}}))
    fields: dict[str, Any] = {
        "replicas": 7,
        "restartNonce": 3,
        "suspend": True,
        "topologyChange": "refuse",
        "internalTopics": {**manual, "init": {"nonce": 4}, "deletionPolicy": "Delete"},
        "state": {"storage": {"size": "1Gi"}},
        "topology": topology("sums"),
        "image": "other:1",
    }
    found = as_deployed(deployed, application_of(resource(fields)))
    assert document(found, "shop") == document(deployed, "shop")
    assert (found.spec.replicas, found.spec.restart_nonce, found.spec.suspend) == (7, 3, True)
    assert found.spec.internal_topics.init is not None
    assert (found.spec.internal_topics.init.nonce, found.spec.internal_topics.deletion_policy) == (4, "Delete")
    assert found.spec.state.storage is not None
    assert found.spec.image is None
