"""Window stores of processors: a view over what is committed, their plan, and what a version changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from processor_kit import Read, application, harness
from scripted_processor import Windowing
from state_kit import memory_folder, window_store

from streams_runtime.api import parse_application
from streams_runtime.builder import StreamsBuilder, json
from streams_runtime.inspection import codec_of
from streams_runtime.processors.user_processors.declared_types import ValueCodec, columns_type
from streams_runtime.processors.user_processors.processor_call import Call, CurrentCall
from streams_runtime.processors.user_processors.stores.segmented_overlay import SegmentedOverlay
from streams_runtime.processors.user_processors.stores.stored_forms import StoredForms
from streams_runtime.processors.user_processors.stores.window_store_view import WindowStoreView
from streams_runtime.state.serdes import key_serde
from streams_runtime.state.window_keys import window_key
from streams_runtime.state.window_store import WindowStore
from streams_runtime.topology.changes.compare import changes
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.nodes.source_and_sink_nodes import Format
from streams_runtime.topology.plan import Topology
from streams_runtime.topology.store_specs import StoreSpec
from streams_runtime.topology.store_specs import Windowing as Kept

RETENTION = 100_000
WINDOW = {"size": "10s", "retention": "100s"}


def view_of(written: SegmentedOverlay, current: CurrentCall | None = None) -> WindowStoreView:
    forms = StoredForms("w", "string", key_serde(Format("string")), ValueCodec(columns_type("n BIGINT")))
    return WindowStoreView("w", forms, written, current or CurrentCall(Call(7)))


@pytest.fixture
def store() -> Iterator[WindowStore]:
    with memory_folder() as folder, window_store(folder, RETENTION) as made:
        yield made


class Model:
    """A window store as a mapping: what was put, and the largest start of it."""

    def __init__(self) -> None:
        self.windows: dict[tuple[str, int], int] = {}
        self.latest = -1

    def put(self, key: str, number: int | None, start: int) -> None:
        self.latest = max(self.latest, start)
        if number is None:
            self.windows.pop((key, start), None)
        else:
            self.windows[key, start] = number

    def between(self, start: int, end: int, reverse: bool) -> list[tuple[tuple[str, int], dict[str, int]]]:
        found = [
            (each, {"n": number})
            for each, number in self.windows.items()
            if max(start, self.latest - RETENTION + 1) <= each[1] <= end
        ]
        return sorted(found, key=lambda pair: (pair[0][0].encode(), pair[0][1]), reverse=reverse)


operations = st.tuples(
    st.sampled_from(("put", "put", "delete", "fetch", "from", "all", "commit")),
    st.sampled_from(("a", "ab", "b")),
    st.integers(0, 15).map(lambda each: each * 20_000),
    st.integers(0, 15).map(lambda each: each * 20_000),
    st.booleans(),
)


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(operations, max_size=30))
def test_reads_are_those_of_a_mapping_whose_windows_expire_wherever_batches_end(steps: list[Any]) -> None:
    with memory_folder() as folder, window_store(folder, RETENTION) as store:
        written, model = SegmentedOverlay(store), Model()
        view = view_of(written)
        for number, (operation, key, start, end, reverse) in enumerate(steps):
            match operation:
                case "put":
                    view.put(key, {"n": number}, start)
                    model.put(key, number, start)
                case "delete":
                    view.put(key, None, start)
                    model.put(key, None, start)
                case "fetch":
                    one = [value for (name, _), value in model.between(start, start, False) if name == key]
                    assert view.fetch(key, start) == (one[0] if one else None)
                case "from":
                    found = [(at, value) for (name, at), value in model.between(start, end, reverse) if name == key]
                    assert list(view.fetch(key, start, end, reverse=reverse)) == found
                case "all":
                    assert list(view.fetch_all(start, end, reverse=reverse)) == model.between(start, end, reverse)
                case "commit":
                    store.write(written.take_updates(), None)
                    if reverse:  # the task goes on elsewhere
                        written = SegmentedOverlay(store)
                        view = view_of(written)
        assert list(view.all()) == model.between(0, 2**62, False)


def test_updates_have_the_changelogs_keys_and_the_time_of_the_call(store: WindowStore) -> None:
    written, current = SegmentedOverlay(store), CurrentCall(Call(5))
    view = view_of(written, current)
    view.put("a", {"n": 1}, 10)
    view.put("a", {"n": 2}, 10)
    current.now = Call(9)
    view.put("b", None, 20)
    updates = written.take_updates()
    assert list(zip(updates.keys, updates.values, updates.timestamps, strict=True)) == [
        (window_key(b"a", 10), b'{"n":2}', 5),
        (window_key(b"b", 20), None, 9),
    ]
    assert len(written.take_updates()) == 0


def test_an_iterator_shows_what_was_there_when_it_was_asked_for_and_ends_with_the_call(store: WindowStore) -> None:
    current = CurrentCall(Call(5))
    view = view_of(SegmentedOverlay(store), current)
    view.put("a", {"n": 1}, 10)
    first, second = view.all(), view.fetch("a", 0, 99)
    view.put("a", {"n": 2}, 20)
    assert list(first) == [(("a", 10), {"n": 1})]
    current.now = Call(6)
    with pytest.raises(RuntimeError, match="an iterator of the store 'w' is for the call of process"):
        next(second)


@pytest.mark.parametrize("start", [-1, 2**63, 1.5, True, None])
def test_a_start_that_is_no_time_is_refused(start: Any, store: WindowStore) -> None:
    with pytest.raises(ValueError, match=r"a window of the store 'w' at .*; give milliseconds since 1970"):
        view_of(SegmentedOverlay(store)).put("a", {"n": 1}, start)


def test_keys_and_values_of_other_types_are_refused(store: WindowStore) -> None:
    view = view_of(SegmentedOverlay(store))
    with pytest.raises(TypeError, match="'w'"):
        view.put(5, {"n": 1}, 1)
    with pytest.raises(ValueError, match="a value of the store 'w' is not of its declared type"):
        view.put("a", {"n": "x"}, 1)


def planned(window: dict[str, str] | None = WINDOW) -> Topology:
    return build_topology(parse_application(application("rules:Alerts", window=window)))


def test_the_plan_has_a_window_store_whose_changelog_drops_what_has_expired() -> None:
    (spec,) = (each for each in planned().stores if each.name == "windows")
    expected = StoreSpec("windows", "window", "app-windows-changelog", False, "p", Kept(100_000, 10_000))
    assert (spec, spec.is_queryable) == (expected, True)
    codec = codec_of(planned(), "windows", lambda: pytest.fail("nothing of Spark's is needed"))
    assert codec.window_end is not None
    assert codec.window_end(20_000) == 30_000


@pytest.mark.parametrize(
    ("window", "found"),
    [
        (None, "was a window store and is a key-value store"),
        ({"size": "20s", "retention": "100s"}, "were 10000 ms long and are 20000 ms long"),
        ({"size": "10s", "retention": "200s"}, "was 100000 ms and is 200000 ms"),
    ],
)
def test_other_windows_are_named_by_an_upgrade(window: dict[str, str] | None, found: str) -> None:
    now = application("rules:Alerts", window=window or WINDOW)
    if window is None:
        del now["spec"]["topology"]["steps"][0]["process"]["stores"]["windows"]["window"]
    (change,) = changes(planned(), build_topology(parse_application(now))).items
    assert found in change.what
    assert change.kind == "changed"
    assert change.where.startswith("spec.topology.steps[0].process")


def test_the_same_windows_are_no_change() -> None:
    assert changes(planned(), planned()).items == ()


def test_the_builder_declares_windows_of_a_store() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("a", key="string", value=json("op STRING, n BIGINT"), name="a")
    stores: Any = {"seen": ("STRING", "n BIGINT"), "windows": ("STRING", "n BIGINT", WINDOW)}
    stream.process(Windowing, "seen STRING", name="p", key="STRING", stores=stores).to("out")
    document = application("scripted_processor:Windowing", window=WINDOW)
    assert builder.build() == parse_application(document).spec.topology


def test_windows_go_on_where_they_were_when_the_task_moves_or_fails() -> None:
    ops = [("put", 0), ("put", 1), ("put", 12), ("all", 13), ("put", 45), ("all", 46), ("get", 47), ("range", 60)]
    records = [Read("a", 0, at, time, "a", (op, 0)) for at, (op, time) in enumerate(ops)]
    told = []
    for moves in (False, True):
        with (
            memory_folder() as folder,
            harness(folder, "scripted_processor:Windowing", window={"size": "10ms", "retention": "30ms"}) as made,
        ):
            for record in records:
                if moves:
                    made.apply([record])  # and nothing of it is committed
                    made.run([record])
                    made.restart()
            if not moves:
                made.run(records)
            told.append(made.told())
    assert told[0] == told[1]
    assert [seen for key, seen, _, _ in told[0] if key == "a"][3] == "a@10=0"
