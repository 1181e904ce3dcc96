"""What the next batch reads: every record once and in order, whoever fetches it, whatever goes wrong in between."""

from __future__ import annotations

import logging
from collections.abc import Callable
from itertools import count

import pytest
from confluent_kafka import Message
from example_counts import examples
from fake_logs import FakeBroker, record
from hypothesis import given, settings
from hypothesis import strategies as st

from streams_runtime.errors import BrokerNotAvailableException
from streams_runtime.kafka.consumer.group_consumer import Fetched
from streams_runtime.kafka.consumer.invalid_offset import InvalidOffsetException
from streams_runtime.kafka.consumer.record_table import RAW_SCHEMA
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.pipeline.batch_input import BatchInput, OffsetRange
from streams_runtime.processing.inputs.alignment import Inputs
from streams_runtime.processing.inputs.batch_size import FIRST_RECORDS
from streams_runtime.processing.inputs.intake import Intake, IntakeLimits, batch_of, shared_out, split_by_topics

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
BACKLOGS = st.dictionaries(
    st.builds(TopicPartition, st.sampled_from(["a", "b"]), st.integers(0, 30)), st.integers(0, 1000), max_size=40
)


def intake_of(broker: FakeBroker, batch: int = 100, backlog: int = 50, fetch: int = 20) -> Intake:
    return Intake(broker, broker, IntakeLimits(batch, 0.0, backlog, fetch), broker.read)


def idling(broker: FakeBroker, clock: Callable[[], float], batch: int, backlog: int, fetch: int) -> Intake:
    """One whose tasks wait up to 5 s for an empty input."""
    limits, tasks = IntakeLimits(batch, 0.0, backlog, fetch, idle=5.0), [["a", "b"]]
    return Intake(broker, broker, limits, broker.read, Inputs(tasks, tasks=tasks), clock=clock)


def fetched(*records: Message) -> Fetched:
    return Fetched(list(records), {})


def ranges(batch: BatchInput | None) -> dict[TopicPartition, tuple[int, int]]:
    return {} if batch is None else {each.partition: (each.start, each.end) for each in batch.ranges}


@given(BACKLOGS, st.integers(1, 2000))
def test_shares_never_exceed_the_limit_or_what_waits_and_always_make_progress(
    backlog: dict[TopicPartition, int], limit: int
) -> None:
    shares = shared_out(backlog, limit)
    assert shares.keys() <= backlog.keys()
    assert sum(shares.values()) <= limit
    assert all(0 <= share <= backlog[each] for each, share in shares.items())
    if sum(backlog.values()):
        assert sum(shares.values()) > 0


@pytest.mark.parametrize("backlog", [50, 1000], ids=["spark-reads", "the-member-fetches"])
def test_behind_one_that_took_too_long_batches_are_smaller_whoever_reads(backlog: int) -> None:
    broker = FakeBroker({A0: 300})
    intake = intake_of(broker, backlog=backlog)
    intake.size.overran(16, 60.0, 30.0)
    intake.add({A0: 0})
    found = [ranges(intake.next()) for _ in range(3)]
    assert [each for each in found if each][:2] == [{A0: (0, 4)}, {A0: (4, 8)}]


def test_batches_of_a_backlog_are_as_large_as_is_known_of_their_keys() -> None:
    broker = FakeBroker({A0: 10_000_000})
    intake = Intake(broker, broker, IntakeLimits(1_000_000, 0.0, keys=50_000), broker.read)
    intake.add({A0: 0})
    assert ranges(intake.next()) == {A0: (0, FIRST_RECORDS)}
    intake.size.learn(FIRST_RECORDS, FIRST_RECORDS)
    assert ranges(intake.next()) == {A0: (FIRST_RECORDS, FIRST_RECORDS + 50_000)}


def test_what_comes_at_once_of_inputs_that_meet_is_read_up_to_one_moment() -> None:
    broker = FakeBroker({A0: 1, A1: 1})
    inputs = Inputs([], [["a"]])
    intake = Intake(broker, broker, IntakeLimits(100, 0.0, backlog=1000, fetch=20), broker.read, inputs)
    intake.add({A0: 0, A1: 0})
    assert ranges(intake.next()) == {A0: (0, 1), A1: (0, 1)}
    assert intake.next() is None, "all is level: the member fetches"
    broker.ends = {A0: 80, A1: 70}
    assert intake.next() is None, "the member has fetched the first input only"
    assert ranges(intake.next()) == {A0: (1, 40), A1: (1, 40)}, "of both as much, and more than half a batch"
    assert ranges(intake.next()) == {A0: (40, 80), A1: (40, 70)}
    assert intake.next() is None
    broker.ends = {A0: 120, A1: 70}
    assert ranges(intake.next()) == {A0: (80, 100)}, "nothing waits that it could come before"


