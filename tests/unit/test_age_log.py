"""Stores whose records are of long ago: which changelogs don't keep those, and the warning of it."""

from __future__ import annotations

from typing import Any

import pytest
from refused_applications import ORDERS, USERS, application, step, total, versioned

from streams_runtime.api import parse_application
from streams_runtime.processing.age_log import AgeLog
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.partition_counts import ChangelogSpan, changelog_spans

HOUR = 3_600_000
DAY = 24 * HOUR
TODAY = 1_700_000_000_000
SPANS = {"app-w-changelog": ChangelogSpan("w", "w-changelog", "retention.ms", 2 * DAY)}
WINDOWED = step(name="w", window={"tumbling": {"size": "1h"}}, aggregate={"n": "count(*)"}, store="w")


def spans(*steps: Any, **fields: Any) -> dict[str, tuple[str, str, str, int]]:
    given = parse_application(application(*steps, **fields))
    found = changelog_spans(build_topology(given), given.spec)
    return {name: (each.store, each.topic, each.setting, each.ms) for name, each in found.items()}


def test_windows_and_histories_have_a_span_and_other_stores_none() -> None:
    history = step(name="t", toTable={"store": "t", "historyRetention": "1h"})
    plain = step(name="p", toTable={"store": "p"})
    assert spans(WINDOWED, history, plain, sources=[ORDERS, versioned("1h")]) == {
        "shop-w-changelog": ("w", "w-changelog", "retention.ms", DAY + HOUR),
        "shop-t-changelog": ("t", "t-changelog", "min.compaction.lag.ms", DAY + HOUR),
    }
    assert spans(total(), sources=[ORDERS, USERS]) == {}


@pytest.mark.parametrize(
    ("internal", "span"),
    [
        ({"overrides": {"w-changelog": {"retention.ms": 7 * DAY}}}, 7 * DAY),
        ({"config": {"retention.ms": 3 * DAY}}, 3 * DAY),
        ({"config": {"retention.ms": 3 * DAY}, "overrides": {"w-changelog": {"retention.ms": 5}}}, 5),
        ({"overrides": {"w-changelog": {"retention.ms": -1}}}, None),
        ({"overrides": {"w-changelog": {"cleanup.policy": "compact"}}}, None),
    ],
)
def test_what_is_declared_of_the_topic_decides(internal: dict[str, Any], span: int | None) -> None:
    found = spans(WINDOWED, internalTopics=internal)
    assert found == ({} if span is None else {"shop-w-changelog": ("w", "w-changelog", "retention.ms", span)})


def test_a_store_of_old_records_warns_once_an_hour(caplog: pytest.LogCaptureFixture) -> None:
    seconds = 0.0
    log = AgeLog(SPANS, lambda: TODAY, lambda: seconds)
    old = TODAY - 2 * DAY - 1
    log.take("app-w-changelog", [])
    log.take("app-w-changelog", [old - 5, old + 1])  # as old as may be
    log.take("app-t-changelog", [0])
    assert not caplog.records
    log.take("app-w-changelog", [old, old - DAY])
    log.take("app-w-changelog", [old])
    seconds = 3599.0
    log.take("app-w-changelog", [old])
    (first,) = caplog.records
    assert first.levelname == "WARNING"
    assert first.getMessage() == (
        "store w takes records of 2023-11-12 22:13:19 UTC, and its changelog app-w-changelog is declared to keep them"
        " for 2d (retention.ms=172800000) by the brokers' clock: a restored store may lack them. Give that topic"
        " a longer retention.ms (kafka-configs.sh --alter), and declare it, for instance spec.internalTopics.overrides:"
        " {w-changelog: {retention.ms: 315360000000}}"
    )
    seconds = 3600.0
    log.take("app-w-changelog", [-(2**62)])  # no record has such a time, and a warning breaks nothing
    assert len(caplog.records) == 2
