"""What becomes of a batch's records before any step: counted, left out if they can't be read, timed, with headers."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest
from pipeline_kit import Pipeline, Record, batch, sent, source, topology_of

from streams_runtime.batch.read_accounts import Account, BrokenRecord
from streams_runtime.errors import ConfigException, InvalidApplicationException
from streams_runtime.processors.aggregates.store_updates import table_updates

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.integration

SUM = {"name": "totals", "from": "in", "aggregate": {"total": "sum(a)", "n": "count(*)"}, "store": "totals"}
COPY: dict[str, Any] = {"from": "in", "topic": "out"}


@pytest.fixture(scope="module")
def one_outlet(spark: SparkSession) -> Pipeline:
    return Pipeline(spark, topology_of([source(schema="a BIGINT")], [], [COPY]))


@pytest.fixture(scope="module")
def two_outlets(spark: SparkSession) -> Pipeline:
    """The parsed records are kept between two queries here."""
    return Pipeline(spark, topology_of([source(schema="a BIGINT")], [SUM], [COPY]))


GOOD = b'{"a":1}'
BATCHES: list[tuple[str, list[Record], Account]] = [
    ("nothing broken", [Record(b"k", GOOD), Record(b"k", None)], Account(2, 0, None)),
    ("no records", [], Account(0, 0, None)),
    (
        "the first is the one with the lowest partition and then offset",
        [
            Record(b"k", b"late", partition=1, offset=3),
            Record(b"k", GOOD, partition=0, offset=7),
            Record(b"x", b"\xff\x00", partition=0, offset=9),
            Record(b"k", b"later", partition=0, offset=10),
        ],
        Account(4, 3, BrokenRecord("in", 0, 9, b"x", b"\xff\x00")),
    ),
    ("all broken, without a key", [Record(None, b"")], Account(1, 1, BrokenRecord("in", 0, 0, None, b""))),
]


@pytest.mark.parametrize("outlets", ["one", "two"])
@pytest.mark.parametrize(("what", "records", "account"), BATCHES, ids=[each[0] for each in BATCHES])
def test_the_account_counts_the_records_and_names_the_first_that_is_broken(
    one_outlet: Pipeline, two_outlets: Pipeline, outlets: str, what: str, records: list[Record], account: Account
) -> None:
    result = (one_outlet if outlets == "one" else two_outlets).run(*records)
    assert result.accounts == {"in": account}
    assert (result.records, result.broken) == (account.records, account.broken)


def test_each_source_has_its_own_account_also_when_the_batch_has_nothing_of_it(spark: SparkSession) -> None:
    topology = topology_of(
        [source(schema="a BIGINT"), source(schema="a BIGINT", name="other", topic="other")],
        [{"name": "both", "merge": ["in", "other"]}],
        [{"from": "both", "topic": "out"}],
    )
    pipeline = Pipeline(spark, topology)
    result = pipeline.run(Record(b"k", GOOD), Record(b"k", b"x", topic="other", offset=5), Record(b"k", b"y"))
    assert result.accounts == {
        "in": Account(2, 1, BrokenRecord("in", 0, 1, b"k", b"y")),
        "other": Account(1, 1, BrokenRecord("other", 0, 5, b"k", b"x")),
    }
    assert pipeline.run(Record(b"k", GOOD)).accounts == {"in": Account(1, 0, None), "other": Account(0, 0, None)}


def test_a_filter_that_lets_nothing_through_still_leaves_an_account(spark: SparkSession) -> None:
    """Spark cuts such a query short, and with it what counts."""
    topology = topology_of(
        [source(schema="a BIGINT")],
        [{"name": "none", "from": "in", "where": "1 = 0"}, SUM | {"from": "none"}],
        [{"from": "none", "topic": "out"}],
    )
    result = Pipeline(spark, topology).run(Record(b"k", GOOD), Record(b"k", b"x"))
    assert result.accounts == {"in": Account(2, 1, BrokenRecord("in", 0, 1, b"k", b"x"))}


def test_broken_records_are_left_out_and_can_be_had_as_they_came(two_outlets: Pipeline) -> None:
    records = (
        Record(b"a", GOOD, time=5),
        Record(b"b", b"bad", partition=1, offset=4, time=7, headers=[("h", b"x"), ("n", None)]),
        Record(None, b"[]", time=8),
    )
    result = two_outlets.run(*records)
    assert sent(result.emissions, "out") == [(b"a", GOOD, 5)]
    (keyed,) = result.store_batches
    assert keyed.keys.to_pylist() == ["a"]
    rows = two_outlets.runners[0].broken("in", batch(*records)).to_pylist()
    assert all(row.pop("time") is None for row in rows)
    assert sorted(rows, key=lambda row: row["_partition"]) == [
        {"_topic": "in", "_partition": 0, "_offset": 1, "_timestamp": 8, "_headers": None, "key": None, "value": b"[]"},
        {
            "_topic": "in",
            "_partition": 1,
            "_offset": 4,
            "_timestamp": 7,
            "_headers": [{"key": "h", "value": b"x"}, {"key": "n", "value": None}],
            "key": b"b",
            "value": b"bad",
        },
    ]


def test_headers_are_carried_to_where_the_record_goes(one_outlet: Pipeline) -> None:
    headers = [("h", b"1"), ("h", b"2"), ("none", None), ("\u00fc", b"\xff")]
    result = one_outlet.run(Record(b"a", GOOD, headers=headers), Record(b"b", GOOD), Record(b"c", GOOD, headers=[]))
    (emission,) = result.emissions
    assert emission.headers == [headers, None, []]
    (without,) = one_outlet.run(Record(b"a", GOOD)).emissions
    assert without.headers is None


def test_headers_and_the_other_metadata_can_be_asked_for_in_expressions(spark: SparkSession) -> None:
    select = {
        "kind": "cast(filter(_headers, h -> h.key = 'kind')[0].value as string)",
        "of": "concat_ws('|', _key, _topic, _partition, _offset, unix_millis(_timestamp))",
    }
    steps = [
        {"name": "seen", "from": "in", "select": select},
        {"name": "n", "from": "seen", "aggregate": {"kinds": "max(kind)", "ofs": "max(of)"}, "store": "n"},
    ]
    pipeline = Pipeline(spark, topology_of([source("bytes")], steps))
    result = pipeline.run(Record(b"k", b"", partition=3, offset=8, time=77, headers=[("a", b"b"), ("kind", b"new")]))
    assert result.store_batches[0].columns.to_pylist() == [{"kinds": "new", "ofs": "k|in|3|8|77"}]


TIMES = [
    ("a BIGINT", "a", b'{"a":1700000000123}', 1700000000123),
    ("a BIGINT", "a", b'{"a":0}', 0),
    ("t TIMESTAMP", "t", b'{"t":"2023-11-14T22:13:20.123456Z"}', 1700000000123),
    ("d STRING", "to_timestamp(d)", b'{"d":"2023-11-14 22:13:20"}', 1700000000000),
]


@pytest.mark.parametrize(("schema", "expression", "value", "expected"), TIMES)
def test_a_declared_timestamp_replaces_the_records_own(
    spark: SparkSession, schema: str, expression: str, value: bytes, expected: int
) -> None:
    pipeline = Pipeline(spark, topology_of([source(schema=schema, timestamp=expression)], [], [COPY]))
    result = pipeline.run(Record(b"k", value, time=5), Record(b"k", None, time=6), Record(b"k", b"{}", time=7))
    # A tombstone has nothing to take a time from and keeps its own; a value without one is broken.
    assert [(key, time) for key, _, time in sent(result.emissions, "out")] == [(b"k", expected), (b"k", 6)]
    assert result.accounts["in"] == Account(3, 1, BrokenRecord("in", 0, 2, b"k", b"{}"))


def test_a_timestamp_of_another_type_is_refused_with_its_field(spark: SparkSession) -> None:
    pattern = r"spec\.topology\.sources\[0\]\.timestamp: hash\(s\) is INT; .*BIGINT of milliseconds"
    with pytest.raises(ConfigException, match=pattern):
        Pipeline(spark, topology_of([source(schema="s STRING", timestamp="hash(s)")], [], [COPY]))


def test_a_timestamp_that_spark_can_not_analyse_is_refused_with_its_field(spark: SparkSession) -> None:
    with pytest.raises(InvalidApplicationException) as refused:
        Pipeline(
            spark,
            topology_of([source(schema="s STRING", timestamp="timestamp_millis(from_json(s, 'x INT'))")], [], [COPY]),
        )
    assert [mistake.path for mistake in refused.value.mistakes] == ["spec.topology.sources[0].timestamp"]


def test_records_keep_their_order_within_a_partition(one_outlet: Pipeline) -> None:
    records = [Record(b"%d" % (n % 3), b'{"a":%d}' % n, partition=n % 3) for n in range(3000)]
    rows = sent(one_outlet.run(*records).emissions, "out")
    for number in range(3):
        mine = [value for key, value, _ in rows if key == b"%d" % number]
        assert mine == [b'{"a":%d}' % n for n in range(number, 3000, 3)]


def test_a_table_keeps_the_records_own_bytes_and_its_deletions(spark: SparkSession) -> None:
    users = source(schema="name STRING", key="string", table={"store": "users"})
    pipeline = Pipeline(spark, topology_of([users]))
    rows = [
        Record(b"a", b'{ "name": "A", "more": 1 }', time=5),
        Record(b"b", None, time=6, partition=1),
        Record(b"a", b'{"name":"B"}', time=4),
        Record(None, b'{"name":"nobody"}'),
    ]
    result = pipeline.run(*rows)
    (keyed,) = result.store_batches
    found = [
        (p, k, t, row["_value"])
        for p, k, t, row in zip(
            keyed.partitions.to_pylist(),
            keyed.keys.to_pylist(),
            keyed.timestamps.to_pylist(),
            keyed.columns.to_pylist(),
            strict=True,
        )
    ]
    kept = [(0, b"a", 5, b'{ "name": "A", "more": 1 }'), (1, b"b", 6, None), (0, b"a", 4, b'{"name":"B"}')]
    # A record without a key is none of the table's; its time still counts for the order among topics.
    assert found == [*kept, (0, None, 1000, b'{"name":"nobody"}')]
    assert [*result.dropped.items()] == [(("in", "null-key"), 1)]
    assert [list(updates.keys) for updates in table_updates(keyed).values()] == [[b"a"], [b"b"]]


def test_times_are_read_and_written_in_utc_whatever_the_machine_says(spark: SparkSession) -> None:
    select = {"hour": "hour(_timestamp)", "day": "cast(_timestamp as date)"}
    steps = [{"name": "when", "from": "in", "select": select}]
    pipeline = Pipeline(spark, topology_of([source("bytes")], steps, [{"from": "when", "topic": "out"}]))
    moment = int(dt.datetime(2024, 3, 31, 23, 30, tzinfo=dt.UTC).timestamp() * 1000)
    result = pipeline.run(Record(b"k", b"", time=moment))
    assert sent(result.emissions, "out") == [(b"k", b'{"hour":23,"day":"2024-03-31"}', moment)]
