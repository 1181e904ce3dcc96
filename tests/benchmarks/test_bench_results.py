"""Claims about what the benchmark compares: its data, its check of results, its figures, its cache."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import bench_peer_build
import orjson
from bench_data import Orders, changelog_messages, expected_totals, make_orders, order_messages
from bench_machine import Reading, Usage, read, usage
from bench_report import Line, disturbance, lines, ratios
from bench_runs import Job, Run, Side
from bench_stages import Stages, added_up
from bench_verify import WrongResultError, decode_object, decode_pair, require_count, require_equal


def totals_of(messages: list[tuple[bytes, int]]) -> dict[bytes, tuple[int, int]]:
    totals: dict[bytes, tuple[int, int]] = {}
    for key, amount in messages:
        if amount >= 0:
            total, n = totals.get(key, (0, 0))
            totals[key] = (total + amount, n + 1)
    return totals


def test_expected_totals_are_those_of_the_messages_that_are_sent() -> None:
    orders = make_orders(5_000, 300, seed=7, refused_share=0.1)
    sent = [message for chunk in order_messages(orders, chunk=700) for message in chunk]
    read = [(message.key, orjson.loads(message.value)) for message in sent]
    assert len(sent) == 5_000
    assert all(key == value["user"].encode() for key, value in read)
    assert any(value["amount"] < 0 for _, value in read)
    assert expected_totals(orders) == totals_of([(key, value["amount"]) for key, value in read])


def test_the_last_changelog_record_of_each_key_holds_its_totals() -> None:
    orders = make_orders(5_000, 300, seed=7, refused_share=0.0)
    messages = [message for chunk in changelog_messages(orders, chunk=700) for message in chunk]
    assert len(messages) == 5_000
    assert {m.key: decode_object(m.value) for m in messages} == expected_totals(orders)
    assert len({m.timestamp for m in messages}) == 5_000


def test_running_totals_follow_the_order_of_arrival() -> None:
    orders = Orders(np.array([4, 1, 4, 4]), np.array([10, 5, 2, 1]))
    values = [decode_object(m.value) for chunk in changelog_messages(orders) for m in chunk]
    assert values == [(10, 1), (5, 1), (12, 2), (13, 3)]


@pytest.mark.parametrize(
    "found",
    [
        {b"u1": (5, 2)},
        {b"u1": (5, 2), b"u2": (7, 2)},
        {b"u1": (5, 2), b"u2": (7, 1), b"u3": (0, 0)},
    ],
    ids=["a key is missing", "a count is off by one", "a key is too many"],
)
def test_any_difference_is_a_wrong_result(found: dict[bytes, tuple[int, int]]) -> None:
    expected = {b"u1": (5, 2), b"u2": (7, 1)}
    require_equal("same", expected, dict(expected))
    with pytest.raises(WrongResultError, match=r"1 of 2 keys differ.*u[23]"):
        require_equal("sink", expected, found)


def test_a_count_that_is_off_by_one_is_a_wrong_result() -> None:
    require_count("restored", 3, 3)
    with pytest.raises(WrongResultError, match="expected 3 records, found 2"):
        require_count("restored", 3, 2)


def test_the_peers_values_are_read_as_sum_and_count() -> None:
    assert decode_pair(b"12,3") == (12, 3)


def run(side: Side, job: Job, variant: str, seconds: float) -> Run:
    return Run(side, job, variant, 1, 1_000, {"work": seconds, "to-running": seconds, "from-start": seconds})


def test_the_peers_better_variant_counts_by_its_median() -> None:
    runs = [run("kafka-streams", "restore", "1 thread", seconds) for seconds in (1.0, 2.0, 9.0)]
    runs += [run("kafka-streams", "restore", "2 threads", 4.0)]
    runs += [run("streams-operator", "restore", "1 instance", 1.0)]
    line = lines(runs)[0]
    assert (line.kafka_streams, line.streams_operator, line.ratio) == (500.0, 1_000.0, 2.0)


def test_ratios_of_a_configured_peer_are_not_those_of_the_default_one() -> None:
    jobs: tuple[Job, ...] = ("catch-up", "restore")
    runs = [run("streams-operator", job, "1 instance", 1.0) for job in jobs]
    runs += [run("kafka-streams", job, "2 threads", 2.0) for job in jobs]
    named = {"catch_up_vs_kafka_streams_default": 2.0, "restore_vs_kafka_streams": 2.0}
    assert ratios(runs, timed(runs)) == named
    tuned = [replace(each, variant="2 threads, a=b") for each in runs]
    assert not set(ratios(tuned, timed(runs))) & set(named)


def timed(runs: list[Run]) -> tuple[Line, ...]:
    return lines([replace(each, seconds={**each.seconds, "to-committed": 1.0}) for each in runs])


def test_a_run_beside_busy_programs_is_called_not_comparable() -> None:
    quiet = replace(run("kafka-streams", "restore", "1 thread", 1.0), processors=Usage(others=0.02, idle=0.1))
    noisy = replace(quiet, processors=Usage(others=0.4, idle=0.0))
    assert disturbance([quiet, quiet]) is None
    assert "2% to 40%" in str(disturbance([quiet, noisy]))


def test_work_of_a_child_is_not_taken_for_that_of_others() -> None:
    before = Reading(at=0.0, busy=100.0, own=10.0)
    cores = os.cpu_count() or 1
    after = Reading(at=10.0, busy=100.0 + 6.0 * cores, own=10.0 + 5.0 * cores)
    spent = usage(before, after)
    assert spent is not None
    assert [spent.others, spent.idle] == pytest.approx([0.1, 0.4])


def test_processor_time_of_a_live_child_counts_as_own() -> None:
    loop = (
        "import time\n"
        "end = time.process_time() + 0.3\n"
        "while time.process_time() < end: pass\n"
        "print(1, flush=True); input()"
    )
    before = read()
    with subprocess.Popen(
        [sys.executable, "-c", loop], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        after = read()
        child.communicate("\n")
    assert before is not None
    assert after is not None
    assert after.own - before.own >= 0.25


ORPHAN = """
import subprocess, sys, time
from bench_machine import adopt_orphans, read

