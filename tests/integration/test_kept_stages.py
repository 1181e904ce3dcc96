"""Queries of small batches are asked again instead of being planned anew, and nobody can tell."""

from __future__ import annotations

import random
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pipeline_kit import BY_SPARK, Pipeline, Record, json, source, topology_of, values
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from streams_runtime.pipeline.spark.frames import frame_of
from streams_runtime.pipeline.spark.observed import Observed
from streams_runtime.pipeline.stages import kept_stages
from streams_runtime.pipeline.stages.asked_query import Answer, Query
from streams_runtime.pipeline.stages.refilled_frame import RefilledFrame, is_refillable
from streams_runtime.pipeline.stages.spark_stages import SparkStages

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.integration

OF = "s STRING, n BIGINT"
OUT = [{"from": "step", "topic": "out"}]
TUMBLING = {"tumbling": {"size": "10s", "grace": "5s"}, "retention": "15s"}
SESSIONS = {"session": {"gap": "4s", "grace": "5s"}, "retention": "1h"}
SLIDING = {"sliding": {"timeDifference": "4s", "grace": "5s"}, "retention": "1h"}


def step(**what: Any) -> dict[str, Any]:
    return {"name": "step", "from": "in", **what}


def upper(where: str = "in") -> dict[str, Any]:
    """What the scan does not take over."""
    return {"name": "step", "from": where, "select": {"s": "upper(s)", "n": "n"}}


