"""Kafka Streams' own tests, restated: CONFORMANCE.md has every name once, and the tests that it names are there."""

from __future__ import annotations

import ast
import functools
import re
from collections import Counter
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

STATES = """
testShouldTransitToNotRunningIfCloseRightAfterCreated testStateThreadClose testStateGlobalThreadClose
testCloseIsIdempotent testCannotStartOnceClosed shouldThrowExceptionSettingStateListenerNotInCreateState
shouldNotAddThreadWhenError shouldThrowOnCleanupWhileRunning shouldChangeStateInRebalanceListener
shouldShutdownClient shouldReplaceSingleThread shouldShutdownApplication
"""
QUERIES = """
shouldNotGetStoreWhenWhenNotRunningOrRebalancing shouldThrowUnknownStateStoreExceptionWhenStoreNotExist
shouldThrowInvalidStoreExceptionIfNotAllStoresAvailable shouldThrowInvalidStoreExceptionIfKVStoreClosed
shouldThrowInvalidStoreExceptionIfNoPartitionFound shouldNotMakeStoreAvailableUntilAllStoresAvailable
shouldBeAbleQueryStandbyStateDuringRebalance shouldAllowToQueryAfterThreadDied
shouldQueryOnlyActivePartitionStoresByDefault
"""
TOPICS = """
shouldReportMissingTopics shouldReportMisconfigurationsOfPartitionCount
shouldReportMisconfigurationsOfCleanupPolicyForWindowedChangelogTopics
shouldCleanUpWhenUnexpectedExceptionIsThrownDuringSetup shouldThrowWhenPartitionCountUnknown
shouldSetRepartitionTopicPartitionCountFromUpstreamInternalRepartitionSourceTopic
shouldCompactAndDeleteTopicsForWindowStoreChangelogs shouldThrowWhenInternalTopicDeletedBetweenRestartsInManualMode
"""
RESTORATION = """
shouldTransitState shouldCheckCompletionIfPositionLargerThanEndOffset
shouldRestoreFromPositionAndCheckForCompletion
shouldRecycleStateFromStandbyTaskPromotedToActiveTaskAndNotRestore
shouldOnlyRestoreStandbyChangelogInUpdateStandbyState shouldRestoreToLimitInStandbyState
shouldWipeOutStandbyStateDirectoryIfCheckpointIsMissing shouldSkipInvalidOffsetsDuringRead
"""
NAMES = " ".join((STATES, QUERIES, TOPICS, RESTORATION)).split()

_ROW = re.compile(r"\| `(?P<name>(?:should|test)[A-Z]\w*)` \| (?P<tests>.+) \|")
_TEST = re.compile(r"`(\w+/test_\w+\.py)::(test_\w+)`")


def table() -> list[tuple[str, list[tuple[str, str]]]]:
    """Kafka Streams' name and the tests here (file, name), row by row."""
    rows = map(_ROW.fullmatch, (TESTS / "CONFORMANCE.md").read_text().splitlines())
    return [(row["name"], _TEST.findall(row["tests"])) for row in rows if row is not None]


@functools.cache
def functions_of(file: str) -> frozenset[str]:
    """The functions at the top of a file, which is not run."""
    try:
        tree = ast.parse((TESTS / file).read_text())
    except FileNotFoundError:
        return frozenset()
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def test_every_name_of_kafka_streams_stands_in_the_table_once() -> None:
    found = Counter(name for name, _ in table())
    assert found == Counter(NAMES)
    assert len(NAMES) == 37


@pytest.mark.parametrize("name", NAMES)
def test_what_restates_it_is_there(name: str) -> None:
    mapped = dict(table()).get(name, [])
    assert mapped, f"{name} names no test"
    assert [f"{file}::{test}" for file, test in mapped if test not in functions_of(file)] == []