@given(BACKLOGS, st.integers(1, 2000))
def test_shares_are_in_proportion_to_what_waits(backlog: dict[TopicPartition, int], limit: int) -> None:
    total = sum(backlog.values())
    shares = shared_out(backlog, limit)
    if total <= limit:
        assert shares == backlog
    elif max(backlog.values()) * limit >= total:
        assert all(abs(shares[each] - waiting * limit / total) < 1 for each, waiting in backlog.items())
        assert sum(shares.values()) > limit - len(backlog)


def test_partitions_with_less_than_one_record_each_still_get_a_batch_that_is_there() -> None:
    backlog = {TopicPartition("a", number): 1 for number in range(1000)}
    assert sum(shared_out(backlog, 500).values()) == 1


def test_fetched_records_become_one_table_with_the_columns_of_spark_s_kafka_source() -> None:
    records = [
        record(A0, 5, [("h", b"x"), ("n", None)], time=1_700_000_000_000),
        record(B0, 0, []),
        record(A0, 6),
        record(A0, 9),
    ]
    batch = batch_of(fetched(*records), {A0: 5, B0: 0})
    assert batch is not None
    assert batch.ranges == (OffsetRange(A0, 5, 10), OffsetRange(B0, 0, 1))
    assert batch.records is not None
    assert batch.records.schema == RAW_SCHEMA
    rows = batch.records.to_pylist()
    assert [(row["topic"], row["partition"], row["offset"]) for row in rows] == [
        ("a", 0, 5),
        ("b", 0, 0),
        ("a", 0, 6),
        ("a", 0, 9),
    ]
    assert [(row["key"], row["value"]) for row in rows] == [
        (b"k5", b"v5"),
        (b"k0", b"v0"),
        (b"k6", None),
        (None, b"v9"),
    ]
    assert rows[0]["headers"] == [{"key": "h", "value": b"x"}, {"key": "n", "value": None}]
    assert (rows[1]["headers"], rows[2]["headers"]) == ([], None)
    assert rows[0]["timestamp"].timestamp() == 1_700_000_000.005


def test_records_of_partitions_that_went_away_and_doubles_are_left_out() -> None:
    stale = [record(A1, 7), record(A0, 5), record(A0, 6), record(A0, 6), record(A0, 5), record(A0, 7)]
    batch = batch_of(fetched(*stale), {A0: 5})
    assert ranges(batch) == {A0: (5, 8)}
    assert batch is not None
    assert batch.records is not None
    assert batch.records["offset"].to_pylist() == [5, 6, 7]
    assert batch_of(fetched(*stale[:1]), {A0: 5}) is None
    assert batch_of(fetched(), {A0: 5}) is None


@pytest.mark.parametrize(
    "found", [fetched(record(A0, 5), record(A0, 4)), Fetched([], {A0: 4})], ids=["a record", "the end"]
)
def test_a_log_that_was_read_from_its_beginning_since_it_ends_before_the_position_is_noticed(found: Fetched) -> None:
    with pytest.raises(InvalidOffsetException, match="a-0"):
        batch_of(found, {A0: 5})


def test_the_range_begins_at_the_position_even_where_records_are_missing() -> None:
    """Compaction and transaction markers leave gaps; the commit has to pass them."""
    assert ranges(batch_of(fetched(record(A0, 8)), {A0: 5})) == {A0: (5, 9)}


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        pytest.param({A0: 7}, {A0: (5, 7)}, id="a marker behind the record"),
        pytest.param({A0: 6}, {A0: (5, 6)}, id="the record is the last"),
        pytest.param({A1: 9, B0: 2}, {A0: (5, 6), A1: (4, 9)}, id="only a marker, and a partition that went away"),
    ],
)
def test_ends_of_partitions_pass_what_is_no_record(
    ends: dict[TopicPartition, int], expected: dict[TopicPartition, tuple[int, int]]
) -> None:
    assert ranges(batch_of(Fetched([record(A0, 5)], ends), {A0: 5, A1: 4})) == expected


