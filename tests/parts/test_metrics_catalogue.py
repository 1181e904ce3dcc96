"""The catalogue of an instance's metrics: what a scrape shows, what the pages say, and how many series there are."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from query_fakes import client_with

from streams_runtime.batch.drop_reasons import MEANINGS, DropReason
from streams_runtime.metrics.catalogue import CATALOGUE, COMMON_LABELS, SECTIONS
from streams_runtime.metrics.definitions.store_definitions import BUFFERS
from streams_runtime.metrics.measurements import Measurements
from streams_runtime.metrics.metric_definition import Level
from streams_runtime.metrics.metric_tables import table_of
from streams_runtime.metrics.sampled import Spread
from streams_runtime.metrics.store_recorder import StoreRecorder
from streams_runtime.metrics.thread_recorder import ThreadRecorder
from streams_runtime.query.metrics.instance_metrics import create_registry
from streams_runtime.state.database.rocksdb_figures import OF_DATABASES, OF_FAMILIES, TICKERS, TIMES

GUIDE = Path(__file__).parents[2] / "runtime" / "guide"
PARTITIONS, THREADS, TOPICS, STORES = 400, 4, 2, 3
SOURCES, SINKS, DROPS = 2, 3, 4


def recorder(level: Level) -> ThreadRecorder:
    """Of a thread that has done everything that is measured."""
    made = ThreadRecorder(level)
    made.begin()
    made.polled(0.1, 5)
    for stage in made.stages:
        made.stage(stage, 0.1)
    for sub in range(2):
        made.processed(sub, 0.5, 5)
        made.committed(sub, 0.1)
    for number in range(SOURCES):
        made.read(f"source-{number}", f"topic-{number}", 5, Spread(5, 50, 10, 10))
    for number in range(SINKS):
        made.sent(f"out-{number}", f"sink-{number}", [b"k"], [b"v"], [10])
    for number in range(DROPS):
        made.drop(f"step-{number}", "late", 1)
    for number in range(STORES):
        made.stored(f"store-{number}", 3, 0.1)
    for sampled in (made.tasks_created, made.tasks_closed):
        sampled.record(1, made.clock())
    return made


def measured(level: Level) -> Measurements:
    threads = {f"app-0-StreamThread-{number}": recorder(level) for number in range(THREADS)}
    stores = {f"store-{number}": StoreRecorder() for number in range(STORES)} if level is Level.DEBUG else {}
    for each in stores.values():
        each.got(2, 0.1)
    properties = {f"store-{number}": dict.fromkeys((*OF_FAMILIES, *OF_DATABASES), 1) for number in range(STORES)}
    properties["store-0"] |= dict.fromkeys(BUFFERS, 1)
    statistics = {
        name: dict.fromkeys((*TICKERS, *(f"{t}.{p}" for t in TIMES for p in ("count", "sum"))), 1) for name in stores
    }
    cache = {"block-cache-capacity": 3, "block-cache-usage": 2, "block-cache-pinned-usage": 1}
    processes: Any = {"client": (1, 10), "jvm": (1, 10), "worker": (2, 10)}
    return Measurements(level, "1.0", threads, [*threads.values()], properties, statistics, stores, cache, processes)


def described() -> dict[str, Any]:
    """A client with 400 partitions of each topic and each store, all of which are being restored."""
    restoring = [
        {"store": f"store-{store}", "partition": number, "remaining": 5, "eta_seconds": 1.0}
        for store in range(STORES)
        for number in range(PARTITIONS)
    ]
    standbys = [{"stores": [{"store": "store-0", "partition": number, "lag": 1}]} for number in range(PARTITIONS)]
    lag = [
        {"topic": f"topic-{topic}", "partition": number, "lag": 1}
        for topic in range(TOPICS)
        for number in range(PARTITIONS)
    ]
    threads = [{"name": f"app-0-StreamThread-{number}", "state": "RUNNING"} for number in range(THREADS)]
    tasks = [{"id": f"0_{number}", "state": "RUNNING"} for number in range(PARTITIONS)]
    client = client_with(0).describe()
    copied = [{"store": f"store-{store}", "age": 1.0} for store in range(STORES) for _ in range(PARTITIONS)]
    return client | {
        "snapshots": client["snapshots"] | {"stores": copied},
        "restoration": restoring,
        "standbys": standbys,
        "lag": lag,
        "threads": threads,
        "tasks": tasks,
    }


def scraped(level: Level) -> list[Any]:
    text = generate_latest(create_registry(described, lambda: measured(level))).decode()
    return list(text_string_to_metric_families(text))


@pytest.mark.parametrize("level", Level)
def test_a_scrape_shows_what_the_catalogue_has_at_the_level_and_nothing_else(level: Level) -> None:
    defined = {each.name: each for each in CATALOGUE if level.shows(each.level)}
    families = {each.name: each for each in scraped(level)}
    assert families.keys() == defined.keys()
    for name, family in families.items():
        assert family.type == defined[name].kind, name
        assert family.samples, f"{name} has no series in a client that has done everything"
        labels = {frozenset(sample.labels) for sample in family.samples}
        assert labels == {frozenset((*COMMON_LABELS, *defined[name].labels))}, name


def test_names_are_prometheus_own_and_given_once() -> None:
    names = [each.name for each in CATALOGUE]
    assert len(names) == len(set(names))
    assert [name for name in names if not re.fullmatch(r"kafka_streams(_[a-z0-9]+)+", name)] == []
    assert [each.name for each in CATALOGUE if each.name.endswith(("_total", "_count", "_sum"))] == []
    assert all(each.meaning.endswith(".") and each.unit for each in CATALOGUE)


def per_partition(families: Iterable[Any]) -> int:
    return sum("partition" in sample.labels for family in families for sample in family.samples)


def test_series_of_400_partitions_are_as_many_as_the_page_says() -> None:
    """The page's formula; each number in it is one that the page shows."""
    families = scraped(Level.INFO)
    whole = sum(len(family.samples) for family in families)
    of_partitions = PARTITIONS * (TOPICS + 2 * STORES + 1)
    assert per_partition(families) == of_partitions
    fixed, thread, store, node, topic, drop, sub, peek, suppress = figures("series")
    others = fixed + thread * THREADS + store * STORES + node * (SOURCES + SINKS) + topic * (SOURCES + SINKS)
    assert whole - of_partitions == others + drop * DROPS + sub * 2 + peek * 1 + suppress * 1


