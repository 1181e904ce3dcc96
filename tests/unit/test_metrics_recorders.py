"""What is measured: windows, totals, what several threads measure together, and that readers need no lock."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams_runtime.metrics.metric_definition import Level
from streams_runtime.metrics.process_memory import processes_of
from streams_runtime.metrics.sampled import WINDOW, Reading, Sampled, Spread, spread_of
from streams_runtime.metrics.store_recorder import StoreRecorders
from streams_runtime.metrics.thread_recorder import ThreadRecorder
from streams_runtime.state.database.rocksdb_figures import statistics_of


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_nothing_is_measured_before_the_first_record() -> None:
    reading = Sampled().reading(5.0)
    assert (reading.average, reading.highest, reading.lowest, reading.rate, reading.count) == (None, None, None, 0.0, 0)


def test_averages_and_rates_are_those_of_two_samples_and_totals_of_all() -> None:
    sampled = Sampled()
    sampled.record(100.0, 0.0)  # forgotten at 60
    sampled.record(1.0, 31.0)
    sampled.record(5.0, 40.0)
    reading = sampled.reading(61.0)
    assert (reading.average, reading.highest, reading.lowest) == (3.0, 5.0, 1.0)
    assert reading.rate == pytest.approx(2 / 30)
    assert reading.total_rate == pytest.approx(6 / 30)
    assert (reading.count, reading.total) == (3, 106.0)
    assert sampled.reading(40.0).average == pytest.approx(106 / 3)


def test_what_is_measured_no_more_goes_to_nothing_while_its_totals_stay() -> None:
    sampled = Sampled()
    sampled.record(7.0, 10.0)
    reading = sampled.reading(10.0 + 2 * WINDOW)
    assert (reading.average, reading.rate, reading.count, reading.total) == (None, 0.0, 1, 7.0)


def test_a_rate_of_the_first_moments_is_not_that_of_an_instant() -> None:
    sampled = Sampled()
    sampled.record(1.0, 10.0)
    assert sampled.reading(10.0).rate == 1.0


@given(st.lists(st.tuples(st.floats(0, 20), st.integers(-1000, 1000)), min_size=1))
def test_a_reading_holds_at_least_the_last_window_and_at_most_two(steps: list[tuple[float, int]]) -> None:
    sampled, now, records = Sampled(), 0.0, []
    for wait, value in steps:
        now += wait
        sampled.record(value, now)
        records.append((now, value))
    recent = sampled.reading(now).recent
    least = [value for at, value in records if now - at < WINDOW]
    most = [value for at, value in records if now - at < 2 * WINDOW]
    assert len(least) <= recent.count <= len(most)
    assert min(most) <= recent.low <= min(least)
    assert max(least) <= recent.high <= max(most)
    assert sampled.reading(now).total == sum(value for _, value in records)


def test_readings_of_several_threads_are_added_up() -> None:
    one, other = Sampled(), Sampled()
    one.record(2.0, 0.0)
    other.record_all(Spread(3, 30.0, 8.0, 12.0), 5.0)
    both = one.reading(10.0) + other.reading(10.0)
    assert (both.average, both.lowest, both.highest, both.count) == (8.0, 2.0, 12.0, 4)
    assert both.rate == pytest.approx(1 / 10 + 3 / 5)
    assert Reading() + both == both


@given(st.lists(st.integers(0, 10**13), min_size=1), st.integers(0, 10**13))
def test_ages_are_those_of_the_single_timestamps(timestamps: list[int], now: int) -> None:
    ages = spread_of(timestamps).ages(now)
    each = [now - at for at in timestamps]
    assert (ages.count, ages.total, ages.low, ages.high) == (len(each), sum(each), min(each), max(each))


def test_of_many_timestamps_a_bounded_number_is_looked_at() -> None:
    assert spread_of(range(1_000_000)).count <= 4096
    assert spread_of([]).count == 0


def test_a_reader_never_sees_half_a_record() -> None:
    sampled, stop = Sampled(), threading.Event()
    seen: list[Reading] = []

    def read() -> None:
        while not stop.is_set():
            seen.append(sampled.reading(0.0))

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(50_000):
        sampled.record(3.0, 0.0)
    stop.set()
    reader.join()
    assert seen
    assert all(each.total == 3.0 * each.count == each.recent.total == 3.0 * each.recent.count for each in seen)


def test_a_thread_knows_what_its_time_went_into() -> None:
    clock = Clock()
    recorder = ThreadRecorder(clock=clock, wall=clock)
    recorder.polled(0.5, 10)
    recorder.stage("spark", 1.0)
    recorder.stage("commit", 0.25)
    recorder.stage("changelog-ends", 0.25)
    recorder.processed(1, 2.0, 10)
    recorder.committed(1, 0.25)
    assert recorder.task_records[1].reading(clock.now).total == 10
    assert recorder.commit.reading(clock.now).count == 1
    assert recorder.stages["spark"].reading(clock.now).total == 1.0


def test_time_in_which_a_thread_waits_for_the_brokers_counts_also_where_that_ends_in_an_error() -> None:
    clock = Clock()
    recorder = ThreadRecorder(clock=clock, wall=clock)
    with recorder.waiting():
        clock.now += 0.5
    clock.now += 7.0

    @recorder.waiting()
    def asks() -> None:
        clock.now += 0.25
        raise OSError("away")

    with pytest.raises(OSError, match="away"):
        asks()
    assert recorder.blocked == 0.75


def test_bytes_and_single_writes_are_measured_at_debug_only() -> None:
    for level in Level:
        recorder = ThreadRecorder(level)
        recorder.sent("out", "sink-out", [b"k", None], [b"value", None], [1, 2])
        recorder.stored("totals", 2, 0.1)
        debug = level is Level.DEBUG
        assert recorder.produced == {"out": 2}
        assert recorder.produced_bytes == ({"out": 6} if debug else {})
        assert recorder.written == {"totals": 2}
        assert set(recorder.put_all) == ({"totals"} if debug else set())
        assert (StoreRecorders(level).of("totals") is None) is not debug


def test_what_is_dropped_is_counted_by_step_and_reason() -> None:
    recorder = ThreadRecorder()
    recorder.drop("paid", "null-key", 2)
    recorder.drop("paid", "null-key", 3)
    recorder.drop("paid", "late", 0)
    assert recorder.dropped_records(recorder.clock()) == {("paid", "null-key"): 5}


def test_the_statistics_of_a_store_that_is_closed_stay_in_its_totals() -> None:
    recorder = StoreRecorders(Level.DEBUG).of("totals")
    assert recorder is not None
    recorder.closed({"bytes.written": 5})
    recorder.closed({"bytes.written": 7})
    recorder.got(3, 0.5)
    reading, keys, statistics = recorder.reading()
    assert (reading.count, reading.total, keys, statistics) == (1, 0.5, 3, {"bytes.written": 12})


def test_of_rocksdbs_text_only_what_is_shown_is_read() -> None:
    text = (
        "rocksdb.bytes.written COUNT : 17\nrocksdb.bytes.written.more COUNT : 3\nrocksdb.wal.bytes COUNT : 9\n"
        "rocksdb.db.flush.micros P50 : 1.0 P95 : 2.0 P99 : 2.0 P100 : 3.000000 COUNT : 2 SUM : 5\n"
    )
    assert statistics_of(text) == {"bytes.written": 17, "db.flush.micros.count": 2, "db.flush.micros.sum": 5}
    assert statistics_of(None) == {}


def test_processes_are_told_apart_by_what_they_are_and_strangers_are_left_out(tmp_path: Path) -> None:
    def process(number: int, parent: int, name: str, pages: int) -> None:
        folder = tmp_path / str(number)
        folder.mkdir()
        fields = ["S", str(parent), *["0"] * 19, str(pages), "0"]
        (folder / "stat").write_text(f"{number} ({name}) {' '.join(fields)}")

    process(10, 1, "python3", 4)
    process(11, 10, "java", 8)
    process(12, 11, "python3 (daemon) x", 2)
    process(13, 12, "python3", 2)
    process(99, 1, "java", 50)
    (tmp_path / "14").mkdir()  # has gone since it was listed
    found = {kind: (count, size // processes_page()) for kind, (count, size) in processes_of(10, tmp_path).items()}
    assert found == {"client": (1, 4), "jvm": (1, 8), "worker": (2, 4)}
    assert processes_of(10, tmp_path / "nowhere") == {}


def processes_page() -> int:
    import os

    return os.sysconf("SC_PAGE_SIZE")