def test_a_marker_alone_makes_a_batch_without_records_and_only_once() -> None:
    broker = FakeBroker({A0: 6}, markers={(A0, 5)})
    intake = intake_of(broker)
    intake.add({A0: 5})
    assert intake.next() is None
    batch = intake.next()
    assert ranges(batch) == {A0: (5, 6)}
    assert batch is not None
    assert not batch.has_records
    assert intake.next() is None


def test_a_batch_is_split_by_topics() -> None:
    batch = batch_of(fetched(record(A0, 0), record(B0, 0)), {A0: 0, B0: 0})
    assert batch is not None
    part = split_by_topics(batch, {"b"}.__contains__)
    assert part is not None
    assert ranges(part) == {B0: (0, 1)}
    assert part.records is batch.records
    assert split_by_topics(batch, {"c"}.__contains__) is None


def test_without_partitions_the_member_still_takes_part_in_the_group() -> None:
    broker = FakeBroker({})
    assert intake_of(broker).next() is None
    assert broker.calls == ["fetch"]


def test_a_short_backlog_is_fetched_by_the_member() -> None:
    broker = FakeBroker({A0: 30, A1: 5})
    intake = intake_of(broker)
    intake.add({A0: 10, A1: 5})
    assert intake.next() is None
    assert broker.resumed == {A0: 10, A1: 5}
    assert ranges(intake.next()) == {A0: (10, 30)}
    assert "poll" in broker.calls


def test_a_short_backlog_of_several_inputs_is_read_whole_before_the_member_fetches() -> None:
    broker = FakeBroker({A0: 9, B0: 3})
    intake = Intake(broker, broker, IntakeLimits(100, 0.0, 50, 20), broker.read, Inputs([["a", "b"]]))
    intake.add({A0: 4, B0: 0})
    batch = intake.next()
    assert batch is not None
    assert ranges(batch) == {A0: (4, 9), B0: (0, 3)}
    assert batch.records is not None
    assert batch.records["offset"].to_pylist() == [4, 5, 6, 7, 8, 0, 1, 2]
    assert (intake.next(), broker.calls) == (None, ["poll", "read", "poll", "resume"])
    broker.ends |= {A0: 10, B0: 4}
    assert ranges(intake.next()) == {A0: (9, 10), B0: (3, 4)}
    intake.restart()
    assert ranges(intake.next()) == {A0: (4, 10), B0: (0, 4)}
    assert broker.calls[-2:] == ["poll", "read"]


def test_inputs_of_a_task_are_read_up_to_one_moment() -> None:
    broker = FakeBroker({A0: 300, B0: 30})
    intake = Intake(broker, broker, IntakeLimits(100, 0.0, 50, 20), broker.read, Inputs([["b", "a"]]))
    intake.add({A0: 0, B0: 0})
    batch = intake.next()
    assert batch is not None
    # 30 of the one have their times while 70 of the other do; in proportion it would be 9 and 90.
    assert ranges(batch)[B0] == (0, 30)
    assert 30 <= ranges(batch)[A0][1] <= 70


def test_a_long_backlog_is_left_to_spark_and_the_member_stays_in_the_group() -> None:
    broker = FakeBroker({A0: 150, A1: 60})
    intake = intake_of(broker)
    intake.add({A0: 10, A1: 0})
    batch = intake.next()
    assert batch is not None
    assert batch.records is None
    assert ranges(batch) == {A0: (10, 80), A1: (0, 30)}
    assert batch.size == 100
    assert broker.resumed == {}
    assert broker.calls == ["poll"]


def test_the_next_batch_begins_behind_the_one_in_work_and_what_is_committed_stays_what_it_was() -> None:
    broker = FakeBroker({A0: 500})
    intake = intake_of(broker)
    intake.add({A0: 0})
    assert ranges(intake.next()) == {A0: (0, 100)}
    assert ranges(intake.next()) == {A0: (100, 200)}
    assert (intake.positions, intake.backlogged) == ({A0: 0}, True)
    intake.advance({A0: 100})
    assert intake.positions == {A0: 100}
    intake.restart()
    assert ranges(intake.next()) == {A0: (100, 200)}