class Failing(Query):
    """A query for which there is no memory."""

    def answer(self, others: Iterable[Observed] = ()) -> Answer:
        raise MemoryError


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each first stage that was built, whether it is to be kept."""
    calls: list[bool] = []
    original = SparkStages._first_stage

    def counted(self: SparkStages, raw: Any, parsed: Any = None, is_whole: bool = False) -> Any:
        calls.append(is_whole)
        return original(self, raw, parsed, is_whole)

    monkeypatch.setattr(SparkStages, "_first_stage", counted)
    return calls


def test_a_stage_is_built_for_the_first_small_batch_only(spark: SparkSession, built: list[bool]) -> None:
    pipeline = Pipeline(spark, topology_of([source(schema=OF)], [upper()], OUT))
    for n in range(4):
        records = [Record(b"k", json(s=f"a{n}", n=n))] * n
        assert values(pipeline.run(*records)) == [(b"k", {"s": f"A{n}", "n": n})] * n
    assert built == [True]


def test_large_batches_have_stages_of_their_own(
    spark: SparkSession, built: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_stages, "_MOST_ROWS", 2)
    pipeline = Pipeline(spark, topology_of([source(schema=OF)], [upper()], OUT))
    for n in (1, 3, 2):
        found = values(pipeline.run(*(Record(b"k", json(s="a", n=each)) for each in range(n))))
        assert found == [(b"k", {"s": "A", "n": each}) for each in range(n)]
    assert built == [True, False]


@pytest.mark.parametrize("expression", ["uuid()", "rand()", "cast(now() as string)", "shuffle(sequence(1, 50))"])
def test_the_clock_and_chance_are_asked_for_each_batch(spark: SparkSession, expression: str) -> None:
    pipeline = Pipeline(spark, topology_of([source(schema=OF)], [step(select={"x": expression})], OUT))
    found = [values(pipeline.run(Record(b"k", json(s="a")))) for _ in range(3)]
    assert all(each != other for each, other in pairwise(found))


def test_counts_are_those_of_the_batch(spark: SparkSession) -> None:
    steps = [
        {"name": "step", "from": "in", "aggregate": {"s": "max(upper(s))"}, "window": TUMBLING, "store": "w"},
        {"name": "seen", "from": "in", "peek": {"metric": "all", "value": "length(upper(s))"}},
    ]
    pipeline = Pipeline(spark, topology_of([source(schema=OF)], steps, [{"from": "seen", "topic": "out"}]))
    good, late = Record(b"k", json(s="ab"), time=60_000), Record(b"k", json(s="c"), time=1_000)
    batches: list[tuple[list[Record], tuple[int, int, int, int, int]]] = [
        ([good, late, Record(None, json(s="d")), Record(b"k", b"{"), Record(b"k", None, time=60_000)], (5, 1, 1, 1, 4)),
        ([good], (1, 0, 0, 0, 1)),
        ([], (0, 0, 0, 0, 0)),
        ([late, Record(b"k", b"{"), Record(b"k", b"{")], (3, 2, 0, 0, 1)),
    ]
    for records, expected in batches:
        result = pipeline.run(*records)
        account = result.accounts["in"]
        (seen,) = result.peeks
        found = (account.records, account.broken, result.dropped["step", "null-key"], result.late["step"], seen.records)
        assert found == expected


def test_a_query_that_failed_is_asked_again(spark: SparkSession, built: list[bool]) -> None:
    topology = topology_of([source(schema=OF)], [step(select={"x": "cast(s as int)"})], OUT, **BY_SPARK)
    pipeline = Pipeline(spark, topology)
    for _ in range(2):
        with pytest.raises(PySparkException, match="CAST_INVALID_INPUT"):
            pipeline.run(Record(b"k", json(s="none")))
        assert values(pipeline.run(Record(b"k", json(s="7")))) == [(b"k", {"x": 7})]
    assert built == [True]


def test_a_stage_over_which_something_else_failed_is_built_anew(spark: SparkSession, built: list[bool]) -> None:
    pipeline = Pipeline(spark, topology_of([source(schema=OF)], [upper()], OUT))
    kept = pipeline.runners[0].by_spark._kept
    for _ in range(2):
        assert values(pipeline.run(Record(b"k", json(s="a", n=1)))) == [(b"k", {"s": "A", "n": 1})]
        (free,) = kept._free.values()
        assert free is not None
        ((node, query),) = free[0].stage.outputs
        free[0] = replace(free[0], stage=replace(free[0].stage, outputs=[(node, Failing(query.frame))]))
        with pytest.raises(MemoryError):
            pipeline.run(Record(b"k", json(s="a", n=1)))
    assert built == [True, True]


def test_threads_do_not_get_each_others_rows(spark: SparkSession, built: list[bool]) -> None:
    pipeline = Pipeline(spark, topology_of([source(schema=OF)], [upper()], OUT))

    def asked(thread: int) -> bool:
        for n in range(10):
            found = values(pipeline.run(Record(b"k", json(s=f"t{thread}", n=n))))
            if found != [(b"k", {"s": f"T{thread}", "n": n})]:
                return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(asked, range(4)))
    assert built == [True] * len(built)
    assert len(built) <= 4


STAGES: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
    "a merge": (
        [source(schema=OF), source(schema=OF, name="b", topic="b")],
        [{"name": "all", "merge": ["in", "b"]}, {**step(aggregate={"x": "max(upper(s))"}, store="w"), "from": "all"}],
    ),
    "keys": ([source(schema=OF)], [step(aggregate={"x": "max(upper(s))"}, store="w")]),
    "windows": ([source(schema=OF)], [step(aggregate={"x": "max(upper(s))"}, window=TUMBLING, store="w")]),
    "sessions": ([source(schema=OF)], [step(aggregate={"x": "max(upper(s))"}, window=SESSIONS, store="w")]),
    "sliding windows": ([source(schema=OF)], [step(aggregate={"x": "max(upper(s))"}, window=SLIDING, store="w")]),
    "a dedupe": ([source(schema=OF)], [step(dedupe={"by": "upper(s)", "within": "1m"})]),
    "a table": ([source(schema=OF)], [upper(), {"name": "t", "from": "step", "toTable": {"store": "w"}}]),
    "another key": ([source(schema=OF)], [step(keyBy="upper(s)")]),
}


@pytest.mark.parametrize("name", STAGES)
def test_stages_of_every_kind_are_kept(spark: SparkSession, built: list[bool], name: str) -> None:
    sources, steps = STAGES[name]
    pipeline = Pipeline(spark, topology_of(sources, steps, OUT))
    for n in range(3):
        pipeline.run(Record(b"k", json(s="a", n=n)), Record(b"k", json(s="b", n=n), topic=sources[-1]["topic"]))
    assert built == [True]


def a_value(dice: random.Random, kind: pa.DataType) -> Any:
    if dice.random() < 0.2:
        return None
    if pa.types.is_list(kind):
        return [a_value(dice, kind.value_type) for _ in range(dice.randrange(4))]
    if pa.types.is_struct(kind):
        return {each.name: a_value(dice, each.type) for each in kind}
    if pa.types.is_map(kind):
        return [(str(n), a_value(dice, kind.item_type)) for n in range(dice.randrange(3))]
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return bytes(dice.choices(b"ab\x00~", k=dice.randrange(5)))
    return dice.random() < 0.5 if pa.types.is_boolean(kind) else dice.randrange(100)


def test_what_keeps_rows_is_not_asked_again(spark: SparkSession) -> None:
    kept = kept_stages.KeptStages(spark)
    for n in range(3):
        rows = pa.table({"n": [n, 7]})
        for name, query in (
            ("shuffled", lambda frame: frame.repartition(2, "n").sortWithinPartitions("n")),
            ("looked up", lambda frame: frame.join(F.broadcast(frame.selectExpr("n m")), F.col("n") == F.col("m"))),
            ("neither", lambda frame: frame.where("n >= 0")),
        ):
            assert sorted(kept.answer(name, rows, query)["n"].to_pylist()) == [n, 7]
    assert [free is None for free in kept._free.values()] == [True, True, False]


KINDS: list[pa.DataType] = [
    pa.string(),
    pa.binary(),
    pa.bool_(),
    pa.int8(),
    pa.int64(),
    pa.float64(),
    pa.decimal128(9, 2),
    pa.date32(),
    pa.timestamp("us", tz="UTC"),
]
KINDS += [pa.list_(pa.struct([("a", pa.string()), ("b", pa.list_(pa.int32()))])), pa.map_(pa.string(), pa.int64())]
KINDS += [pa.struct([("x", KINDS[0]), ("y", pa.list_(pa.bool_())), ("z", pa.struct([("v", pa.binary())]))])]


def test_a_frame_has_the_rows_that_it_was_filled_with(spark: SparkSession) -> None:
    dice = random.Random(7)
    schema = pa.schema([(f"c{number}", kind) for number, kind in enumerate(KINDS)])
    assert is_refillable(schema)
    frame = RefilledFrame(spark, schema)
    for count in (3, 0, 1, 40, 0, 7):
        rows = [{each.name: a_value(dice, each.type) for each in schema} for _ in range(count + 5)]
        whole = pa.Table.from_pylist(rows, schema)
        for table in (whole.slice(2, count), pa.concat_tables([whole.slice(3, 2), whole.slice(0, 0), whole.slice(1)])):
            frame.fill(table)
            assert (
                frame.frame.toArrow().to_pylist() == frame_of(spark, table).toArrow().to_pylist() == table.to_pylist()
            )


def test_columns_that_are_other_ones_in_spark_are_not_refilled() -> None:
    others = (pa.timestamp("us"), pa.timestamp("ms", tz="UTC"), pa.large_string(), pa.list_(pa.large_binary()))
    assert [is_refillable(pa.schema([("a", pa.int64()), ("b", kind)])) for kind in others] == [False] * 4
