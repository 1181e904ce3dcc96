"""NEXMark's queries in one application of two instances, exactly once: what they write is what DuckDB has."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from clients import DEADLINE, client, make_topics, read, send, until_done, until_running
from nexmark.events import TOPICS, Event, events
from nexmark_answers import FOLDER, SIDE_INPUT, Answers, rows_of
from waiting import eventually

from streams_runtime.client import StreamsClient

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark"), pytest.mark.timeout(600)]

QUERIES = ["q0", "q1", "q2", "q7", "q10", "q13", "q14", "q17", "q18", "q20", "q21", "q22"]
"""All that keep nothing, and of the others a window, a day's windows, a table and a join."""
PARTITIONS = 4
SUB_TOPOLOGIES, STAGES = 3, 2  # and how many of them a record goes through at most
STARTED = 200.0  # seconds: each of both has Spark analyse all queries


def together(queries: Sequence[str], name: str) -> dict[str, Any]:
    """The topology of these files as one: sources are the same in all of them, and names of steps their own."""
    topologies = [yaml.safe_load((FOLDER / f"{query}.yaml").read_text())["spec"]["topology"] for query in queries]
    sources = {source["name"]: source for each in topologies for source in each["sources"]}
    assert all(source == sources[source["name"]] for each in topologies for source in each["sources"])
    sinks = [sink for each in topologies for sink in each["sinks"]]
    for end in (*sources.values(), *sinks):
        end["topic"] = f"{name}-{end['topic']}"
    steps = [step for each in topologies for step in each["steps"]]
    return {"sources": list(sources.values()), "steps": steps, "sinks": sinks}


def feed(bootstrap: str, name: str, given: Sequence[Event]) -> None:
    for topic in TOPICS:
        of_topic = [each for each in given if each.topic == topic]
        times = [round(each.time.timestamp() * 1000) for each in of_topic]
        send(bootstrap, f"{name}-{topic}", [(each.key, each.value) for each in of_topic], times=times)


def written(bootstrap: str, name: str, query: str) -> Iterator[tuple[Any, Any]]:
    for message in read(bootstrap, f"{name}-{query}", committed=True):
        yield message.key(), message.value() and json.loads(message.value())


def test_two_instances_give_what_duckdb_gives(broker: Any, namespace: str, tmp_path: Path) -> None:
    bootstrap, given = broker.bootstrap_servers, list(events(2000))
    make_topics(bootstrap, **{f"{namespace}-{topic}": PARTITIONS for topic in (*TOPICS, *QUERIES)})
    make_topics(bootstrap, **{f"{namespace}-side-input": 1})
    send(bootstrap, f"{namespace}-side-input", SIDE_INPUT.items())
    topology = yaml.safe_dump(together(QUERIES, namespace))
    # Few batches: each of them is a job of Spark's for every sub-topology.
    more: Any = {"processing": {"guarantee": "exactly_once_v2", "commitInterval": "1s"}}
    with ExitStack() as stack:
        first, second = both = [
            stack.enter_context(client(bootstrap, namespace, topology, tmp_path / each, instance=each, **more))
            for each in ("i-0", "i-1")
        ]
        for each in both:
            each.start()
        for each in both:
            until_running(each, STARTED)
        eventually(lambda: all(map(shares, both)), lambda: str([it.describe()["tasks"] for it in both]), DEADLINE)
        feed(bootstrap, namespace, given)
        topics = [*first.context.topology.source_topics, *first.context.topology.repartition_topics]
        for _ in range(STAGES):
            until_done(first, topics, second)
        assert all(map(shares, both)), "nothing was handed over on the way"
    answers = Answers(given)
    for query in QUERIES:
        expected = answers.of(query)
        assert expected
        assert rows_of(query, written(bootstrap, namespace, query)) == expected, query


def shares(made: StreamsClient) -> bool:
    """Whether it has half of the tasks, and they run."""
    tasks: Any = made.describe()["tasks"]
    return len(tasks) == PARTITIONS * SUB_TOPOLOGIES // 2 and {task["state"] for task in tasks} == {"RUNNING"}
