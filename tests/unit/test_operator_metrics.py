"""The operator's metrics: what a scrape shows, what the page says, and what is kept of thousands of applications."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from streams_operator.kube.api import resource_of
from streams_operator.metrics import Metrics
from streams_operator.model import Key
from streams_operator.operator_catalogue import CATALOGUE, SECTIONS
from streams_operator.reconcile.work_queue import WorkQueue
from streams_runtime.metrics.metric_tables import table_of

PAGE = Path(__file__).parents[2] / "operator" / "guide" / "metrics.md"
KEY = Key("shop", "orders")
STATUS = {
    "state": "RUNNING",
    "ready": "1/3",
    "restoration": {"recordsLeft": 7},
    "conditions": [
        {"type": "Ready", "status": "False", "reason": "PodsNotReady"},
        {"type": "Progressing", "status": "True", "reason": "Rolling"},
    ],
}


def used() -> Metrics:
    """Of an operator that has done everything that is measured."""
    made = Metrics(lambda: 2, lambda: True, lambda: 1.5)
    made.show_rollouts(lambda: 3, lambda: False)
    made.round(KEY, "done", 0.1)
    made.waited(0.2)
    made.init("Created")
    made.request("GET", "pods", 200, 0.01)
    made.request("PATCH", "pods", None, 15.0)
    made.broker_work("check", True, 20.0)
    pod: Any = type("Pod", (), {"state": "RUNNING"})
    made.application(KEY, STATUS, [pod], 12)
    return made


def families(made: Metrics) -> dict[str, Any]:
    return {each.name: each for each in text_string_to_metric_families(generate_latest(made.registry).decode())}


def value(made: Metrics, name: str, **labels: str) -> float:
    found = made.registry.get_sample_value(f"streams_operator_{name}", labels)
    assert found is not None, f"there is no {name} with {labels}"
    return found


def test_a_scrape_shows_what_the_catalogue_has_and_nothing_else() -> None:
    defined = {each.name: each for each in CATALOGUE}
    found = {
        name: each
        for name, each in families(used()).items()
        if name.removesuffix("_created") not in defined or name in defined
    }
    assert found.keys() == defined.keys()
    for name, family in found.items():
        assert family.type == defined[name].kind
        labels = {frozenset(sample.labels) - {"le"} for sample in family.samples}
        assert labels == {frozenset(defined[name].labels)}, name


def test_the_page_has_every_table_as_the_catalogue_prints_it() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for section in SECTIONS:
        assert f"## {section.title}\n\n{table_of(section.metrics)}\n" in page, (
            "python -m streams_operator.operator_catalogue"
        )


def test_an_applications_figures_are_those_of_its_status_and_go_with_it() -> None:
    made = used()
    names = {"namespace": "shop", "application": "orders"}
    assert value(made, "application_ready_instances", **names) == 1
    assert value(made, "application_wanted_instances", **names) == 3
    assert value(made, "application_restoration_records_left", **names) == 7
    assert value(made, "application_lag_records", **names) == 12
    assert value(made, "application_condition", **names, condition="Progressing", reason="Rolling") == 1
    made.forget(KEY)
    assert not [each for each in families(made).values() for sample in each.samples if "application" in sample.labels]


@pytest.mark.parametrize("ready", [None, "", "x", "1/", "/", "-1/2"])
def test_a_status_that_says_nothing_of_instances_has_no_such_figures(ready: str | None) -> None:
    made = Metrics(lambda: 0, lambda: True)
    made.application(KEY, {"ready": ready}, [], None)
    names = {"namespace": "shop", "application": "orders"}
    found = [
        made.registry.get_sample_value(f"streams_operator_application_{each}_instances", names)
        for each in ("ready", "wanted")
    ]
    assert None in found
    assert not [number for number in found if number is not None and number < 0]


def test_a_thousand_applications_cost_series_of_applications_only() -> None:
    made = used()
    before = sum(len(each.samples) for each in families(made).values())
    for number in range(1_000):
        made.application(Key("shop", f"app-{number}"), STATUS, [], 1)
        made.round(Key("shop", f"app-{number}"), "done", 0.1)
    after = sum(len(each.samples) for each in families(made).values())
    assert after - before == 1_000 * 6  # state, wanted, ready, one condition, lag, records left


@pytest.mark.parametrize(
    ("path", "resource"),
    [
        ("/api/v1/namespaces/shop/pods/services", "pods"),
        ("/api/v1/pods", "pods"),
        ("/api/v1/namespaces/pods", "namespaces"),
        ("/apis/streamsoperator.io/v1alpha1/namespaces/a/streamsapplications/b/status", "streamsapplications"),
        ("/apis/policy/v1/poddisruptionbudgets", "poddisruptionbudgets"),
        ("/", "other"),
    ],
)
def test_requests_are_counted_by_resource_whatever_objects_are_called(path: str, resource: str) -> None:
    assert resource_of(path) == resource


def test_the_queue_knows_how_long_its_oldest_resource_has_been_due() -> None:
    async def run() -> tuple[float, float, list[float]]:
        release, begun = asyncio.Event(), asyncio.Event()
        waits: list[float] = []

        async def act(_: Key) -> None:
            begun.set()
            await release.wait()

        queue = WorkQueue(act, parallel=1, debounce=0.0, waited=waits.append)
        work = asyncio.create_task(queue.run())
        queue.add(KEY)
        await begun.wait()
        queue.add(Key("shop", "other"))
        async with asyncio.timeout(10):
            while not queue.oldest:
                await asyncio.sleep(0.001)
        oldest = queue.oldest
        release.set()
        async with asyncio.timeout(10):
            while len(waits) < 2:
                await asyncio.sleep(0.001)
        work.cancel()
        return oldest, queue.oldest, waits

    oldest, afterwards, waits = asyncio.run(run())
    assert oldest > 0
    assert afterwards == 0
    assert len(waits) == 2
    assert waits[1] >= oldest