def test_debug_has_no_series_of_single_partitions_more() -> None:
    info, debug = scraped(Level.INFO), scraped(Level.DEBUG)
    assert per_partition(debug) == per_partition(info)
    more = sum(len(each.samples) for each in debug) - sum(len(each.samples) for each in info)
    page = " ".join((GUIDE / "metrics.md").read_text(encoding="utf-8").split())
    assert "`DEBUG` adds 28 a store, 2 a source, 3 a sink and 6 a sub-topology" in page
    assert more == 28 * STORES + 2 * SOURCES + 3 * SINKS + 6 * 2


def figures(mark: str) -> list[int]:
    """The numbers of the line of the page that begins with `mark`."""
    page = (GUIDE / "metrics.md").read_text(encoding="utf-8")
    (line,) = (each for each in page.splitlines() if each.startswith(f"{mark} = "))
    return [int(number) for number in re.findall(r"\b\d+\b", line)]


def test_the_pages_have_every_table_as_the_catalogue_prints_it() -> None:
    pages = "\n".join((GUIDE / f"{name}.md").read_text(encoding="utf-8") for name in ("metrics", "metrics-stores"))
    for section in SECTIONS:
        assert f"## {section.title}\n\n{table_of(section.metrics)}\n" in pages, (
            f"{section.title}: print the tables with python -m streams_runtime.metrics.catalogue"
        )


def test_the_page_has_every_reason_for_which_records_are_dropped() -> None:
    assert MEANINGS.keys() == set(DropReason)
    page = (GUIDE / "metrics.md").read_text(encoding="utf-8")
    for reason, meaning in MEANINGS.items():
        assert f"| `{reason}` | {meaning} |" in page
