"""Two clients of one application with several threads, standbys, a global table and a collector of traces."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from clients import DEADLINE, client, last_values, make_topics, send, until_running
from otlp_collector import Collector, attributes_of, collecting
from waiting import eventually

from streams_runtime.client import StreamsClient
from streams_runtime.errors import StreamsRebalancingException
from streams_runtime.query.stores.key_value_handle import StoreQueryParameters
from streams_runtime.states import ClientState

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]

USERS = [f"u{number}" for number in range(40)]
PROCESSING = {"guarantee": "exactly_once_v2", "streamThreads": 2, "standbyReplicas": 1}
STAGES = ["spark", "process", "commit", "changelog-ends", "store"]


def topology(name: str) -> str:
    return f"""
sources:
  - {{name: orders, topic: {name}-orders, key: {{format: string}}, value: {{format: json, schema: "amount BIGINT"}}}}
  - {{name: tiers, topic: {name}-tiers, key: {{format: string}}, value: {{format: json, schema: "tier STRING"}},
      table: {{store: tiers, global: true}}}}
steps:
  - {{name: totals, from: orders, aggregate: {{total: sum(amount)}}, store: totals}}
  - {{name: tiered, from: orders, join: {{table: tiers, "key": _key, type: left, select: {{tier: tiers.tier}}}}}}
sinks: [{{from: totals, topic: {name}-totals}}, {{from: tiered, topic: {name}-tiered}}]
"""


@dataclass
class Pair:
    """Both run, and each has half of the tasks and the standbys of the other half. `times`: orders of each user."""

    name: str
    bootstrap: str
    both: tuple[StreamsClient, StreamsClient]
    collector: Collector
    times: int = 0

    def order(self) -> None:
        """One of each user."""
        send(self.bootstrap, f"{self.name}-orders", [(user, {"amount": 1}) for user in USERS])
        self.times += 1

    def is_counted(self) -> bool:
        """Whether all that was ordered is."""
        return totals(self.both[0]) | totals(self.both[1]) == dict.fromkeys(USERS, self.times)


def totals(made: StreamsClient) -> dict[Any, Any]:
    """Of the partitions whose tasks this one has; nothing while tasks are on their way."""
    try:
        with made.store(StoreQueryParameters("totals")).all() as entries:
            return {key: value["total"] for key, value in entries}
    except StreamsRebalancingException:
        return {}


def told(made: StreamsClient, what: str) -> list[dict[str, Any]]:
    rows: Any = made.describe()[what]
    return rows


def settled(made: StreamsClient) -> bool:
    standbys, tasks = told(made, "standbys"), told(made, "tasks")
    running = {task["state"] for task in tasks} == {"RUNNING"}
    each = {task["thread"] for task in tasks} == {thread.name for thread in made.threads}
    return len(tasks) == len(standbys) == 2 and running and each and {row["lag"] for row in standbys} == {0}


@pytest.fixture(scope="module")
def pair(broker: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    bootstrap, name = broker.bootstrap_servers, f"two-clients-{uuid.uuid4().hex[:8]}"
    folder = tmp_path_factory.mktemp("two-clients")
    make_topics(bootstrap, **{f"{name}-{topic}": 4 for topic in ("orders", "totals", "tiered")}, **{f"{name}-tiers": 1})
    more: Any = {"processing": PROCESSING}
    with collecting() as collector, pytest.MonkeyPatch.context() as environment:
        # Clients read their environment when they are made.
        environment.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        environment.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
        with (
            client(bootstrap, name, topology(name), folder / "first", instance="i-0", **more) as first,
            client(bootstrap, name, topology(name), folder / "second", instance="i-1", **more) as second,
        ):
            for made in (first, second):
                made.start()
            for made in (first, second):
                until_running(made)
                eventually(lambda made=made: settled(made), lambda made=made: str(made.describe()), DEADLINE)
            yield Pair(name, bootstrap, (first, second), collector)


def test_each_batch_of_each_instance_is_a_span_with_its_stages(pair: Pair) -> None:
    pair.order()
    eventually(pair.is_counted, "all is counted", DEADLINE)
    seen = lambda: [span for span in pair.collector.spans() if span.name == "batch"]  # noqa: E731
    ordered = pair.times * len(USERS)
    records = lambda: sum(attributes_of(span)["streams.records"] for span in seen())  # noqa: E731
    eventually(lambda: records() == ordered, lambda: f"each record is in one batch: {records()} of {ordered}")
    for made in pair.both:
        spans = pair.collector.spans(made.context.settings.instance)
        batches = [span for span in spans if span.name == "batch"]
        assert batches, "both had something to do"
        assert {attributes_of(span)["streams.thread"] for span in batches} <= {each.name for each in made.threads}
        for batch in batches:
            inside = [span for span in spans if span.parent_span_id == batch.span_id]
            assert [span.name for span in inside] == STAGES
            assert (inside[0].start_time_unix_nano, inside[-1].end_time_unix_nano) == (
                batch.start_time_unix_nano,
                batch.end_time_unix_nano,
            )
            assert batch.status.code == batch.status.STATUS_CODE_UNSET


def test_a_paused_one_goes_on_following_what_others_write_and_processes_nothing_on_any_thread(pair: Pair) -> None:
    first, second = pair.both
    pair.order()
    eventually(pair.is_counted, "all is counted", DEADLINE)
    before = {user: totals(made) for made, user in ((first, "first"), (second, "second"))}
    assert min(len(each) for each in before.values()) > 0
    second.pause()
    for thread in second.threads:
        turns: set[float] = set()
        eventually(lambda thread=thread, turns=turns: turns.add(thread.last_turn) or len(turns) > 5, "its loop turns")
    updated = second.describe()["counters"]["updated_records"]  # type: ignore[index]
    pair.order()
    send(pair.bootstrap, f"{pair.name}-tiers", [("u1", {"tier": "gold"})])
    eventually(lambda: totals(first) == {user: total + 1 for user, total in before["first"].items()}, "one goes on")
    lag = lambda: sum(row["lag"] or 0 for row in told(second, "lag"))  # noqa: E731
    eventually(lambda: lag() == len(before["second"]), lambda: f"its lag is told: {told(second, 'lag')}")
    # Each of the first one's keys was updated once: by its standbys here, which serve when it is lost.
    more = lambda: second.describe()["counters"]["updated_records"] - updated  # type: ignore[index,operator] # noqa: E731
    eventually(lambda: more() >= len(before["first"]), lambda: f"standbys follow: {more()}")
    tier = lambda made: made.store(StoreQueryParameters("tiers")).get("u1")  # noqa: E731
    eventually(lambda: tier(second) == tier(first) == {"tier": "gold"}, "the global table is followed by both")
    assert totals(second) == before["second"]
    assert second.state is ClientState.RUNNING
    second.resume()
    eventually(pair.is_counted, "it goes on where it was", DEADLINE)
    written = last_values(pair.bootstrap, f"{pair.name}-totals", committed=True)
    assert written == {user: {"total": pair.times} for user in USERS}
