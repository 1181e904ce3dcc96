"""Batches of several inputs are cut between moments: what comes in them is what would come in one batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate

import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from pipeline_kit import topology_of

from streams_runtime.kafka.consumer.record_table import LATEST_TIME
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.processing.inputs.alignment import Alignment, Inputs, inputs_of
from streams_runtime.processing.inputs.intake import shared_out

TIMES = st.lists(st.integers(0, 60), max_size=40) | st.lists(st.sampled_from([5, 6]), max_size=40)
LOGS = st.dictionaries(st.sampled_from(["orders", "users", "visits"]), TIMES, min_size=2)
INPUTS = Inputs([["users", "orders"]])


@dataclass
class Logs:
    """Partitions with the time of each of their records, as brokers answer for them."""

    times: Mapping[TopicPartition, list[int]]
    asked: int = field(default=0)
    moments: set[int] = field(default_factory=set)

    def offsets_at(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        self.asked += 1
        self.moments |= set(times.values())
        return {
            each: next((at for at, found in enumerate(self.times[each]) if found >= time), None)
            for each, time in times.items()
        }


def batches(logs: Logs, limit: int) -> list[list[TopicPartition]]:
    """Which records each batch has, in their turns: by the time that each log has come to, users first."""
    alignment = Alignment(logs, INPUTS)
    ends = {each: len(times) for each, times in logs.times.items()}
    starts = dict.fromkeys(ends, 0)
    found = []
    while starts != ends:
        waiting = {each: ends[each] - start for each, start in starts.items()}
        shares = alignment.shares(starts, ends, shared_out(waiting, limit))
        taken = [
            (come, each.topic != "users", offset, each)
            for each, times in logs.times.items()
            for offset, come in enumerate(accumulate(times, max))
            if starts[each] <= offset < starts[each] + shares.get(each, 0)
        ]
        found.append([each for *_, each in sorted(taken)])
        assert found[-1], "each batch has something"
        starts = {each: start + shares.get(each, 0) for each, start in starts.items()}
        assert all(start <= ends[each] for each, start in starts.items())
    return found


@given(LOGS, st.integers(1, 50))
@settings(max_examples=examples(300), deadline=None)
def test_batches_one_after_the_other_have_the_order_of_one(times: dict[str, list[int]], limit: int) -> None:
    logs = Logs({TopicPartition(topic, 0): each for topic, each in times.items()})
    made = batches(logs, limit)
    assert all(len(each) <= max(limit, 1) for each in made)
    together = {TopicPartition(topic, 0) for topic in ("users", "orders")}
    (whole,) = batches(logs, 1000) or [[]]
    assert [each for batch in made for each in batch if each in together] == [e for e in whole if e in together]


@pytest.mark.parametrize("time", [LATEST_TIME + 1, 2**63 - 1])
def test_a_time_that_no_record_may_have_stops_no_search_and_is_not_gone_on_from(time: int) -> None:
    orders, users = TopicPartition("orders", 0), TopicPartition("users", 0)
    logs = Logs({orders: [1, 2, time, *[3] * 50], users: [1, 2]})
    alignment = Alignment(logs, INPUTS)
    assert alignment.shares({orders: 0, users: 0}, {orders: 53, users: 2}, {orders: 18, users: 2}) == {
        orders: 2,
        users: 2,
    }
    assert max(logs.moments) == LATEST_TIME + 1, "brokers take none of more than 63 bits"
    alignment.moments = Logs({orders: list(range(60)), users: list(range(60))})
    level = alignment.shares({orders: 0, users: 0}, {orders: 60, users: 60}, {orders: 20, users: 20})
    assert 0 < level[orders] == level[users]


def test_tasks_are_cut_each_by_itself_and_in_few_questions() -> None:
    million = [1_700_000_000_000 + number for number in range(20_000)]
    times = {TopicPartition(topic, number): million for topic in ("orders", "users") for number in range(3)}
    logs = Logs(times | {TopicPartition("users", 1): million[:10]})
    alignment, ends = Alignment(logs, INPUTS), {each: len(found) for each, found in logs.times.items()}
    starts = dict.fromkeys(ends, 0)
    waiting = {each: end - starts[each] for each, end in ends.items()}
    shares = alignment.shares(starts, ends, shared_out(waiting, 10_000))
    for number in (0, 2):
        assert shares[TopicPartition("orders", number)] == shares[TopicPartition("users", number)] > 500
    assert shares[TopicPartition("users", 1)] == 10
    first, logs.asked = logs.asked, 0
    starts = {each: start + shares[each] for each, start in starts.items()}
    alignment.shares(starts, ends, shared_out({each: ends[each] - starts[each] for each in ends}, 10_000))
    assert logs.asked < first < 60
    assert logs.asked < 8


def test_what_fits_is_taken_and_nobody_is_asked() -> None:
    logs = Logs({TopicPartition("orders", 0): [1, 2], TopicPartition("users", 0): [3]})
    assert [len(each) for each in batches(logs, 3)] == [3]
    assert not logs.asked


@pytest.mark.parametrize(
    ("backlog", "concerned"),
    [
        ({("orders", 0): 3, ("users", 0): 1}, True),
        ({("orders", 0): 3, ("users", 1): 1}, False),
        ({("orders", 0): 3, ("users", 0): 0}, False),
        ({("orders", 0): 3, ("visits", 0): 4}, False),
    ],
)
def test_inputs_concern_each_other_within_a_task(backlog: dict[tuple[str, int], int], concerned: bool) -> None:
    alignment = Alignment(Logs({}), INPUTS)
    assert alignment.concerns({TopicPartition(*at): waiting for at, waiting in backlog.items()}) is concerned


MEETING = Inputs([], [["users", "orders"]])
MANY_LOGS = st.dictionaries(
    st.builds(TopicPartition, st.sampled_from(["orders", "users"]), st.integers(0, 2)),
    st.lists(st.integers(0, 60), max_size=20),
    min_size=2,
)


@given(MANY_LOGS, st.integers(1, 60))
@settings(max_examples=examples(200), deadline=None)
def test_tasks_that_meet_behind_a_repartition_topic_are_read_up_to_one_moment(
    times: dict[TopicPartition, list[int]], limit: int
) -> None:
    """The time that a log comes to with its first record of another batch is none that this batch has passed."""
    alignment, ends = Alignment(Logs(times), MEETING), {each: len(found) for each, found in times.items()}
    starts = dict.fromkeys(ends, 0)
    while starts != ends:
        waiting = {each: ends[each] - start for each, start in starts.items()}
        shares = alignment.shares(starts, ends, shared_out(waiting, limit))
        cuts = {each: start + shares.get(each, 0) for each, start in starts.items()}
        assert cuts != starts
        read = [max(times[each][: cuts[each]]) for each in cuts if cuts[each] > starts[each]]
        next_ = [max(times[each][: cut + 1]) for each, cut in cuts.items() if cut < ends[each]]
        assert max(read) <= min(next_, default=60)
        starts = cuts


@pytest.mark.parametrize("partition", [1, 2])
def test_inputs_of_tasks_that_meet_concern_each_other_across_partitions(partition: int) -> None:
    alignment = Alignment(Logs({}), MEETING)
    assert alignment.concerns({TopicPartition("orders", 0): 1, TopicPartition("orders", partition): 1})
    assert not alignment.concerns({TopicPartition("orders", 0): 1, TopicPartition("orders", partition): 0})


def test_topics_meet_where_their_steps_write_what_one_task_reads() -> None:
    json = {"format": "json", "schema": "user STRING"}
    sources = [{"name": name, "topic": name, "key": {"format": "string"}, "value": json} for name in "abcd"]
    steps = [
        *({"name": f"by_{name}", "from": name, "keyBy": "user"} for name in "abc"),
        {"name": "both", "from": "by_a", "join": {"stream": "by_b", "within": "1m", "select": {"x": "by_b.user"}}},
        {"name": "again", "from": "both", "keyBy": "x"},
        {"name": "n", "from": "again", "aggregate": {"n": "count(*)"}, "store": "n"},
        {"name": "m", "from": "by_c", "aggregate": {"n": "count(*)"}, "store": "m"},
        {"name": "k", "from": "d", "aggregate": {"n": "count(*)"}, "store": "k"},
    ]
    inputs = inputs_of(topology_of(sources, steps))
    assert sorted(inputs.meeting) == [["a", "b"], ["app-by_a-repartition", "app-by_b-repartition"], ["c"]]
    assert inputs.together == [], "what all tasks read together each of them does"


def test_a_task_s_tables_come_before_its_streams() -> None:
    value = {"format": "json", "schema": "amount BIGINT"}
    names = {"orders": {}, "zones": {"table": {"store": "zones"}}, "users": {"table": {"store": "users"}}, "logs": {}}
    sources = [
        {"name": name, "topic": name, "key": {"format": "string"}, "value": value, **more}
        for name, more in names.items()
    ]
    steps = [
        {"name": "one", "from": "orders", "join": {"table": "users", "select": {"a": "users.amount"}}},
        {"name": "two", "from": "one", "join": {"table": "zones", "select": {"b": "zones.amount"}}},
        {"name": "kept", "from": "logs", "where": "amount > 0"},
    ]
    sinks = [{"from": "two", "topic": "out"}, {"from": "kept", "topic": "kept"}]
    topology = topology_of(sources, steps, sinks)
    assert inputs_of(topology).together == [["users", "zones", "orders"]]
