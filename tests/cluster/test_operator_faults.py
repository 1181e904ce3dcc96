"""The same end, whatever happens on the way: the operator killed, the API server failing, watches cut, two replicas."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from kube_cluster import Cluster
from kube_faults import FaultyApi
from long_runs import also_long
from operator_kit import OperatorProcess, operator
from operator_stage import Stage
from waiting import eventually

from streams_operator.kube.kinds import WATCHED

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("crd")]

_HAND_OVER = 30.0  # seconds, as promised


def _is_deleted(stage: Stage) -> None:
    eventually(lambda: stage.get() is None, "the resource has gone")
    assert stage.pods() == []
    assert stage.topics() == []


def _is_rolled_out(stage: Stage) -> None:
    def new() -> bool:
        images = {pod["spec"]["containers"][0]["image"] for pod in stage.kubelet.pods().values()}
        return images == {"registry.example/another:1"}

    eventually(new, "all pods are of the new version")
    stage.reaches("RUNNING", "3/3")


def _has_pods(count: int) -> Callable[[Stage], None]:
    def check(stage: Stage) -> None:
        stage.reaches("RUNNING", f"{count}/{count}")
        assert stage.pods() == [f"app-{number}" for number in range(count)]

    return check


def _is_suspended(stage: Stage) -> None:
    stage.reaches("SUSPENDED")
    eventually(lambda: stage.pods() == [], "all pods have gone")


_DELETE = {"deletionPolicy": "Delete"}

# What is asked for, and what has to come of it.
PHASES: dict[str, tuple[Callable[[Stage], object], Callable[[Stage], None]]] = {
    "rolling": (
        lambda stage: stage.apply(replicas=3, image="registry.example/another:1", internalTopics=_DELETE),
        _is_rolled_out,
    ),
    "scaling-down": (lambda stage: stage.apply(replicas=1, internalTopics=_DELETE), _has_pods(1)),
    "suspending": (lambda stage: stage.apply(replicas=3, suspend=True, internalTopics=_DELETE), _is_suspended),
    "deleting": (lambda stage: stage.delete("--wait=false"), _is_deleted),
}


@pytest.mark.parametrize("writes", also_long([1, 4, 10], [2, 7, 14]))
def test_an_operator_killed_in_the_middle_of_creation_leaves_nothing_half_done(
    stage: Stage, faulty_api: FaultyApi, tmp_path: Path, writes: int
):
    with operator(faulty_api.cluster, stage.namespace, tmp_path) as first:
        stage.apply(replicas=3)
        eventually(lambda: len(faulty_api.writes()) >= writes, f"{writes} writes")
        stage.kill(first)
    with operator(stage.cluster, stage.namespace, tmp_path):
        _has_pods(3)(stage)
        assert all(not each.get("restarts") for each in stage.status()["instances"])
        assert stage.kinds("configmap") != []


@pytest.mark.parametrize("writes", also_long([1], [3]))
@pytest.mark.parametrize("phase", PHASES)
def test_an_operator_killed_in_the_middle_of_a_change_leaves_nothing_half_done(
    stage: Stage, faulty_api: FaultyApi, tmp_path: Path, phase: str, writes: int
):
    ask, check = PHASES[phase]
    with operator(faulty_api.cluster, stage.namespace, tmp_path) as first:
        stage.apply(replicas=3, internalTopics=_DELETE)
        stage.reaches("RUNNING", "3/3")
        faulty_api.forget()
        ask(stage)
        eventually(lambda: len(faulty_api.writes()) >= writes, f"{writes} writes")
        stage.kill(first)
    with operator(stage.cluster, stage.namespace, tmp_path):
        check(stage)


@pytest.mark.parametrize(
    ("status", "carried_out"),
    also_long([(409, False), (500, True), (None, False)], [(429, False), (500, False), (None, True)]),
)
def test_errors_of_the_api_server_only_cost_time(
    stage: Stage, faulty_api: FaultyApi, tmp_path: Path, status: int | None, carried_out: bool
):
    for verb in ("get", "post", "put", "patch", "delete"):
        faulty_api.fail(
            status, verb=verb, path=f"/namespaces/{stage.namespace}/(?!leases)", times=2, carried_out=carried_out
        )
    with operator(faulty_api.cluster, stage.namespace, tmp_path):
        stage.apply(replicas=2, internalTopics=_DELETE)
        stage.reaches("RUNNING", "2/2", 120)
        stage.apply(replicas=1, internalTopics=_DELETE)
        stage.reaches("RUNNING", "1/1", 120)
        stage.delete("--timeout=60s")
        _is_deleted(stage)


def test_cut_and_refused_watches_are_begun_again(stage: Stage, faulty_api: FaultyApi, tmp_path: Path):
    with operator(faulty_api.cluster, stage.namespace, tmp_path) as process:
        stage.apply(replicas=2)
        stage.reaches("RUNNING", "2/2")
        for status in (410, 500, None):
            # After a fault they come back one by one, each after its own pause.
            eventually(lambda: faulty_api.watches(stage.namespace) >= len(WATCHED), "all watches are open")
            faulty_api.fail(status, verb="watch", path=stage.namespace, times=5)
            assert faulty_api.cut_watches(stage.namespace) > 0
            before = stage.uids()
            stage.cluster.kubectl(
                "delete", "pod/app-0", f"--namespace={stage.namespace}", "--grace-period=0", "--force"
            )
            eventually(
                lambda before=before: stage.uids().get("app-0") not in (None, before["app-0"]), "it is made again"
            )
            stage.reaches("RUNNING", "2/2")
        assert process.process.poll() is None


def test_watches_that_wait_for_the_server_when_another_one_ends_are_begun_again(
    stage: Stage, faulty_api: FaultyApi, tmp_path: Path
):
    resources = f"/namespaces/{stage.namespace}/streamsapplications$"
    others = f"/namespaces/{stage.namespace}/(?!streamsapplications$)"
    with operator(faulty_api.cluster, stage.namespace, tmp_path) as process:
        stage.apply(replicas=1)
        stage.reaches("RUNNING", "1/1")
        eventually(lambda: faulty_api.watches(stage.namespace) >= len(WATCHED), "all watches are open")
        faulty_api.forget()
        faulty_api.fail(500, verb="watch", path=others, times=10**6)
        assert faulty_api.cut_watches(others) == len(WATCHED) - 1
        waiting = len(WATCHED) - 1
        eventually(lambda: len({each.path for each in faulty_api.seen("watch", others)}) == waiting, "they wait")
        faulty_api.fail(410, verb="watch", path=resources)
        assert faulty_api.cut_watches(resources) == 1
        eventually(lambda: process.said("and all watches begin anew"), "kopf begins anew")
        faulty_api.heal()
        eventually(lambda: faulty_api.watches(stage.namespace) >= len(WATCHED), "all watches are open again")
        assert process.process.poll() is None


def test_of_two_replicas_one_acts_and_the_other_takes_over_from_a_killed_one(
    stage: Stage, api_server: Cluster, faulty_api: FaultyApi, tmp_path: Path
):
    with (
        operator(faulty_api.cluster, stage.namespace, tmp_path) as first,
        operator(api_server, stage.namespace, tmp_path) as second,
    ):
        eventually(lambda: _leads(first) != _leads(second), "one of them leads")
        leader, standby = (first, second) if _leads(first) else (second, first)
        stage.apply(replicas=1)
        stage.reaches("RUNNING", "1/1")
        assert "streams_operator_reconciles_total" in standby.metrics()
        assert 'streams_operator_reconciles_total{result="done"} 0.0' in standby.metrics()
        eventually(standby.ready, "the standby's watches are warm")
        leader.kill()
        killed = time.monotonic()
        stage.apply(replicas=2)
        eventually(lambda: _leads(standby), "it takes over", _HAND_OVER)
        stage.reaches("RUNNING", "2/2")
        assert time.monotonic() - killed < _HAND_OVER + 20


def test_a_stopped_leader_hands_over_and_ends_well(stage: Stage, api_server: Cluster, tmp_path: Path):
    with operator(api_server, stage.namespace, tmp_path) as first:
        eventually(lambda: _leads(first), "the first leads")
        with operator(api_server, stage.namespace, tmp_path) as second:
            eventually(second.ready, "the second's watches are warm")
            assert not _leads(second)
            assert first.stop() == 0
            assert first.said("gave the lease")
            # Far less than a lease that has to run out.
            eventually(lambda: _leads(second), "the second leads", 10)


def test_a_leader_cut_off_from_the_api_server_stops_and_the_other_goes_on(
    stage: Stage, api_server: Cluster, faulty_api: FaultyApi, tmp_path: Path
):
    with operator(faulty_api.cluster, stage.namespace, tmp_path) as first:
        eventually(lambda: _leads(first), "the first leads")
        stage.apply(replicas=1)
        stage.reaches("RUNNING", "1/1")
        with operator(api_server, stage.namespace, tmp_path) as second:
            eventually(second.ready, "the second's watches are warm")
            faulty_api.fail(500, path="/leases", times=100_000)
            eventually(lambda: not _leads(first), "the first stops", _HAND_OVER)
            assert not _leads(second)
            faulty_api.forget()
            eventually(lambda: _leads(second), "the second begins", _HAND_OVER)
            stage.apply(replicas=2)
            stage.reaches("RUNNING", "2/2")
            assert faulty_api.writes() == []
            faulty_api.heal()
            eventually(first.ready, "the first stands by")
            assert first.process.poll() is None


def _leads(process: OperatorProcess) -> bool:
    return "streams_operator_leader 1.0" in process.metrics()