adopt_orphans()
grandchild = "import time\\nwhile time.process_time() < 0.4: pass"
child = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {grandchild!r}])"
def of_others_under_us():
    return read().own - time.process_time()

before, deadline = of_others_under_us(), time.monotonic() + 10
subprocess.run([sys.executable, "-c", child], check=True)
while of_others_under_us() - before < 0.4 and time.monotonic() < deadline:
    time.sleep(0.05)
print(of_others_under_us() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="orphans go to init elsewhere")
def test_processor_time_of_an_orphan_counts_as_own() -> None:
    folder = Path(__file__).parent
    done = subprocess.run([sys.executable, "-c", ORPHAN], cwd=folder, capture_output=True, text=True, check=True)
    assert float(done.stdout) >= 0.4


UNWAITED = """
import subprocess, sys
from bench_machine import Processors

worker = "import time\\nwhile time.process_time() < 0.8: pass"
daemon = f"import os, signal, subprocess, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.wait() if os.fork() \\
else os.execv(sys.executable, [sys.executable, '-c', {worker!r}])"
with Processors() as spent:
    subprocess.run([sys.executable, "-c", daemon])
print(spent.unwaited_s)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc elsewhere")
def test_processor_time_of_a_worker_that_nobody_waits_for_counts_as_own() -> None:
    folder = Path(__file__).parent
    done = subprocess.run([sys.executable, "-c", UNWAITED], cwd=folder, capture_output=True, text=True, check=True)
    assert float(done.stdout) >= 0.4


def test_a_side_that_was_not_run_has_no_figure_and_no_ratio() -> None:
    line = lines([run("streams-operator", "restore", "1 instance", 1.0)])[0]
    assert (line.kafka_streams, line.ratio) == (None, None)


def test_a_build_that_failed_half_way_is_not_taken_for_a_whole_one(tmp_path: Path) -> None:
    target = tmp_path / "libs"

    def fail(folder: Path) -> None:
        (folder / "half.jar").write_bytes(b"")
        raise OSError("no space left")

    def succeed(folder: Path) -> None:
        (folder / "whole.jar").write_bytes(b"jar")

    with pytest.raises(OSError, match="no space"):
        bench_peer_build.whole(target, fail)
    assert not target.exists()
    assert not list(tmp_path.rglob("*.jar"))
    target.mkdir()
    bench_peer_build.whole(target, succeed)
    assert [file.name for file in target.iterdir()] == ["whole.jar"]
    bench_peer_build.whole(target, fail)
    assert [file.name for file in target.iterdir()] == ["whole.jar"]


def stage(name: str, begin: int, end: int | None, run: int = 0, collecting: int = 0) -> bytes:
    metrics = {"internal.metrics.executorRunTime": run, "internal.metrics.jvmGCTime": collecting}
    accumulables = [{"ID": 1, "Name": each, "Value": value} for each, value in metrics.items()]
    accumulables.append({"ID": 2, "Name": "internal.metrics.updatedBlockStatuses", "Value": []})
    info: dict[str, object] = {
        "Stage Name": name,
        "Number of Tasks": 2,
        "Submission Time": begin,
        "Accumulables": accumulables,
    }
    if end is not None:
        info["Completion Time"] = end
    return orjson.dumps({"Event": "SparkListenerStageCompleted", "Stage Info": info})


def test_spark_s_stages_are_added_up_by_name_the_longest_first() -> None:
    events = [
        orjson.dumps({"Event": "SparkListenerTaskEnd"}),
        stage("count at reader.py:3", 0, 500, 250),
        stage("toArrow at /a/b/runner.py:7", 1000, 1500, 750, 250),
        stage("toArrow at /c/runner.py:7", 2000, 2250, 500),
        stage("cancelled at runner.py:7", 2000, None),
    ]
    assert added_up(events) == [
        Stages("toArrow at runner.py:7", 2, 4, 0.75, 1.25, 0.25),
        Stages("count at reader.py:3", 1, 2, 0.5, 0.25, 0.0),
    ]
