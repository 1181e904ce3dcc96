"""Processors of one's own over real stores: batches, moves and failures change nothing of what they make."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from processor_classes import Everything, Failing
from processor_kit import Harness, Model, Read, harness
from state_kit import memory_folder

from streams_runtime.batch.columns import ELEMENT, ORDER_TIME
from streams_runtime.errors import UserCodeException
from streams_runtime.processors.user_processors.forwarded_rows import PUNCTUATED

OPS = ("put", "absent", "range", "prefix", "all", "twice", "get", "cancel")
KEYS = ("a", "b", "ba", "c")


@pytest.fixture
def everything() -> Iterator[Harness]:
    with memory_folder() as folder, harness(folder, "processor_classes:Everything") as made:
        yield made


def read(offset: int, time: int, op: str = "get", n: int = 0, key: str = "a", reaches: bool = True) -> Read:
    return Read("a", 0, offset, time, key, (op, n), reaches)


def model_of(records: Sequence[Read]) -> Model:
    model = Model(Everything())
    for each in records:
        model.read(each)
    return model


@st.composite
def one_topic(draw: st.DrawFn) -> list[Read]:
    found = []
    for offset in range(draw(st.integers(1, 14))):
        value = None if draw(st.integers(0, 9)) == 0 else (draw(st.sampled_from(OPS)), draw(st.integers(0, 3)))
        time = draw(st.integers(0, 60))
        found.append(Read("a", 0, offset, time, draw(st.sampled_from(KEYS)), value, draw(st.integers(0, 4)) > 0))
    return found


@st.composite
def cuts(draw: st.DrawFn, size: int) -> list[tuple[int, str]]:
    """Where batches end, and what happens to the task behind each."""
    ends = sorted(draw(st.sets(st.integers(1, max(1, size - 1)))) | {size})
    return [(end, draw(st.sampled_from(("go on", "move", "fail")))) for end in ends]


@settings(max_examples=examples(120), deadline=None)
@given(st.data())
def test_batches_moves_and_failures_change_nothing(data: st.DataObject) -> None:
    records = data.draw(one_topic())
    model = model_of(records)
    with memory_folder() as folder, harness(folder, "processor_classes:Everything") as made:
        start = 0
        for end, event in data.draw(cuts(len(records))):
            batch = records[start:end]
            if event == "fail":
                made.apply(batch)  # and nothing of it is committed
            made.run(batch)
            if event == "move":
                made.restart()
            start = end
        assert made.told() == model.told
        assert list(made.contents()) == sorted(model.pairs)


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_records_of_two_topics_and_partitions_come_in_the_order_of_their_times(data: st.DataObject) -> None:
    """Times grow within a topic, so that the order is known without that of the pipeline."""
    moments = sorted(data.draw(st.sets(st.integers(0, 90), min_size=2, max_size=12)))
    records: dict[int, list[Read]] = {0: [], 1: []}
    offsets: dict[tuple[str, int], int] = {}
    for time in moments:
        where = data.draw(st.sampled_from("ab")), data.draw(st.integers(0, 1))
        offsets[where] = offsets.get(where, -1) + 1
        op = data.draw(st.sampled_from(OPS[:-1])), data.draw(st.integers(0, 3))
        records[where[1]].append(Read(*where, offsets[where], time, data.draw(st.sampled_from(KEYS)), op))
    cut = data.draw(st.integers(0, 90))
    topics = ("a", "b")
    with memory_folder() as folder, harness(folder, "processor_classes:Everything", "STRING", topics, 2) as made:
        for keep in (lambda each: each.time <= cut, lambda each: each.time > cut):
            batch = [each for part in records.values() for each in part if keep(each)]
            if batch:
                made.run(batch)
        for partition, given_records in records.items():
            assert made.told(partition) == model_of(given_records).told


@settings(max_examples=examples(40), deadline=None)
@given(st.data())
def test_where_every_record_reaches_the_step_nothing_else_is_asked_about_times(data: st.DataObject) -> None:
    moments = data.draw(st.lists(st.integers(0, 60), min_size=1, max_size=10))
    topics = data.draw(st.sampled_from([("a",), ("a", "b")]))
    records, offsets = [], dict.fromkeys(topics, -1)
    for time in moments:
        topic = data.draw(st.sampled_from(topics))
        offsets[topic] += 1
        op = data.draw(st.sampled_from(OPS)), data.draw(st.integers(0, 3))
        records.append(Read(topic, 0, offsets[topic], time, data.draw(st.sampled_from(KEYS)), op))
    told = []
    for leaves_out in (True, False):
        with (
            memory_folder() as folder,
            harness(folder, "processor_classes:Everything", "STRING", topics, leaves_out=leaves_out) as made,
        ):
            made.run(records)
            told.append(made.told())
            assert made.asked == ([len(records)] if leaves_out else [])
    assert told[0] == told[1]


def test_a_record_that_a_step_before_leaves_out_lets_stream_time_come(everything: Harness) -> None:
    everything.run([read(0, 0, "put"), read(1, 30, reaches=False)])
    told = [seen for _, seen, _, _ in everything.told()]
    assert told == ["0@0 at 0: None", "swept [('a', {'n': 0})]", "0 at 0", "swept []", "0 at 30"]


def test_a_schedule_by_stream_time_is_called_once_for_all_the_times_that_were_passed_over(everything: Harness) -> None:
    everything.run([read(0, 3), read(1, 1000), read(2, 1000), read(3, 1001)])
    swept = [time for key, _, time, _ in everything.told() if key == "sweep"]
    assert swept == [3, 1000, 1001]  # multiples of 7 are 0, 994 and 1001


def test_rows_have_the_places_of_their_records_and_those_of_punctuators_come_behind_them(everything: Harness) -> None:
    rows = everything.run([read(0, 0, "twice"), read(1, 6)])
    assert [(each["_topic"], each["_offset"], each[ELEMENT]) for each in rows] == [
        ("a", 0, [0]),
        ("a", 0, [1]),
        ("a", 0, [2]),
        ("a", 0, [PUNCTUATED, 0, 0, 0, 0]),
        ("a", 0, [PUNCTUATED, 0, 0, 0, 1]),
        ("a", 1, [0]),
    ]
    assert [round(each[ORDER_TIME].timestamp() * 1000) for each in rows] == [0, 0, 0, 0, 0, 6]
    assert [round(each["_timestamp"].timestamp() * 1000) for each in rows] == [1000, 0, 0, 0, 0, 6]


def test_rows_of_several_topics_keep_the_times_by_which_they_are_ordered() -> None:
    topics = ("a", "b")
    with memory_folder() as folder, harness(folder, "processor_classes:Everything", "STRING", topics) as made:
        rows = made.run([Read("a", 0, 0, 5, "a", ("twice", 0)), Read("b", 0, 0, 9)])
    times = [round(each[ORDER_TIME].timestamp() * 1000) for each in rows]
    assert times == [5, 5, 5, 5, 5, 9, 9]


def test_a_step_without_a_key_keeps_that_of_each_record() -> None:
    with memory_folder() as folder, harness(folder, "processor_classes:Echo", None) as made:
        made.run([read(0, 1), Read("a", 0, 1, 2, None)])
        assert made.told() == [("a", "get", 1, ()), (None, "get", 2, ())]


def test_a_class_of_one_method_is_enough() -> None:
    with memory_folder() as folder, harness(folder, "processor_classes:Plain") as made:
        assert made.run([read(0, 1)]) == []


def test_the_clock_calls_what_is_due_without_records(everything: Harness) -> None:
    assert everything.run([], is_tick=True) == []  # from here on it is counted
    everything.now = 49
    assert everything.run([], is_tick=True) == []
    everything.now = 50
    (row,) = everything.run([], is_tick=True)
    assert (row["_key"], row["seen"], row["_topic"], row["_offset"]) == ("tick", "tick 50", "a", -1)
    assert everything.contents() == {"tick": b'{"n":50}'}
    everything.now = 260
    assert [each["seen"] for each in everything.run([], is_tick=True)] == ["tick 260"]
    everything.now = 299
    assert everything.run([], is_tick=True) == []


def test_a_batch_of_records_calls_nothing_by_the_clock(everything: Harness) -> None:
    everything.run([], is_tick=True)
    everything.now = 1000
    assert all(each["_key"] != "tick" for each in everything.run([read(0, 1)]))


def test_a_tick_that_is_not_committed_is_called_again(everything: Harness) -> None:
    everything.run([], is_tick=True)
    everything.now = 50
    everything.apply([], is_tick=True)
    # The object that knew of it is not the one that the store speaks of, and the new one counts from here.
    assert everything.run([], is_tick=True) == []
    everything.now = 100
    assert len(everything.run([], is_tick=True)) == 1


@pytest.mark.parametrize(
    ("op", "found"),
    [
        ("raise", "ValueError: a bad record"),
        ("type", "the value that is forwarded is not of its declared type"),
        ("field", "there is no field 'sen'; did you mean 'seen'?"),
        ("store", "the step declares no store 'sen'; did you mean 'seen'?"),
        ("put", "a value of the store 'seen' is not of its declared type"),
        ("key", "a key of the store 'seen'"),
        ("schedule", "schedule is for init"),
        ("time", "a record of the time -1"),
    ],
)
def test_a_failure_names_class_key_and_record(op: str, found: str) -> None:
    with (
        memory_folder() as folder,
        harness(folder, "processor_classes:Failing") as made,
        pytest.raises(UserCodeException) as failure,
    ):
        made.run([read(16, 1), read(17, 2, op, key="k")])
    where = "spec.topology.steps[0].process: processor_classes:Failing failed in process for the key 'k' of a-0@17: "
    assert str(failure.value).startswith(where)
    assert found in str(failure.value)
    assert "(processor_classes.py, line " in str(failure.value)
    assert failure.value.of_a_record


def test_a_punctuator_that_fails_blames_no_record() -> None:
    with memory_folder() as folder, harness(folder, "processor_classes:Failing") as made:
        made.run([read(0, 1)])
        closed = Failing.closed
        with pytest.raises(
            UserCodeException, match="a punctuator at the stream-time 200 of the task 0_0: TypeError"
        ) as failure:
            made.run([read(1, 200)])
        assert Failing.closed == closed + 1
        assert not failure.value.of_a_record
        made.run([read(1, 150)])  # another object goes on where the last committed batch ended


def test_forwarding_is_refused_in_init() -> None:
    with (
        memory_folder() as folder,
        harness(folder, "processor_classes:FailingInit") as made,
        pytest.raises(UserCodeException, match="failed in init of the task 0_0: RuntimeError: forward is for process"),
    ):
        made.run([read(0, 1)])


def test_without_a_declared_key_a_punctuator_forwards_nothing_and_no_key_changes() -> None:
    for op, why in (("twice", "the key 'a!' in place of 'a'"), ("get", "a punctuator has no record whose key")):
        with (
            memory_folder() as folder,
            harness(folder, "processor_classes:Everything", None) as made,
            pytest.raises(UserCodeException, match=rf"{why}.*declare process\.key"),
        ):
            made.run([read(0, 1, op)])


def test_a_schedule_goes_on_where_it_was_when_the_task_moves(everything: Harness) -> None:
    everything.run([read(0, 3)])
    everything.restart()
    rows = everything.run([read(1, 6), read(2, 7)])
    assert [each["seen"] for each in rows] == ["0@1 at 6: None", "0@2 at 7: None", "swept []"]


def test_what_a_batch_has_done_that_is_not_committed_is_forgotten(everything: Harness) -> None:
    everything.apply([read(0, 3, "put", 1), read(1, 30)])
    everything.run([read(0, 3)])
    assert [key for key, *_ in everything.told()] == ["a", "sweep", "count"]
    assert everything.told()[0][1] == "0@0 at 3: None"