def test_a_backlog_is_over_once_the_member_fetches() -> None:
    broker = FakeBroker({A0: 10})
    intake = intake_of(broker)
    assert not intake.backlogged
    intake.add({A0: 0})
    assert intake.backlogged
    intake.next()
    assert not intake.backlogged


def test_once_the_backlog_is_short_the_member_takes_over_where_spark_stopped() -> None:
    broker = FakeBroker({A0: 120})
    intake = intake_of(broker)
    intake.add({A0: 0})
    batch = intake.next()
    assert ranges(batch) == {A0: (0, 100)}
    intake.advance({A0: 100})
    assert intake.next() is None
    assert broker.resumed == {A0: 100}
    assert ranges(intake.next()) == {A0: (100, 120)}


def test_a_backlog_that_grows_while_the_member_fetches_goes_back_to_spark() -> None:
    broker = FakeBroker({A0: 10})
    intake = intake_of(broker)
    intake.add({A0: 0})
    intake.next()
    broker.ends[A0] = 500
    assert intake.next() is None
    assert broker.resumed == {}
    assert ranges(intake.next()) == {A0: (0, 100)}


def test_a_full_fetch_without_a_long_backlog_is_processed() -> None:
    broker = FakeBroker({A0: 25})
    intake = intake_of(broker)
    intake.add({A0: 0})
    intake.next()
    assert ranges(intake.next()) == {A0: (0, 20)}


def test_no_batch_has_more_records_than_the_application_allows() -> None:
    broker = FakeBroker({A0: 40})
    intake = intake_of(broker, batch=3)
    intake.add({A0: 0})
    intake.next()
    assert ranges(intake.next()) == {A0: (0, 3)}


def test_a_batch_that_came_to_nothing_is_read_again() -> None:
    broker = FakeBroker({A0: 30})
    intake = intake_of(broker)
    intake.add({A0: 0})
    intake.next()
    first = ranges(intake.next())
    intake.restart()
    assert intake.next() is None
    assert ranges(intake.next()) == first == {A0: (0, 20)}


def test_a_new_partition_holds_the_others_until_all_are_resumed_together() -> None:
    broker = FakeBroker({A0: 10, A1: 10})
    intake = intake_of(broker)
    intake.add({A0: 0})
    intake.next()
    assert broker.resumed == {A0: 0}
    intake.add({A1: 4})
    assert broker.resumed == {}
    intake.next()
    assert broker.resumed == {A0: 0, A1: 4}


def test_a_partition_that_was_taken_away_is_neither_read_nor_advanced() -> None:
    broker = FakeBroker({A0: 10, A1: 10})
    intake = intake_of(broker)
    intake.add({A0: 0, A1: 0})
    intake.next()
    intake.remove(frozenset({A1, B0}))
    assert ranges(intake.next()) == {A0: (0, 10)}
    intake.advance({A0: 10, A1: 10})
    assert intake.positions == {A0: 10}


def test_records_that_were_deleted_before_they_were_read_are_passed_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broker = FakeBroker({A0: 500}, starts={A0: 120})
    intake = intake_of(broker)
    intake.add({A0: 100})
    with caplog.at_level(logging.WARNING):
        assert ranges(intake.next()) == {A0: (120, 220)}
    assert "a-0 begins at offset 120: the records from 100 on were deleted" in caplog.text
    assert intake.positions == {A0: 100}  # the commit of the batch passes them


def resetting_intake(broker: FakeBroker) -> Intake:
    """Its topic `a` does not go on at its beginning where records were deleted."""
    return Intake(broker, broker, IntakeLimits(100, 0.0, 50, 20), broker.read, resets={"a"})


def test_where_an_offset_reset_is_asked_for_positions_are_chosen_anew_when_what_comes_next_was_deleted() -> None:
    broker = FakeBroker({A0: 500, B0: 500}, starts={A0: 120, B0: 120})
    intake = resetting_intake(broker)
    intake.add({A0: 100, B0: 200})
    with pytest.raises(InvalidOffsetException, match="a-0"):
        intake.next()
    other = resetting_intake(broker)
    other.add({A0: 120, B0: 100})
    assert ranges(other.next())[B0][0] == 120, "that of another topic goes on at its beginning"


