"""The tree of an application's status, from what its resource and its pods say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from streams_runtime.api import GROUP, VERSION
from streams_runtime.cli.cluster.cluster_status import status_of
from streams_runtime.cli.cluster.errors_found import errors_of
from streams_runtime.cli.cluster.kubectl import KubectlException
from streams_runtime.cli.status.status_tree import tree_of
from streams_runtime.cli.status.status_values import ApplicationStatus, InstanceStatus, of_description

TOPOLOGY = {
    "sources": [
        {
            "name": "orders",
            "topic": "orders",
            "key": {"format": "string"},
            "value": {"format": "json", "schema": "amount BIGINT"},
        }
    ],
    "steps": [{"name": "totals", "from": "orders", "aggregate": {"total": "sum(amount)"}, "store": "totals"}],
    "sinks": [{"from": "totals", "topic": "totals"}],
}
DESCRIBED = {
    "tasks": [
        {"id": "0_0", "state": "RUNNING", "stores": ["totals"]},
        {"id": "0_1", "state": "RESTORING", "stores": ["totals"]},
    ],
    "standbys": [{"id": "0_2", "state": "RUNNING", "stores": [{"store": "totals"}], "lag": 12}],
    "restoration": [
        {"store": "totals", "partition": 1, "position": 10, "end": 3010, "ended_at": None, "eta_seconds": 65.2},
        {"store": "totals", "partition": 0, "position": 10, "end": 10, "ended_at": 1.0, "eta_seconds": 0.0},
    ],
    "lag": [{"lag": 4}, {"lag": None}, {"lag": 3}],
}


def application(status: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "StreamsApplication",
        "metadata": {"name": "orders", "namespace": "shop", "generation": 1, "uid": "u", "managedFields": []},
        "spec": {"topology": TOPOLOGY, **spec},
        "status": {"observedGeneration": 1, **status},
    }


def lines(status: ApplicationStatus) -> list[str]:
    console = Console(width=200, no_color=True)
    with console.capture() as captured:
        console.print(tree_of(status))
    return [line.lstrip("│├└─ ").rstrip() for line in captured.get().splitlines()]


RUNNING = {
    "state": "RUNNING",
    "tasks": 2,
    "lag": 1204,
    "internalTopics": {"setup": "Ready"},
    "instances": [{"name": "orders-0", "state": "RUNNING", "ready": True, "tasks": ["0_0", "0_1"], "lag": 1204}],
    "conditions": [{"type": "Ready", "status": "True", "reason": "Running", "message": ""}],
}


def test_the_resource_alone_gives_instances_tasks_with_their_stores_and_lag() -> None:
    assert lines(status_of(application(RUNNING))) == [
        "orders RUNNING  1 of 1 ready, tasks 2, lag 1,204, internal topics Ready",
        "orders-0 RUNNING  lag 1,204",
        "tasks 0_0 0_1 with totals",
    ]


def test_what_a_pod_says_is_finer_and_counts_more() -> None:
    assert lines(status_of(application(RUNNING), lambda pod: DESCRIBED))[1:] == [
        "orders-0 RUNNING  lag 7, 3,000 records to restore",
        "tasks 0_0 with totals",
        "task 0_1 RESTORING with totals",
        "standby 0_2 with totals, 12 behind",
        "restores totals, partition 1: 3,000 records, 1m5s left",
    ]


def test_an_instances_tags_are_shown_beside_it() -> None:
    described = {**DESCRIBED, "tags": {"topology.kubernetes.io/zone": "eu-1a"}}
    assert "topology.kubernetes.io/zone=eu-1a" in lines(status_of(application(RUNNING), lambda pod: described))[1]


def test_figures_without_names_show_the_states_of_tasks_with_the_stores_of_the_topology() -> None:
    figures = {
        "tasks": [{"id": "0_0", "state": "RUNNING"}, {"id": "0_1", "state": "RESTORING"}],
        "lag": [{"lag": 5}],
        "restoration": [{"position": 1, "end": 3, "ended_at": None}],
    }
    assert lines(status_of(application(RUNNING), lambda pod: figures))[1:] == [
        "orders-0 RUNNING  lag 5, 2 records to restore",
        "tasks 0_0 with totals",
        "task 0_1 RESTORING with totals",
    ]


def test_a_pod_that_does_not_answer_leaves_the_word_of_the_resource() -> None:
    def refuse(pod: str) -> Mapping[str, Any]:
        raise KubectlException(f"{pod} is forbidden")

    assert status_of(application(RUNNING), refuse) == status_of(application(RUNNING))


def test_an_instance_in_error_comes_first_with_what_to_do() -> None:
    failed = {"class": "DeserializationException", "message": "orders-0@17 is no JSON; mend the producer"}
    status = {
        "state": "ERROR",
        "instances": [{"name": "orders-0", "state": "ERROR", "error": failed}],
        "conditions": [
            {"type": "Ready", "status": "False", "reason": "Error", "message": "not so"},
            {"type": "Degraded", "status": "True", "reason": "PodsInError", "message": "orders-0 has ended in ERROR"},
        ],
    }
    assert lines(status_of(application(status, replicas=2))) == [
        "orders ERROR  0 of 2 ready, lag -",
        "PodsInError: orders-0 has ended in ERROR",
        "orders-0: DeserializationException: orders-0@17 is no JSON; mend the producer",
        "mend the cause, then: kubectl streamsapp restart orders",
        "orders-0 ERROR  lag -",
    ]


def test_a_crash_is_named_with_the_next_start_and_not_once_the_pod_runs_again() -> None:
    row = {"name": "orders-0", "lastCrash": {"at": "T1", "reason": "OOMKilled"}, "backoffUntil": "T2"}
    (problem,) = status_of(application({"instances": [{**row, "restarts": 2}]})).problems
    assert problem.what == "crashed at T1: OOMKilled; it is made again after T2"
    assert status_of(application({"instances": [{**row, "restarts": 0}]})).problems == ()


def test_a_resource_that_no_operator_has_seen_is_shown_as_such() -> None:
    unseen = application({})
    del unseen["status"]
    assert lines(status_of(unseen)) == [
        "orders NOT SEEN by an operator  0 of 1 ready, lag -",
        "operator: it has not seen the last change of the resource",
        "look at the operator's log",
    ]


def test_a_spec_with_mistakes_is_shown_without_stores() -> None:
    broken = application(RUNNING)
    broken["spec"]["topology"] = {"steps": "none"}
    assert lines(status_of(broken))[-1] == "tasks 0_0 0_1"


def test_markup_in_what_others_wrote_is_shown_as_it_stands() -> None:
    status = {"conditions": [{"type": "Degraded", "status": "True", "reason": "X", "message": "[red]a[/red] [b]"}]}
    assert lines(status_of(application(status)))[1] == "X: [red]a[/red] [b]"


def test_warnings_follow_the_problems_the_latest_first_and_at_most_ten() -> None:
    events = [
        {
            "metadata": {},
            "reason": "PodCrashed",
            "message": f"crash {at}",
            "lastTimestamp": f"2026-01-01T00:00:{at:02}Z",
        }
        for at in range(12)
    ]
    events.append({"metadata": {}, "reason": "Z", "note": "n", "series": {"count": 3, "lastObservedTime": "2027"}})
    status = status_of(
        application({"conditions": [{"type": "Ready", "status": "False", "reason": "R", "message": "m"}]})
    )
    found = errors_of(status, events)
    assert [each.what for each in found] == ["m", "n", *(f"crash {at}" for at in range(11, 2, -1))]
    assert found[1].where == "Z (2027, 3 times)"


def test_an_instance_that_warms_up_says_how_much_is_missing_until_it_takes_part() -> None:
    warm_up = {"ready": True, "remaining": 12_000}
    figures = {"warm_up": warm_up, "standbys": [{"id": "0_2", "lag": 12_000}]}
    found = of_description(InstanceStatus("orders-1", "REBALANCING", False), figures)
    assert (found.restoring, found.warming, found.tasks) == (12_000, 12_000, ())
    text = lines(ApplicationStatus("orders", "RUNNING", 2, (found,)))
    assert text[-1] == "warms up until its tasks can move here: 12,000 records"
    joined = of_description(InstanceStatus("orders-1", "RUNNING", True), {"warm_up": None})
    assert (joined.restoring, joined.warming) == (0, None)
