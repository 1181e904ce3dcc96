"""Sources of every topic that fits a pattern: what fits, what is read then, what is noticed, what is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from hypothesis import given
from hypothesis import strategies as st

from streams_runtime import StreamsBuilder, json
from streams_runtime.api import parse_application, read_application
from streams_runtime.api.reading.topic_patterns import fits, pattern_problem
from streams_runtime.errors import (
    BrokerNotAvailableException,
    ConfigException,
    MissingSourceTopicException,
    TopologyException,
)
from streams_runtime.kafka.admin.pending_requests import TopicListing
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.pipeline.batch_input import OffsetRange
from streams_runtime.pipeline.record_reader import parts_by_topic
from streams_runtime.processing.inputs.alignment import inputs_of
from streams_runtime.tasks.assignment import complete_tasks
from streams_runtime.tasks.positions import Beginnings
from streams_runtime.tasks.standby_placement import stateful_tasks
from streams_runtime.topics.external_topics import check_patterns, source_topics
from streams_runtime.topics.pattern_watch import PatternWatch
from streams_runtime.topology.aggregate_order import order_mistakes
from streams_runtime.topology.changes.compare import changes
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.describe import as_text
from streams_runtime.topology.fork_paths import orders_by_time
from streams_runtime.topology.partition_counts import internal_topics, partition_counts, tasks
from streams_runtime.topology.plan import TaskId, Topology

VALUE = {"format": "json", "schema": "user STRING, n INT"}
COUNTED = {"name": "counted", "from": "orders", "aggregate": {"n": "count(*)"}, "store": "counts"}
BY_USER = {"name": "by-user", "from": "orders", "keyBy": "user"}


def source(pattern: str | None = "orders-.*", name: str = "orders", **more: Any) -> dict[str, Any]:
    read = {} if pattern is None else {"topicPattern": pattern}
    return {"name": name, **read, "key": {"format": "string"}, "value": VALUE, **more}


def document(*steps: Any, sources: Sequence[Any] = (source(),), sinks: Sequence[Any] = ()) -> dict[str, Any]:
    return {
        "apiVersion": "streamsoperator.io/v1alpha1",
        "kind": "StreamsApplication",
        "metadata": {"name": "app"},
        "spec": {"topology": {"sources": list(sources), "steps": list(steps), "sinks": list(sinks)}},
    }


def topology_of(*steps: Any, **more: Any) -> Topology:
    return build_topology(parse_application(document(*steps, **more)))


# Patterns that Python's expressions and RE2 understand alike.
PARTS = st.sampled_from(["a", "b", r"\.", "-", "[ab]", "[^a]", ".", "(a|b-)", "a*", "b+", "(?:ab)?", r"\d", "_{1,2}"])
TOPICS = st.text("ab.-_1", min_size=1, max_size=8)


@given(pattern=st.lists(PARTS, min_size=1, max_size=5).map("".join), topic=TOPICS)
def test_a_topic_fits_when_its_whole_name_does(pattern: str, topic: str) -> None:
    assert fits(pattern, topic) == (re.fullmatch(pattern, topic) is not None)


@pytest.mark.parametrize("pattern", ["", "(a", "a)|(b", "[b-a]", "(?=a)b", r"(a)\1", "*"])
def test_what_is_no_pattern_is_told(pattern: str) -> None:
    problem = pattern_problem(pattern)
    assert problem is not None
    assert problem[1]


@pytest.mark.parametrize("pattern", ["a|b", "(?i)orders", "^orders$", r"orders\.(de|fr)", "(a+)+b"])
def test_what_is_a_pattern_is_one(pattern: str) -> None:
    assert pattern_problem(pattern) is None
    assert not fits(pattern, "a" * 249 + "!")  # a name that makes other engines try for years


REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "neither": (document(sources=[source(None)]), "spec.topology.sources[0]", "a source without a topic"),
    "both": (
        document(sources=[source(topic="orders")]),
        "spec.topology.sources[0].topicPattern",
        "topicPattern beside topic",
    ),
    "table": (
        document(sources=[source(table={"store": "orders"})]),
        "spec.topology.sources[0].topicPattern",
        "a pattern for a table",
    ),
    "no expression": (
        document(sources=[source("orders-(")]),
        "spec.topology.sources[0].topicPattern",
        "no regular expression in RE2's syntax: missing ): orders-(",
    ),
    "another source": (
        document(sources=[source(), source(None, "paid", topic="orders-paid")]),
        "spec.topology.sources[0].topicPattern",
        "fits the topic 'orders-paid', which spec.topology.sources[1] reads",
    ),
    "a sink": (
        document(sinks=[{"from": "orders", "topic": "orders-out"}]),
        "spec.topology.sources[0].topicPattern",
        "fits the topic 'orders-out', which the application writes (spec.topology.sinks[0].topic)",
    ),
    "a sink by records": (
        document(sinks=[{"from": "orders", "topicBy": "user", "topics": ["b", "orders-c"]}]),
        "spec.topology.sources[0].topicPattern",
        "fits the topic 'orders-c', which the application writes (spec.topology.sinks[0].topics[1])",
    ),
    "an internal topic": (
        document(COUNTED, sources=[source(".*counts.*")]),
        "spec.topology.sources[0].topicPattern",
        "fits the topic 'app-counts-changelog', which the application writes",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_mistake_is_told_at_its_field(name: str) -> None:
    given_, field, found = REFUSED[name]
    mistakes = read_application(given_).mistakes
    assert [(each.path, found in each.found) for each in mistakes] == [(field, True)]
    assert mistakes[0].remedy


@pytest.mark.parametrize("function", ["last(n)", "first(n)", "reduce(0, (sum, row) -> row.n)"])
def test_what_goes_by_the_order_of_one_topic_is_refused(function: str) -> None:
    plan = topology_of({**COUNTED, "aggregate": {"x": function}})
    (mistake,) = order_mistakes(plan)
    assert "of the records of several topics" in mistake.found
    behind = {**COUNTED, "from": "by-user", "aggregate": {"x": function}}
    assert not list(order_mistakes(topology_of(BY_USER, behind)))


def test_dead_letters_are_not_read_again() -> None:
    given_ = document()
    given_["spec"]["processing"] = {"onDeserializationError": {"deadLetter": {"topic": "orders-dead"}}}
    (mistake,) = read_application(given_).mistakes
    assert "spec.processing.onDeserializationError.deadLetter.topic" in mistake.found


def test_offsets_by_number_are_refused_in_a_reset() -> None:
    given_ = document()
    given_["spec"]["reset"] = {"nonce": 1, "to": {"offsets": {"orders": {"0": 1}}}}
    (mistake,) = read_application(given_).mistakes
    assert mistake.path == "spec.reset.to.offsets.orders"
    assert "reads several topics, by the pattern 'orders-.*'" in mistake.found


def test_a_builder_says_the_same_as_a_file() -> None:
    builder = StreamsBuilder()
    builder.stream(re.compile("orders-.*"), name="orders", key="string", value=json("n INT")).to("out")
    (read,) = builder.document["sources"]
    assert (read["topicPattern"], "topic" in read) == ("orders-.*", False)
    with pytest.raises(ConfigException, match="has no name"):
        builder.stream(re.compile("a.*"), value=json("n INT"))
    with pytest.raises(ConfigException, match=r"flags.*\(\?i\)"):
        builder.stream(re.compile("a.*", re.IGNORECASE), name="a", value=json("n INT"))


THERE: Mapping[str, int] = {"orders-b": 2, "orders-a": 2, "payments": 7, "app-by-user-repartition": 3}


def test_a_topology_is_resolved_by_the_topics_that_are_there() -> None:
    plan = topology_of(COUNTED)
    assert plan.source_topics == plan.subtopologies[0].source_topics == ()
    resolved = plan.resolved(THERE)
    assert resolved.source_topics == resolved.subtopologies[0].source_topics == ("orders-a", "orders-b")
    assert resolved.nodes == plan.nodes
    assert resolved.resolved({"orders-c"}).source_topics == ("orders-c",)  # not those of the time before
    assert "Source: orders (topics: orders-.*)" in as_text(plan)
    without = topology_of(sources=[source(None, topic="orders")])
    assert without.resolved(THERE) is without


def test_each_topic_counts_in_tasks_and_in_internal_topics() -> None:
    plan = topology_of(COUNTED)
    counts = partition_counts(plan, THERE)
    assert counts == {"orders-a": 2, "orders-b": 2}
    assert tasks(plan, counts) == (TaskId(0, 0), TaskId(0, 1))
    assert [each.partitions for each in internal_topics(plan, parse_application(document(COUNTED)).spec, counts)] == [2]
    inputs = {TopicPartition("orders-a", 1), TopicPartition("orders-b", 1)}
    assert stateful_tasks(plan, counts)[TaskId(0, 1)] == inputs
    assert complete_tasks(plan, {TopicPartition("orders-a", 1)}, counts) == {}
    assert complete_tasks(plan, inputs, counts) == {TaskId(0, 1): inputs}
    assert list(inputs_of(plan.resolved(counts)).tasks) == [["orders-a", "orders-b"]]
    assert orders_by_time(plan.subtopologies[0])  # a pattern may fit any number of topics


def test_topics_whose_records_meet_need_the_same_number_of_partitions() -> None:
    with pytest.raises(TopologyException, match=r"orders-a has 2, orders-b has 3|orders-b has 3, orders-a has 2"):
        partition_counts(topology_of(COUNTED), {"orders-a": 2, "orders-b": 3})
    behind = topology_of(BY_USER, {**COUNTED, "from": "by-user"})
    assert partition_counts(behind, {"orders-a": 2, "orders-b": 2})["app-by-user-repartition"] == 2


def test_a_pattern_that_nothing_fits_is_a_missing_source_topic() -> None:
    with pytest.raises(MissingSourceTopicException, match=r"fits the pattern 'orders-\.\*' \(spec.*topicPattern\)"):
        check_patterns(topology_of().resolved({"payments"}), "kafka:9092")


def test_two_patterns_that_fit_one_topic_are_refused() -> None:
    plan = topology_of(sources=[source(), source(".*-paid", "paid")])
    check_patterns(plan.resolved({"orders-a", "old-paid"}), "kafka:9092")
    with pytest.raises(TopologyException, match="the topic orders-paid fits the patterns of"):
        check_patterns(plan.resolved({"orders-a", "orders-paid"}), "kafka:9092")


def test_users_topics_are_told_with_the_field_that_they_come_from() -> None:
    plan = topology_of(sources=[source(), source(None, "payments", topic="payments")])
    assert source_topics(plan) == {"payments": "spec.topology.sources[1].topic"}
    assert source_topics(plan.resolved(THERE)) == {
        "payments": "spec.topology.sources[1].topic",
        "orders-a": "spec.topology.sources[0].topicPattern",
        "orders-b": "spec.topology.sources[0].topicPattern",
    }


def test_a_topic_begins_where_its_source_says() -> None:
    begins = Beginnings({"payments": "latest", "orders-.*": "none"}, patterns=["orders-.*", "other-.*"])
    assert [begins.reset_of(each) for each in ("payments", "orders-a", "other-a", "x")] == [
        "latest",
        "none",
        None,
        None,
    ]


def test_another_pattern_is_a_change_of_what_decides_partitions() -> None:
    before, after = topology_of(COUNTED), topology_of(COUNTED, sources=[source("orders-[a-z]+")])
    assert changes(before, before).items == ()
    assert [each.where for each in changes(before, after).items] == ["topic app-counts-changelog"]


@given(
    sizes=st.dictionaries(st.tuples(st.sampled_from("abc"), st.integers(0, 4)), st.integers(1, 10_000), min_size=1),
    count=st.integers(1, 8),
)
def test_ranges_of_several_topics_are_divided_by_topic(sizes: Mapping[tuple[str, int], int], count: int) -> None:
    ranges = [OffsetRange(TopicPartition(topic, number), 3, 3 + size) for (topic, number), size in sizes.items()]
    parts = parts_by_topic(ranges, count)
    found: dict[tuple[str, int], int] = {}
    for topic, part in parts:
        for number, (start, end) in part.items():
            found[topic, number] = found.get((topic, number), 0) + end - start
    assert found == dict(sizes)
    assert len(parts) <= count + 3


class Cluster:
    """Keeps the question; the test answers it."""

    def __init__(self) -> None:
        self.asked: list[Future[frozenset[str]]] = []
        self.away, self.refreshed = False, 0

    def look_for_all(self) -> TopicListing:
        if self.away:
            raise BrokerNotAvailableException("away")
        self.asked.append(Future())
        return TopicListing({"topics": self.asked[-1]})

    def refresh(self) -> None:
        self.refreshed += 1


READ = frozenset({"orders-a", "payments"})


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def now() -> list[float]:
    return [0.0]


@pytest.fixture
def watch(cluster: Cluster, now: list[float]) -> PatternWatch:
    return PatternWatch(cluster, topology_of(), {"metadata.max.age.ms": "5000"}, lambda: now[0])


def test_it_asks_once_an_interval_and_never_waits(watch: PatternWatch, cluster: Cluster, now: list[float]) -> None:
    assert not watch.differs(READ)
    assert not cluster.asked
    now[0] = 5.0
    assert [watch.differs(READ) for _ in range(3)] == [False] * 3
    assert len(cluster.asked) == 1
    cluster.asked[0].set_result(frozenset({"orders-a", "other", "orders-b"}))
    assert watch.differs(READ)
    assert not watch.differs(READ)  # told once: what was done about it is not known to the old answer
    now[0] = 9.9
    watch.differs(READ)
    assert len(cluster.asked) == 1
    now[0] = 10.0
    watch.differs(READ)
    assert len(cluster.asked) == 2


@pytest.mark.parametrize(
    ("there", "differs"),
    [({"orders-a", "others"}, False), ({"others"}, True), ({"orders-a", "orders-b"}, True), (set(), True)],
)
def test_only_what_fits_counts(
    watch: PatternWatch, cluster: Cluster, now: list[float], there: set[str], differs: bool
) -> None:
    now[0] = 5.0
    watch.differs(READ)
    cluster.asked[0].set_result(frozenset(there))
    assert watch.differs(READ) is differs


def test_without_an_answer_nothing_has_changed(watch: PatternWatch, cluster: Cluster, now: list[float]) -> None:
    now[0] = 5.0
    watch.differs(READ)
    cluster.asked[0].set_exception(KafkaException(KafkaError(KafkaError._TIMED_OUT)))
    assert not watch.differs(READ)
    assert cluster.refreshed == 1
    cluster.away = True
    now[0] = 10.0
    assert not watch.differs(READ)
    cluster.away = False
    now[0] = 15.0
    watch.differs(READ)
    assert len(cluster.asked) == 2


def test_without_patterns_it_asks_nobody(cluster: Cluster) -> None:
    plan = topology_of(sources=[source(None, topic="orders")])
    watch = PatternWatch(cluster, plan, {"metadata.max.age.ms": "0"}, lambda: 100.0)
    assert not watch.differs({"orders"})
    assert not cluster.asked
