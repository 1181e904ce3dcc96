"""One aggregate of the topic `in`, by key or in windows: declared, run here, and asked of Kafka Streams."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from case_marks import mark
from hypothesis import strategies as st
from oracle_driver import KafkaStreams
from pipeline_bench import Bench, open_tasks
from pipeline_kit import Pipeline, Record, source
from shared_cases import shared

from streams_runtime.state.store import KeyValueStore, unstamp
from streams_runtime.state.window_keys import LATEST, split_session_key, split_window_key
from streams_runtime.state.window_store import SessionStore, WindowStore

Given = tuple[str | None, Any, int]
"""Key, number (or list of numbers) and time (ms) of a record; without a number it has no value."""
Case = tuple[list[Given], list[int]]
"""Records, and before which of them a batch begins."""
Rows = dict[Any, tuple[Any, int]]
"""Value and time by key."""
Found = tuple[Rows, Rows]
"""The sink's last record of each key, and the store's contents, whose keys have a window's start beside them."""

WINDOWS: dict[str, dict[str, int] | None] = {
    "by key": None,
    "tumbling": {"size": 10_000, "advance": 10_000, "grace": 5_000, "retention": 15_000},
    "tumbling without grace": {"size": 7_000, "advance": 7_000, "grace": 0, "retention": 3_600_000},
    "hopping": {"size": 10_000, "advance": 3_000, "grace": 2_000, "retention": 3_600_000},
    "sessions": {"gap": 4_000, "grace": 5_000, "retention": 3_600_000},
    "sessions kept shortly": {"gap": 4_000, "grace": 3_000, "retention": 7_000},
    "sessions without grace": {"gap": 3, "grace": 0, "retention": 3},
    "sliding": {"difference": 5_000, "grace": 4_000, "retention": 3_600_000},
    "sliding without grace": {"difference": 4, "grace": 0, "retention": 8},
    "sliding kept shortly": {"difference": 6_000, "grace": 3_000, "retention": 15_000},
    "sliding close by": {"difference": 3, "grace": 5, "retention": 11},
    "hopping by one": {"size": 4, "advance": 1, "grace": 3, "retention": 400_000},
    "tumbling with an offset": {"size": 9, "advance": 9, "grace": 4, "retention": 400_000, "offset": 2},
    "hopping with an offset": {"size": 7, "advance": 3, "grace": 2, "retention": 400_000, "offset": 1},
}
SUMS = {"total": "sum(coalesce(a, 0))", "n": "count(*)"}
TRAIL_ADDED = (
    "named_struct('trail', concat(state.trail, ',', coalesce(cast(row.a as string), 'null')), 'n', state.n + 1)"
)
TRAIL_REDUCED = f"reduce(named_struct('trail', '', 'n', cast(0 as bigint)), (state, row) -> {TRAIL_ADDED}"
"""What the class Trail of custom_classes.py does; a bracket closes it, or TRAIL_JOINED where there are sessions."""
TRAIL_JOINED = (
    ", (one, other) -> named_struct('trail', concat('[', one.trail, '|', other.trail, ']'), 'n', one.n + other.n))"
)
records = st.lists(
    st.tuples(st.sampled_from(["a", "b", None]), st.one_of(st.none(), st.integers(-9, 9)), st.integers(0, 60_000)),
    min_size=1,
    max_size=30,
)
close_records = st.lists(
    st.tuples(st.sampled_from(["a", "b"]), st.integers(-9, 9), st.integers(0, 30)), min_size=1, max_size=30
)
cuts = st.lists(st.integers(0, 30), max_size=4)
cases = shared(st.tuples(records | close_records, cuts))


