"""Where inputs are read from: where the group is, and else where offsetReset says that their sources begin."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from refused_applications import ORDERS, USERS, application, step

from streams_runtime.api import parse_application
from streams_runtime.api.spec.spec_values import OffsetReset
from streams_runtime.errors import BrokerNotAvailableException, StreamsException
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.tasks.positions import Beginnings, Positions, positions_of
from streams_runtime.topics.external_topics import offset_resets

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
NOW = 1_000_000  # ms since 1970
RESETS = st.sampled_from(["earliest", "latest"]) | st.integers(0, 2 * NOW).map(lambda ms: timedelta(milliseconds=ms))


@dataclass
class Log:
    """The times of a partition's records, those before `start` deleted; from `stable` on transactions are open."""

    times: list[int]
    start: int = 0
    stable: int | None = None

    @property
    def end(self) -> int:
        return len(self.times)

    def begins(self, reset: OffsetReset, read_committed: bool) -> int:
        """What offsetReset promises, record by record."""
        offset = self.start
        end = self.end if self.stable is None or not read_committed else self.stable
        while reset != "earliest" and offset < end:
            if isinstance(reset, timedelta) and self.times[offset] >= NOW - reset // timedelta(milliseconds=1):
                break
            offset += 1
        return offset


@dataclass
class Brokers:
    """Logs, and what the group has committed."""

    logs: dict[TopicPartition, Log]
    committed: dict[TopicPartition, int] = field(default_factory=dict)
    silent: set[TopicPartition] = field(default_factory=set)

    def start_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return {each: self.logs[each].start for each in partitions if each not in self.silent}

    def end_offsets(
        self, partitions: Collection[TopicPartition], read_committed: bool = False
    ) -> dict[TopicPartition, int]:
        logs = {each: self.logs[each] for each in partitions if each not in self.silent}
        stable = {each: log.stable for each, log in logs.items() if read_committed and log.stable is not None}
        return {each: stable.get(each, log.end) for each, log in logs.items()}

    def offsets_at(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """As brokers find them, of transactions that are open too."""

        def first(log: Log, time: int) -> int | None:
            return next((at for at in range(log.start, log.end) if log.times[at] >= time), None)

        return {each: first(self.logs[each], time) for each, time in times.items()}

    def committed_offsets(self, group: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        assert group == "app"
        return {each: at for each, at in self.committed.items() if each in partitions}

    def topic_ids(self, names: Collection[str]) -> dict[str, str]:
        return {name: f"{name}-id" for name in names}

    def positions(self, resets: Mapping[str, OffsetReset], read_committed: bool = False) -> Positions:
        return positions_of(self, "app", list(self.logs), Beginnings(resets, read_committed, lambda: NOW / 1000))


@st.composite
def logs(draw: st.DrawFn) -> Log:
    times = draw(st.lists(st.integers(0, NOW + 10), max_size=12))
    start = draw(st.integers(0, len(times)))
    return Log(times, start, draw(st.none() | st.integers(start, len(times))))


@settings(max_examples=examples(200))
@given(st.lists(logs(), min_size=1, max_size=3), RESETS, st.booleans())
def test_partitions_without_a_committed_offset_begin_where_offset_reset_says(
    found: list[Log], reset: OffsetReset, read_committed: bool
):
    brokers = Brokers({TopicPartition("a", number): log for number, log in enumerate(found)})
    positions = brokers.positions({"a": reset}, read_committed)
    wanted = {each: log.begins(reset, read_committed) for each, log in brokers.logs.items()}
    assert positions.next == wanted
    assert positions.begun == wanted, "they have to be committed before a record is read"


@settings(max_examples=examples(200))
@given(logs(), RESETS | st.just("none"), st.data())
def test_a_committed_offset_that_the_log_has_counts_whatever_offset_reset_says(
    log: Log, reset: OffsetReset, data: st.DataObject
):
    at = data.draw(st.integers(log.start, log.end))
    positions = Brokers({A0: log}, {A0: at}).positions({"a": reset})
    assert positions == Positions({A0: at}, {})


@settings(max_examples=examples(200))
@given(logs(), RESETS, st.integers(0, 30))
def test_a_committed_offset_that_the_log_does_not_have_is_as_none(log: Log, reset: OffsetReset, beyond: int):
    out = log.start - 1 - beyond if beyond % 2 and log.start > beyond else log.end + 1 + beyond
    positions = Brokers({A0: log}, {A0: out}).positions({"a": reset})
    assert positions.next == {A0: log.begins(reset, False)}


def test_a_duration_begins_before_an_open_transaction_behind_which_its_record_lies():
    logs = {A0: Log([1, 1, NOW, NOW], stable=1), A1: Log([1, NOW, 1], stable=2), B0: Log([1, 1], stable=1)}
    minute = timedelta(minutes=1)
    positions = Brokers(logs).positions({"a": minute, "b": minute}, read_committed=True)
    assert positions.next == {A0: 1, A1: 1, B0: 1}


def test_topics_without_an_offset_reset_begin_at_their_beginning_and_need_no_commit():
    logs = {A0: Log([1] * 5, 2), A1: Log([1] * 5, 2), B0: Log([1] * 5)}
    positions = Brokers(logs, {A1: 1}).positions({"b": "latest"})
    assert positions == Positions({A0: 2, A1: 2, B0: 5}, {B0: 5})


def test_none_fails_by_name_with_what_to_do():
    brokers = Brokers({A0: Log([1] * 5), A1: Log([1] * 5), B0: Log([1] * 5, 3)}, {A1: 2, B0: 1})
    with pytest.raises(StreamsException) as failure:
        brokers.positions({"a": "none", "b": "none"})
    assert str(failure.value) == (
        "No valid committed offset found for input [a,b] and no valid reset policy configured, for a-0, b-0:"
        " offsetReset is none. Set the group's offsets (streamsapp reset FILE --to …), or let the source begin at"
        " earliest, latest or a duration"
    )


def test_none_fails_where_the_log_ends_before_the_committed_offset():
    with pytest.raises(StreamsException, match="for a-0: offsetReset is none"):
        Brokers({A0: Log([1] * 5)}, {A0: 6}).positions({"a": "none"})


@pytest.mark.parametrize("reset", ["latest", timedelta(hours=1)])
def test_nothing_is_chosen_where_brokers_do_not_say_the_end(reset: OffsetReset):
    brokers = Brokers({A0: Log([1] * 5), A1: Log([1])}, silent={A0})
    with pytest.raises(BrokerNotAvailableException, match="where a-0 begin and end"):
        brokers.positions({"a": reset})


def test_an_end_that_is_not_known_leaves_a_committed_offset_as_it_is():
    assert Brokers({A0: Log([1])}, {A0: 9}, {A0}).positions({"a": "none"}) == Positions({A0: 9}, {})


def test_what_is_chosen_is_logged(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "streams_runtime.tasks")
    Brokers({A0: Log([1] * 5, 3), A1: Log([NOW] * 4)}, {A0: 1}).positions({"a": timedelta(minutes=15)})
    (deleted, new) = caplog.records
    assert (deleted.levelname, new.levelname) == ("WARNING", "INFO")
    assert deleted.getMessage() == (
        "a-0 does not have offset 1, which the group has committed: records were deleted, its log was truncated, or"
        " the topic made anew. It is read from offset 5 on (offsetReset 15m)"
    )
    assert new.getMessage() == "a-1 has no committed offset: it begins at offset 0 (offsetReset 15m)"


def _resets(sources: Collection[Any], **kafka: Any) -> Mapping[str, OffsetReset]:
    document = application(step(keyBy="user"), sources=sources, kafka=kafka)
    return offset_resets(parse_application(document).spec)


def test_a_source_goes_before_the_application_and_tables_and_repartition_topics_are_left_out():
    clicks = {"name": "clicks", "topic": "clicks-1", "value": {"format": "string"}}
    countries = {**USERS, "name": "countries", "topic": "countries", "table": {"store": "c", "global": True}}
    sources = [ORDERS, USERS, countries, clicks | {"offsetReset": "1h"}]
    assert _resets(sources, offsetReset="none") == {"orders": "none", "clicks-1": timedelta(hours=1)}
    assert _resets([ORDERS, USERS, clicks | {"offsetReset": "earliest"}], offsetReset="latest") == {"orders": "latest"}
    assert _resets([ORDERS, USERS]) == {}
