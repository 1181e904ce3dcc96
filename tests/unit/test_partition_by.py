"""`partitionBy`: what plans, Python and upgrades say of it, which joins it refuses, and where keys are behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from query_fakes import PARTITIONS, client_with, key_in

from streams_runtime.api import StreamsApplication, parse_application
from streams_runtime.batch.stage import ChosenPartitions, Emission
from streams_runtime.builder import StreamsBuilder, json
from streams_runtime.errors import FailedProcessingException
from streams_runtime.processing.failures.chosen_partitions import check_partitions
from streams_runtime.query.stores.store_target import target_of
from streams_runtime.query.stores.views import StoreCodec, StoreType
from streams_runtime.query.wire.problems import InvalidQueryException
from streams_runtime.topology.changes.compare import changes
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.describe import as_json, as_text
from streams_runtime.topology.nodes.source_and_sink_nodes import RepartitionSinkNode, SinkNode
from streams_runtime.topology.partitioners import partition_by_of, partitioner_mistakes
from streams_runtime.topology.plan import Topology

JSON = {"format": "json", "schema": "user STRING, n BIGINT"}
OUT = [{"from": "s", "topic": "out"}]
COUNT = {"name": "c", "from": "s", "aggregate": {"count": "count(*)"}, "store": "c"}


def app(*steps: dict[str, Any], sinks: Any = OUT, tables: Sequence[str] = ()) -> StreamsApplication:
    """An application over the streams a and b, and over tables."""
    keyed = {"key": {"format": "string"}, "value": JSON}
    sources: list[dict[str, Any]] = [{"name": name, "topic": name, **keyed} for name in ("a", "b")]
    sources += [{"name": name, "topic": name, "table": {"store": name}, **keyed} for name in tables]
    return parse_application(
        {
            "apiVersion": "streamsoperator.io/v1alpha1",
            "kind": "StreamsApplication",
            "metadata": {"name": "shop"},
            "spec": {"topology": {"sources": sources, "steps": list(steps), "sinks": sinks}},
        }
    )


def plan(*steps: dict[str, Any], sinks: Any = OUT, tables: Sequence[str] = ()) -> Topology:
    return build_topology(app(*steps, sinks=sinks, tables=tables))


def spread(by: str | None = "n % 4", name: str = "s", from_: str = "a") -> dict[str, Any]:
    return {"name": name, "from": from_, "repartition": {"partitions": 4} | ({} if by is None else {"partitionBy": by})}


def test_plans_and_drawings_have_the_expression() -> None:
    topology = plan(spread(), COUNT, sinks=[{**OUT[0], "partitionBy": "cast(n as int)"}])
    sink, to_topic = topology.node("sink-out"), topology.node("s-repartition")
    assert isinstance(sink, SinkNode)
    assert isinstance(to_topic, RepartitionSinkNode)
    assert (sink.partition_by, sink.is_direct) == ("cast(n as int)", False)
    assert (to_topic.partition_by, to_topic.partitions) == ("n % 4", 4)
    text = as_text(topology)
    assert "Sink: s-repartition (topic: shop-s-repartition, partitionBy: n % 4)" in text
    assert "Sink: sink-out (topic: out, partitionBy: cast(n as int))" in text
    does = {node["name"]: node["does"] for sub in as_json(topology)["subtopologies"] for node in sub["nodes"]}
    assert (does["s-repartition"], does["sink-out"]) == (
        "write, partitionBy n % 4",
        "write, partitionBy cast(n as int)",
    )


def test_python_declares_it_as_a_file_does() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("a", key="string", value=json("user STRING, n BIGINT"))
    stream.repartition(4, name="s", partition_by="n % 4").to("out", partition_by="n % 2")
    built = builder.build()
    assert built.steps[0].repartition is not None
    assert (built.steps[0].repartition.partitions, built.steps[0].repartition.partition_by) == (4, "n % 4")
    assert built.sinks[0].partition_by == "n % 2"


def test_state_right_behind_it_is_placed_by_it_and_that_behind_another_topic_by_keys() -> None:
    key_by = {"name": "k", "from": "s", "keyBy": "user"}
    topology = plan(spread(), COUNT, key_by, {**COUNT, "name": "d", "from": "k", "store": "d"})
    placed = {store: partition_by_of(topology, topology.store(store)[0]) for store in ("c", "d")}
    assert placed == {"c": "n % 4", "d": None}


JOIN = {"name": "j", "from": "s", "join": {"table": "t", "select": {"m": "t.n"}}}
TO_TABLE = {"name": "t", "from": "u", "toTable": {"store": "t"}}
WITHIN = {"stream": "u", "within": "5m", "select": {"m": "u.n"}}
MERGED = [{"name": "m", "merge": ["s", "u"]}, {**COUNT, "from": "m"}]


@pytest.mark.parametrize(
    ("steps", "tables", "other"),
    [
        ([spread(), JOIN], ["t"], "t, which they meet by key, by their keys"),
        (
            [spread(), spread(None, "u", "b"), TO_TABLE, JOIN],
            [],
            "shop-u-repartition, which they meet by key, by their",
        ),
        ([spread(), spread("n % 3", "u", "b"), TO_TABLE, JOIN], [], "by partitionBy n % 3"),
        ([spread(), spread("n % 3", "u", "b"), {"name": "j", "from": "s", "join": WITHIN}], [], "partitionBy n % 3"),
        ([spread(), spread("n", "u", "b"), *MERGED], [], "by partitionBy n"),
        (
            [
                spread(name="u"),
                TO_TABLE,
                {"name": "s", "from": "t", "join": {"table": "f", "key": "user", "select": {"m": "f.n"}}, "store": "s"},
            ],
            ["f"],
            "by their keys",
        ),
    ],
)
def test_what_meets_by_key_has_to_have_one_partitioner(steps: list[Any], tables: list[str], other: str) -> None:
    (mistake, *_) = partitioner_mistakes(plan(*steps, tables=tables, sinks=[]))
    assert mistake.path.endswith(".repartition.partitionBy")
    assert other in mistake.found
    assert "partitionBy n % 4" in mistake.found


@pytest.mark.parametrize(
    "steps",
    [
        [spread(), spread("n%4", "u", "b"), TO_TABLE, JOIN],
        [spread(), spread("n  %  4", "u", "b"), {"name": "j", "from": "s", "join": WITHIN}],
        [spread(), spread("n", "u", "b"), MERGED[0]],
        [spread(), COUNT],
        [spread(None), spread(None, "u", "b"), *MERGED],
    ],
)
def test_equal_expressions_and_streams_without_state_may_meet(steps: list[Any]) -> None:
    assert list(partitioner_mistakes(plan(*steps, sinks=[]))) == []


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("n % 4", "n % 2", "had their partitions by partitionBy n % 4 and have them by partitionBy n % 2"),
        (None, "n % 4", "by their keys and have them by partitionBy n % 4"),
        ("n % 4", None, "by partitionBy n % 4 and have them by their keys"),
    ],
)
def test_another_expression_before_state_is_a_change_that_moves_it(
    before: str | None, after: str | None, said: str
) -> None:
    found = changes(plan(spread(before), COUNT), plan(spread(after), COUNT))
    (change,) = found.incompatible
    assert said in str(change)
    assert "c have what was processed before" in str(change)


def test_the_same_expression_or_no_state_behind_it_is_no_change() -> None:
    assert changes(plan(spread(), COUNT), plan(spread("n%4"), COUNT)).items == ()
    assert changes(plan(spread()), plan(spread("n % 2"))).items == ()


class Counts:
    """A topic that grows when it is asked for anew."""

    def __init__(self, known: int, now: int) -> None:
        self.known, self.now = known, now

    def partition_count(self, topic: str, more_than: int = 0) -> int:
        assert topic == "out"
        if self.known <= more_than:
            self.known = self.now
        return self.known


SINK = SinkNode("sink-out", "s", "out", None, None, "spec.topology.sinks[0]", partition_by="n % 4")


@given(st.lists(st.none() | st.integers(-2, 9), max_size=8), st.integers(1, 4), st.integers(0, 4))
def test_a_partition_that_the_topic_does_not_have_is_the_error_of_its_record(
    numbers: list[int | None], known: int, more: int
) -> None:
    keys: list[bytes | None] = [b"k%d" % row for row in range(len(numbers))]
    emission = Emission("out", False, keys, list(keys), [0] * len(keys))
    wrong = [row for row, number in enumerate(numbers) if number is not None and not 0 <= number < known + more]
    if not wrong:
        check_partitions(emission, ChosenPartitions(SINK, numbers), Counts(known, known + more))
        return
    with pytest.raises(FailedProcessingException) as raised:
        check_partitions(emission, ChosenPartitions(SINK, numbers), Counts(known, known + more))
    said = str(raised.value)
    assert raised.value.of_a_record
    # Of a topic that has grown too few are known while all numbers are within these.
    assert f"sinks[0].partitionBy: n % 4 is {numbers[wrong[0]]} for the record of the key b'k{wrong[0]}'" in said
    assert "the topic out has" in said


def test_a_part_of_an_emission_has_its_own_partitions() -> None:
    emission = Emission("out", False, [b"a", b"b", b"c"], [None] * 3, [1, 2, 3])
    placed = replace(emission, chosen_partitions=ChosenPartitions(SINK, [2, None, 1])).take([2, 0])
    assert placed.chosen_partitions is not None
    assert (placed.keys, placed.chosen_partitions.numbers) == ([b"c", b"a"], [1, 2])
    assert emission.take([0]).chosen_partitions is None


def test_a_key_of_a_store_behind_it_needs_its_partition_named(monkeypatch: pytest.MonkeyPatch) -> None:
    client, key = client_with(*range(PARTITIONS)), key_in(1).encode()
    codec = replace(client.codec("counts"), partition_by="n % 4")
    monkeypatch.setattr(type(client), "codec", lambda _self, _store: codec)
    with pytest.raises(
        InvalidQueryException, match=r"store 'counts' .*partitionBy.*\(n % 4\).*range from the key to itself"
    ):
        target_of(client, "counts", StoreType.KEY_VALUE).at_key(key)
    with pytest.raises(InvalidQueryException):
        target_of(client, "counts", StoreType.KEY_VALUE, [0, 2]).partition_of(key)
    named = target_of(client, "counts", StoreType.KEY_VALUE, [2]).at_key(key)
    assert (named.partitions, named.partition_of(key)) == ({2}, 2)
    assert StoreCodec(codec.key, codec.decode_value).partition_by is None
