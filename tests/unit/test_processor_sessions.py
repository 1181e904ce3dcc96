"""Session stores of processors: a view over what is committed, their plan, and what a version changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from processor_kit import Read, application, harness
from scripted_processor import Sessioning
from state_kit import memory_folder, session_store

from streams_runtime.api import parse_application
from streams_runtime.builder import StreamsBuilder, json
from streams_runtime.errors import InvalidApplicationException
from streams_runtime.inspection import codec_of
from streams_runtime.processors.user_processors.declared_types import ValueCodec, columns_type
from streams_runtime.processors.user_processors.processor_call import Call, CurrentCall
from streams_runtime.processors.user_processors.stores.segmented_overlay import SegmentedOverlay
from streams_runtime.processors.user_processors.stores.session_store_view import SessionKey, SessionStoreView
from streams_runtime.processors.user_processors.stores.stored_forms import StoredForms
from streams_runtime.state.serdes import key_serde
from streams_runtime.state.window_keys import session_key
from streams_runtime.state.window_store import SessionStore
from streams_runtime.topology.changes.compare import changes
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.nodes.source_and_sink_nodes import Format
from streams_runtime.topology.plan import Topology
from streams_runtime.topology.store_specs import StoreSpec, Windowing

RETENTION = 100_000
SESSION = {"retention": "100s"}
KEYS = ("a", "ab", "b")


def view_of(written: SegmentedOverlay, current: CurrentCall | None = None) -> SessionStoreView:
    forms = StoredForms("s", "string", key_serde(Format("string")), ValueCodec(columns_type("n BIGINT")))
    return SessionStoreView("s", forms, written, current or CurrentCall(Call(7)))


@pytest.fixture
def store() -> Iterator[SessionStore]:
    with memory_folder() as folder, session_store(folder, RETENTION) as made:
        yield made


class Model:
    """A session store as a mapping: what was put, and the largest end of it."""

    def __init__(self) -> None:
        self.sessions: dict[SessionKey, int] = {}
        self.latest = -1

    def put(self, session: SessionKey, number: int | None) -> None:
        self.latest = max(self.latest, session.end)
        if number is None:
            self.sessions.pop(session, None)
        else:
            self.sessions[session] = number

    def found(
        self, first: str | None, last: str | None, earliest: int, latest: int, reverse: bool
    ) -> list[tuple[SessionKey, dict[str, int]]]:
        found = [
            (each, {"n": number})
            for each, number in self.sessions.items()
            if each.end > self.latest - RETENTION
            and (first is None or first <= each.key)
            and (last is None or each.key <= last)
            and each.end >= earliest
            and each.start <= latest
        ]
        return sorted(found, key=lambda pair: (pair[0].key, pair[0].end, pair[0].start), reverse=reverse)


times = st.integers(0, 15).map(lambda each: each * 20_000)
operations = st.tuples(
    st.sampled_from(
        ("put", "put", "merge", "remove", "none", "one", "find", "range", "fetch", "all", "commit", "move")
    ),
    st.sampled_from(KEYS),
    times,
    times,
    st.one_of(st.none(), st.sampled_from(KEYS)),
    st.booleans(),
)


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(operations, max_size=30))
def test_reads_are_those_of_a_mapping_whose_sessions_expire_wherever_batches_end(steps: list[Any]) -> None:
    with memory_folder() as folder, session_store(folder, RETENTION) as store:
        written, model = SegmentedOverlay(store), Model()
        view = view_of(written)
        for number, (operation, key, one, other, to, reverse) in enumerate(steps):
            session = SessionKey(key, min(one, other), max(one, other))
            match operation:
                case "put":
                    view.put(key, {"n": number}, session.start, session.end)
                    model.put(session, number)
                case "merge":
                    _merged(view, model, session, number)
                case "remove":
                    view.remove(*session)
                    model.put(session, None)
                case "none":
                    view.put(key, None, session.start, session.end)
                    model.put(session, None)
                case "one":
                    same = [value for each, value in model.found(key, key, 0, 2**62, False) if each == session]
                    assert view.fetch_session(*session) == (same[0] if same else None)
                case "find":
                    found = list(view.find_sessions(key, one, other, reverse=reverse))
                    assert found == model.found(key, key, one, other, reverse)
                case "range":
                    found = list(view.find_sessions(key, to, one, other, reverse=reverse))
                    assert found == model.found(key, to, one, other, reverse)
                case "fetch":
                    assert list(view.fetch(key, reverse=reverse)) == model.found(key, key, 0, 2**62, reverse)
                    assert list(view.fetch(to, key, reverse=reverse)) == model.found(to, key, 0, 2**62, reverse)
                case "all":
                    assert list(view.all(reverse=reverse)) == model.found(None, None, 0, 2**62, reverse)
                case _:
                    store.write(written.take_updates(), None)
                    if operation == "move":  # the task goes on elsewhere
                        written = SegmentedOverlay(store)
                        view = view_of(written)
        assert list(view.all()) == model.found(None, None, 0, 2**62, False)


def _merged(view: SessionStoreView, model: Model, session: SessionKey, number: int) -> None:
    """Sessions that touch one another become one, as processors do it."""
    key, start, end = session
    for each, _ in view.find_sessions(key, session.start, session.end):
        view.remove(*each)
        model.put(each, None)
        start, end = min(start, each.start), max(end, each.end)
    view.put(key, {"n": number}, start, end)
    model.put(SessionKey(key, start, end), number)


@pytest.mark.parametrize("removed", [False, True])
def test_the_largest_end_that_was_put_or_removed_is_the_stores_time(store: SessionStore, removed: bool) -> None:
    view = view_of(SegmentedOverlay(store))
    for end in (50_000, 100_000, 100_001):
        view.put("a", {"n": end}, 0, end)
    if removed:
        view.remove("b", 0, 200_000)
    else:
        view.put("b", {"n": 0}, 0, 200_000)
    assert [session.end for session, _ in view.fetch("a")] == [100_001]
    assert view.fetch_session("a", 0, 100_000) is None
    view.put("a", {"n": 1}, 0, 50_000)  # it is gone at once
    assert view.fetch_session("a", 0, 50_000) is None
    assert view.fetch_session("a", 0, 100_001) == {"n": 100_001}


def test_updates_have_the_changelogs_keys_and_the_time_of_the_call(store: SessionStore) -> None:
    written, current = SegmentedOverlay(store), CurrentCall(Call(5))
    view = view_of(written, current)
    view.put("a", {"n": 1}, 10, 12)
    view.put("a", {"n": 2}, 10, 12)
    current.now = Call(9)
    view.remove("b", 20, 20)
    updates = written.take_updates()
    assert list(zip(updates.keys, updates.values, updates.timestamps, strict=True)) == [
        (session_key(b"a", 10, 12), b'{"n":2}', 5),
        (session_key(b"b", 20, 20), None, 9),
    ]
    assert len(written.take_updates()) == 0


def test_an_iterator_shows_what_was_there_when_it_was_asked_for_and_ends_with_the_call(store: SessionStore) -> None:
    current = CurrentCall(Call(5))
    view = view_of(SegmentedOverlay(store), current)
    view.put("a", {"n": 1}, 10, 12)
    first, second = view.all(), view.fetch("a")
    view.put("a", {"n": 2}, 20, 20)
    assert list(first) == [(SessionKey("a", 10, 12), {"n": 1})]
    current.now = Call(6)
    with pytest.raises(RuntimeError, match="an iterator of the store 's' is for the call of process"):
        next(second)


@pytest.mark.parametrize("time", [-1, 2**63, 1.5, True, None])
def test_a_time_that_is_none_is_refused(time: Any, store: SessionStore) -> None:
    view = view_of(SegmentedOverlay(store))
    for start, end in ((time, 2**62), (0, time)):
        with pytest.raises(ValueError, match=r"a session of the store 's' at .*; give milliseconds since 1970"):
            view.put("a", {"n": 1}, start, end)
        with pytest.raises(ValueError, match="a session of the store 's' at"):
            view.fetch_session("a", start, end)


def test_a_session_that_ends_before_it_starts_is_refused(store: SessionStore) -> None:
    with pytest.raises(ValueError, match="a session of the store 's' from 2 to 1; give its start first"):
        view_of(SegmentedOverlay(store)).remove("a", 2, 1)


def test_what_is_asked_for_may_have_any_times_in_ms_and_no_others(store: SessionStore) -> None:
    view = view_of(SegmentedOverlay(store))
    view.put("a", {"n": 1}, 0, 5)
    assert len(list(view.find_sessions("a", -5, 2**70))) == 1
    assert list(view.find_sessions("a", 0, -1)) == []
    assert list(view.find_sessions("a", 2**70, 2**71)) == []
    for time in (1.5, "1", None, True):
        with pytest.raises(TypeError, match=r"sessions of the store 's' by the time .*; give milliseconds"):
            view.find_sessions("a", time, 5)  # type: ignore[call-overload]


def test_keys_and_values_of_other_types_and_numbers_of_arguments_are_refused(store: SessionStore) -> None:
    view: Any = view_of(SegmentedOverlay(store))
    for ask in (
        lambda: view.put(5, {"n": 1}, 1, 1),
        lambda: view.fetch(None),
        lambda: view.fetch("a", 5),
        lambda: view.find_sessions(None, 0, 1),
    ):
        with pytest.raises(TypeError, match="'s'"):
            ask()
    with pytest.raises(ValueError, match="a value of the store 's' is not of its declared type"):
        view.put("a", {"n": "x"}, 1, 1)
    for ask in (view.fetch, lambda: view.fetch("a", "b", "c"), lambda: view.find_sessions("a", 1)):
        with pytest.raises(TypeError, match="given; one"):
            ask()


def planned(**more: Any) -> Topology:
    return build_topology(parse_application(application("rules:Alerts", **{"session": SESSION, **more})))


def test_the_plan_has_a_session_store_whose_changelog_drops_what_has_expired() -> None:
    (spec,) = (each for each in planned().stores if each.name == "sessions")
    expected = StoreSpec("sessions", "session", "app-sessions-changelog", False, "p", Windowing(100_000))
    assert (spec, spec.is_queryable) == (expected, True)
    codec = codec_of(planned(), "sessions", lambda: pytest.fail("nothing of Spark's is needed"))
    assert codec.window_end is None
    assert codec.decode_value(b'{"n":1}') == {"n": 1}


@pytest.mark.parametrize(
    ("kept", "found"),
    [
        ({}, "was a session store and is a key-value store"),
        ({"window": {"size": "10s", "retention": "100s"}}, "was a session store and is a window store"),
        ({"session": {"retention": "200s"}}, "was 100000 ms and is 200000 ms"),
    ],
)
def test_other_sessions_are_named_by_an_upgrade(kept: dict[str, Any], found: str) -> None:
    now = application("rules:Alerts", session=SESSION)
    stores = now["spec"]["topology"]["steps"][0]["process"]["stores"]
    stores["sessions"] = {"key": "STRING", "value": "n BIGINT", **kept}
    (change,) = changes(planned(), build_topology(parse_application(now))).items
    assert found in change.what
    assert change.kind == "changed"
    where = "spec.topology.steps[0].process.stores.sessions"
    assert change.where == (f"{where}.session.retention" if "session" in kept else where)


def test_the_store_of_a_session_aggregate_is_no_store_of_a_processor() -> None:
    now = application("rules:Alerts", session=SESSION)
    was = {**now, "spec": {"topology": dict(now["spec"]["topology"])}}
    aggregate = {"aggregate": {"n": "count(*)"}, "store": "sessions", "window": {"session": {"gap": "1m"}}}
    was["spec"]["topology"]["steps"] = [{"name": "p", "from": "a", **aggregate}]
    del was["spec"]["topology"]["sinks"]
    before = build_topology(parse_application(was))
    found = [each.what for each in changes(before, planned()).items if each.kind == "changed"]
    assert found == ["the store sessions was that of p and is that of p"]


def test_the_same_sessions_are_no_change() -> None:
    assert changes(planned(), planned()).items == ()


def test_the_builder_declares_sessions_of_a_store() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("a", key="string", value=json("op STRING, n BIGINT"), name="a")
    stores: Any = {"seen": ("STRING", "n BIGINT"), "sessions": ("STRING", "n BIGINT", {"session": SESSION})}
    stream.process(Sessioning, "seen STRING", name="p", key="STRING", stores=stores).to("out")
    document = application("scripted_processor:Sessioning", session=SESSION)
    assert builder.build() == parse_application(document).spec.topology


@pytest.mark.parametrize("kept", [{}, {"retention": "1h"}, {"session": SESSION, "size": "1m", "retention": "1h"}])
def test_the_builder_takes_no_windows_for_sessions(kept: Any) -> None:
    builder = StreamsBuilder()
    stream = builder.stream("a", key="string", value=json("op STRING, n BIGINT"), name="a")
    stream.process(Sessioning, "seen STRING", name="p", stores={"s": ("STRING", "n BIGINT", kept)}).to("out")
    with pytest.raises(InvalidApplicationException):
        builder.build()


ops = st.sampled_from(("put", "absent", "absent", "delete", "range", "from", "all", "clear", "get"))
records = st.lists(
    st.tuples(ops, st.sampled_from((*KEYS, None)), st.integers(0, 3), st.integers(0, 70), st.booleans()), max_size=20
)


@settings(max_examples=examples(60), deadline=None)
@given(records)
def test_sessions_go_on_where_they_were_when_the_task_moves_or_fails(given: list[Any]) -> None:
    reads = [Read("a", 0, at, time, key, (op, n)) for at, (op, key, n, time, _) in enumerate(given)]
    cuts = [each[4] for each in given]
    told = []
    for moves in (False, True):
        with (
            memory_folder() as folder,
            harness(folder, "scripted_processor:Sessioning", session={"retention": "30ms"}) as made,
        ):
            batch: list[Read] = []
            for record, cut in zip(reads, cuts, strict=True):
                batch.append(record)
                if moves and cut:
                    made.apply(batch)  # and nothing of it is committed
                    made.run(batch)
                    made.restart()
                    batch = []
            if batch:
                made.run(batch)
            told.append(made.told())
    assert told[0] == told[1]


def test_a_record_of_which_nothing_is_kept_leaves_the_sessions_as_they_were() -> None:
    # The first sweep is due with the first record, and the next one at 7.
    reads = [Read("a", 0, at, time, "a", (op, 1)) for at, (op, time) in enumerate((("get", 1), ("absent", 2)))]
    lost = Read("a", 0, 2, 3, "a", ("absent", 2))
    with (
        memory_folder() as folder,
        harness(folder, "scripted_processor:Sessioning", session={"retention": "30ms"}) as made,
    ):
        made.run(reads)
        for _ in range(2):
            made.apply([lost])
        made.run([Read("a", 0, 2, 4, "a", ("from", 0))])
        assert made.told()[-1][1] == "a@2-2=1"
