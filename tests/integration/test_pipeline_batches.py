"""Where batches begin and end never changes a result: stores, sinks and the account are those of one big batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pipeline_kit import Pipeline, Record, batch, source, topology_of
from shared_cases import EXAMPLES, shared, shared_batches
from state_kit import key_value_store, memory_folder

from streams_runtime.processors.aggregates.store_updates import table_updates
from streams_runtime.state.store import KeyValueStore, Updates, unstamp

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.integration

Stored = Mapping[tuple[str, int], dict[bytes, tuple[int, bytes]]]


@pytest.fixture(scope="module")
def pipeline(spark: SparkSession) -> Pipeline:
    """Two aggregates, one of them behind a filter and with a step behind itself, and a sink beside them."""
    aggregate = {
        "n": "count(*)",
        "known": "count(a)",
        "total": "sum(a)",
        "least": "min(s)",
        "most": "max(a / 4)",
        "late": "max(_timestamp)",
        "mean": "avg(a)",
    }
    steps = [
        {"name": "totals", "from": "in", "aggregate": aggregate, "store": "totals"},
        {
            "name": "odd",
            "from": "in",
            "where": "a % 2 = 1",
            "select": {"a": "a", "where_": "concat(_partition, '@', _offset)"},
        },
        {"name": "odds", "from": "odd", "aggregate": {"last": "max(where_)", "sum": "sum(a)"}, "store": "odds"},
        {"name": "big", "from": "odds", "where": "sum > 50"},
    ]
    sinks = [{"from": "odd", "topic": "odd"}, {"from": "odds", "topic": "odds"}, {"from": "big", "topic": "big"}]
    return Pipeline(spark, topology_of([source(schema="a BIGINT, s STRING")], steps, sinks))


VALUES = st.builds(
    lambda a, s: orjson.dumps({"a": a, "s": s}), st.none() | st.integers(-100, 100), st.none() | st.sampled_from("xyzü")
)
RECORDS = st.builds(
    Record,
    key=st.sampled_from([b"a", b"b", b"c", None]),
    value=st.one_of(VALUES, VALUES, VALUES, st.none(), st.just(b"broken")),
    partition=st.integers(0, 1),
    time=st.integers(0, 2**41),
)


def numbered(records: Sequence[Record]) -> list[Record]:
    """The records with their offsets, so that a part of them is a later part of the log."""
    table = batch(*records).records
    assert table is not None
    offsets = table["offset"].to_pylist()
    return [
        Record(each.key, each.value, each.topic, each.partition, offset, each.time)
        for each, offset in zip(records, offsets, strict=True)
    ]


def processed(
    pipeline: Pipeline, batches: Iterable[Sequence[Record]], partitions: int = 2
) -> tuple[Stored, dict[str, Any], tuple[int, int]]:
    """What stores hold in the end, what the topics have got, and the account, after the batches."""
    sub = pipeline.topology.subtopologies[0]
    topics: dict[str, Any] = {"stream": [], "odds": {}, "big": {}}
    records = broken = 0
    with memory_folder() as folder, ExitStack() as stack:
        stores = {
            spec.name: {
                number: stack.enter_context(key_value_store(folder, spec.name, number)) for number in range(partitions)
            }
            for spec in sub.stores
        }
        for each in batches:
            result = pipeline.runners[0].run(batch(*each))
            records, broken = records + result.records, broken + result.broken
            for emission in result.emissions:
                topics["stream"] += zip(emission.keys, emission.values, emission.timestamps, strict=True)
            for at, keyed in enumerate(result.store_batches):
                if len(keyed.keys) == 0:
                    continue
                store = stores[keyed.node.store]
                new = pipeline.merge(result, store, at)
                for partition, updates in new.updates.items():
                    store[partition].write(updates, None)
                # Rows go to the sink as they are, and through steps in the order of their times.
                ordered = {"odds": new.rows, "big": new.rows.in_order_of_times()}
                for emission in pipeline.runners[0].run_table(keyed.node.name, new.rows).emissions:  # type: ignore[arg-type]
                    partitions_of = ordered[emission.topic].partitions.to_pylist()
                    topics[emission.topic] |= {
                        (p, k): v for p, k, v in zip(partitions_of, emission.keys, emission.values, strict=True)
                    }
        return (
            {(name, number): contents(one) for name, all_ in stores.items() for number, one in all_.items()},
            topics,
            (records, broken),
        )


def contents(store: KeyValueStore) -> dict[bytes, tuple[int, bytes]]:
    keys = [key for key, _ in store.scan(None, None)]
    return {k: unstamp(stored) for k, stored in zip(keys, store.get_stored(keys), strict=True) if stored is not None}


def split(records: Sequence[Record], cuts: Sequence[int]) -> list[Sequence[Record]]:
    ends = sorted({cut % (len(records) + 1) for cut in cuts} | {len(records)})
    return [records[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True) if end > start]


# Each example runs queries, and shrinking a failure would run hundreds.
@settings(
    max_examples=EXAMPLES,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    shared(st.tuples(st.lists(RECORDS, min_size=1, max_size=60), st.lists(st.integers(0, 60), min_size=1, max_size=3)))
)
def test_stores_topics_and_accounts_do_not_depend_on_batches(
    pipeline: Pipeline, cases: list[tuple[list[Record], list[int]]]
) -> None:
    """A case has two partitions of its own."""
    logs = [
        numbered([replace(each, partition=2 * case + each.partition) for each in records])
        for case, (records, _) in enumerate(cases)
    ]
    cut = shared_batches(
        (log, [each % (len(log) + 1) for each in cuts]) for log, (_, cuts) in zip(logs, cases, strict=True)
    )
    stores, topics, account = processed(pipeline, cut, 2 * len(cases))
    expected_stores, expected_topics, expected_account = processed(
        pipeline, [list(chain.from_iterable(logs))], 2 * len(cases)
    )
    assert stores == expected_stores
    assert account == expected_account
    assert topics["odds"] == expected_topics["odds"]
    assert topics["big"] == expected_topics["big"]
    assert sorted(topics["stream"], key=repr) == sorted(expected_topics["stream"], key=repr)


def test_one_big_batch_gives_what_adding_up_by_hand_gives(pipeline: Pipeline) -> None:
    """What the property above compares with is itself right."""
    log = numbered(
        [
            Record(b"a", orjson.dumps({"a": 51, "s": "y"}), time=9),
            Record(b"a", orjson.dumps({"a": 2, "s": "x"}), time=4),
            Record(b"a", orjson.dumps({"a": None}), partition=1, time=5),
            Record(b"b", orjson.dumps({"a": 3}), time=1),
            Record(b"a", None),
            Record(b"a", b"broken"),
        ]
    )
    stores, topics, account = processed(pipeline, [log])
    seen = {
        (name, partition, key): (time, orjson.loads(value))
        for (name, partition), found in stores.items()
        for key, (time, value) in found.items()
    }
    assert seen == {
        ("totals", 0, b"a"): (
            9,
            {
                "n": 2,
                "known": 2,
                "total": 53,
                "least": "x",
                "most": 12.75,
                "late": "1970-01-01T00:00:00.009000Z",
                "mean": {"sum": 53.0, "count": 2},
            },
        ),
        ("totals", 0, b"b"): (
            1,
            {
                "n": 1,
                "known": 1,
                "total": 3,
                "least": None,
                "most": 0.75,
                "late": "1970-01-01T00:00:00.001000Z",
                "mean": {"sum": 3.0, "count": 1},
            },
        ),
        ("totals", 1, b"a"): (
            5,
            {
                "n": 1,
                "known": 0,
                "total": None,
                "least": None,
                "most": None,
                "late": "1970-01-01T00:00:00.005000Z",
                "mean": {"sum": None, "count": 0},
            },
        ),
        ("odds", 0, b"a"): (9, {"last": "0@0", "sum": 51}),
        ("odds", 0, b"b"): (1, {"last": "0@2", "sum": 3}),
    }
    assert topics["big"] == {(0, b"a"): b'{"last":"0@0","sum":51}', (0, b"b"): None}
    assert account == (6, 1)


def test_a_table_does_not_depend_on_batches_either(spark: SparkSession) -> None:
    table = Pipeline(spark, topology_of([source(schema="name STRING", table={"store": "users"})]))
    log = numbered(
        [
            Record(b"%d" % (n % 5), None if n % 7 == 3 else b'{"name":"%d"}' % n, partition=n % 2, time=n)
            for n in range(60)
        ]
    )
    expected: dict[int, dict[bytes | None, tuple[bytes | None, int]]] = {0: {}, 1: {}}
    for each in log:
        expected[each.partition][each.key] = (each.value, each.time)
    for cuts in ([], [17], [3, 30, 31]):
        latest: dict[int, dict[bytes | None, tuple[bytes | None, int]]] = {0: {}, 1: {}}
        for part in split(log, cuts):
            (keyed,) = table.run(*part).store_batches
            for partition, updates in table_updates(keyed).items():
                assert isinstance(updates, Updates)
                rows = zip(updates.keys, updates.values, updates.timestamps, strict=True)
                latest[partition] |= {key: (value, time) for key, value, time in rows}
        assert latest == expected