@pytest.mark.parametrize("records", [3, 0], ids=["the first that is left", "none that is left"])
def test_records_that_are_deleted_while_the_member_fetches_are_noticed_too(records: int) -> None:
    broker = FakeBroker({A0: 12})
    intake = resetting_intake(broker)
    intake.add({A0: 10})
    assert intake.next() is None
    assert ranges(intake.next()) == {A0: (10, 12)}
    broker.ends[A0] = 20 + records
    broker.starts[A0] = broker.resumed[A0] = 20  # as librdkafka goes on at the beginning
    with pytest.raises(InvalidOffsetException, match="a-0"):
        intake.next()


def test_a_gap_that_compaction_or_a_transaction_leaves_is_no_deletion() -> None:
    broker = FakeBroker({A0: 12, B0: 12}, starts={A0: 10, B0: 0})
    intake = resetting_intake(broker)
    intake.add({A0: 10, B0: 10})
    assert intake.next() is None
    broker.resumed |= {A0: 11, B0: 11}
    assert ranges(intake.next()) == {A0: (10, 12), B0: (10, 12)}


def test_a_log_that_ends_before_what_comes_next_is_not_waited_for() -> None:
    broker = FakeBroker({A0: 500})
    intake = intake_of(broker)
    intake.add({A0: 501})
    with pytest.raises(InvalidOffsetException, match="a-0"):
        intake.next()


@pytest.mark.parametrize("fetching", [False, True])
def test_a_broker_that_is_away_costs_nothing(fetching: bool) -> None:
    broker = FakeBroker({A0: 45})
    intake = intake_of(broker)
    intake.add({A0: 0})
    if fetching:
        intake.next()
    broker.away = True
    with pytest.raises(BrokerNotAvailableException):
        intake.next()
    broker.away = False
    intake.restart()
    intake.next()
    assert ranges(intake.next()) == {A0: (0, 20)}


ACTIONS = st.sampled_from(
    ["begin", "begin", "begin", "complete", "complete", "fail", "rebalance in commit", "append", "rebalance", "burst"]
)


@pytest.mark.parametrize("idle", [False, True], ids=["at once", "with idle tasks"])
@settings(max_examples=examples(80))
@given(st.lists(st.tuples(ACTIONS, st.sampled_from([A0, A1, B0]), st.integers(1, 60)), max_size=40))
def test_every_record_is_processed_once_and_in_order_whatever_happens(
    idle: bool,
    steps: list[tuple[str, TopicPartition, int]],
) -> None:
    """Failures, growing backlogs and partitions that go away and come back, at random; the commits are the truth.

    Up to two batches are in work at a time: the next one is handed out before the one before it is committed.
    """
    broker, seconds = FakeBroker(dict.fromkeys((A0, A1, B0), 0), later={B0: 7}), count()
    sizes = {"batch": 30, "backlog": 25, "fetch": 10}
    intake = idling(broker, lambda: next(seconds) / 10, **sizes) if idle else intake_of(broker, **sizes)
    committed = dict.fromkeys((A0, A1, B0), 0)
    intake.add(committed)
    in_work: list[BatchInput] = []

    def begin() -> None:
        batch = intake.next() if len(in_work) < 2 else None
        if batch is None:
            return
        assert batch.size <= 30
        in_work.append(batch)
        if batch.records is not None:
            rows = [(TopicPartition(r["topic"], r["partition"]), r["offset"]) for r in batch.records.to_pylist()]
            assert sorted(rows) == [(r.partition, offset) for r in batch.ranges for offset in range(r.start, r.end)]

    def complete(rebalance: bool = False) -> None:
        if not in_work:
            return
        batch = in_work.pop(0)
        for each in batch.ranges:
            assert each.start == committed[each.partition]
            assert each.start < each.end <= broker.ends[each.partition]
        ends = {each.partition: each.end for each in batch.ranges}
        if rebalance:
            give_up()
        committed.update(ends)
        intake.advance(ends)
        assert intake.positions == committed

    def give_up() -> None:
        in_work.clear()
        intake.restart()

    for action, partition, number in steps:
        match action:
            case "append" | "burst":
                broker.ends[partition] += number * (10 if action == "burst" else 1)
            case "rebalance":
                intake.remove(frozenset({partition}))
                give_up()
                broker.pause([partition])
                intake.add({partition: committed[partition]})
            case "fail":
                give_up()
            case "begin":
                begin()
            case _:
                complete(rebalance=action == "rebalance in commit")
    turns = 0
    while committed != broker.ends:
        begin()
        complete()
        turns += 1
        assert turns < 1000, f"no progress at {committed} of {broker.ends}"