def aggregated(
    windows: dict[str, int] | None, aggregate: Mapping[str, str] = SUMS, final: bool = False
) -> tuple[Any, Any, Any]:
    """Sources, steps and sinks of an aggregate of `in` by such windows, with the store `store`, that goes to `out`."""
    step: dict[str, Any] = {"name": "step", "from": "in", "aggregate": dict(aggregate), "store": "store"}
    if windows is not None and "gap" in windows:
        lengths = {name: f"{windows[name]}ms" for name in ("gap", "grace")}
        step["window"] = {"session": lengths, "retention": f"{windows['retention']}ms"}
    elif windows is not None and "difference" in windows:
        lengths = {"timeDifference": f"{windows['difference']}ms", "grace": f"{windows['grace']}ms"}
        step["window"] = {"sliding": lengths, "retention": f"{windows['retention']}ms"}
    elif windows is not None:
        lengths = {name: f"{length}ms" for name, length in windows.items()}
        retention = lengths.pop("retention")
        if windows["size"] == windows["advance"]:
            del lengths["advance"]
        step["window"] = {"hopping" if "advance" in lengths else "tumbling": lengths, "retention": retention}
    if final:
        step["suppress"] = "untilWindowCloses"
    return [source(schema="a BIGINT")], [step], [{"from": "step", "topic": "out"}]


def ours(pipeline: Pipeline, cases: Sequence[Case], once: bool = False) -> tuple[list[Found], int]:
    """What each case comes to, and how many records of all were dropped. `once`: no key may come twice."""
    rows = [
        (
            [
                Record(key and key.encode(), _json(amount), offset=number, time=time)
                for number, (key, amount, time) in enumerate(given)
            ],
            cuts,
        )
        for given, cuts in cases
    ]
    with ExitStack() as stack:
        bench = Bench(pipeline, open_tasks(stack, pipeline.topology, len(cases)))
        found = []
        for number, sent in enumerate(bench.written_each(rows)):
            last = {key: (value, time) for key, value, time in sent}
            assert not once or len(last) == len(sent), "a window is passed on once"
            found.append(({key: row for key, row in last.items() if row[0] is not None}, held(bench, number)))
        return found, bench.counters.records_dropped + bench.counters.late_records


def held(bench: Bench, case: int) -> Rows:
    """The contents of a case's store by key and, of windows, start: value and time."""
    store, begin = bench.tasks[case].stores["store"], len(mark(case))
    if isinstance(store, KeyValueStore):
        keys = [key for key, _ in store.scan(None, None)]
        names: list[tuple[str, int | None]] = [(key[begin:].decode(), None) for key in keys]
    elif isinstance(store, SessionStore):
        sessions = [(split_session_key(key), value) for key, value in store.fetch(None, None, 0, LATEST)]
        return {(key[begin:].decode(), start): (json.loads(value), end) for (key, start, end), value in sessions}
    else:
        assert isinstance(store, WindowStore)
        keys = [key for key, _ in store.fetch(None, None, 0, LATEST)]
        names = [(name[begin:].decode(), start) for name, start, _ in map(split_window_key, keys)]
    stored = [unstamp(each) for each in store.get_stored(keys) if each is not None]
    return {name: (json.loads(value), time) for name, (time, value) in zip(names, stored, strict=True)}


def _json(amount: int | list[int | None] | None) -> bytes | None:
    field = "items" if isinstance(amount, list) else "a"
    return None if amount is None else json.dumps({field: amount}).encode()


def theirs(
    driver: KafkaStreams, windows: dict[str, int] | None, cases: Sequence[Case], **more: bool
) -> tuple[list[Found], int]:
    """The same by Kafka Streams; `more` is what the driver is told beside the windows (Topologies.java)."""
    topology: dict[str, Any] = {} if windows is None else {"windows": windows}
    found, dropped = [], 0
    for given, _ in cases:
        asked = [
            {"topic": "in", "key": key, "value": data and data.decode(), "time": time}
            for key, data, time in ((key, _json(amount), time) for key, amount, time in given)
        ]
        answer = driver.answer(topology | more, asked)
        # What came and went between two batches of ours is a tombstone there, and nothing here.
        last = {key: (value, time) for key, value, time in answer.sinks["out"]}
        found.append(({key: row for key, row in last.items() if row[0] is not None}, dict(answer.store)))
        dropped += answer.dropped
    return found, dropped
