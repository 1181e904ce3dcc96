"""The problems that `/state` lists: which lines of the log, of which client, how often, with which remedy."""

from __future__ import annotations

import gc
import logging
import re
import threading
from collections.abc import Callable
from typing import Any

import pytest

from streams_runtime import errors
from streams_runtime.errors import (
    DeserializationException,
    IllegalStateException,
    InvalidStateStoreException,
    LockException,
    ProducerFencedException,
    StoreTypeMismatch,
    StreamsException,
)
from streams_runtime.lifecycle import recent_problems
from streams_runtime.lifecycle.recent_problems import KEPT, RecentProblems
from streams_runtime.lifecycle.remedies import REMEDIES, error_row, remedy_of

LOG = logging.getLogger("streams_runtime.tasks")


def on_thread(name: str, work: Callable[[], None]) -> None:
    thread = threading.Thread(target=work, name=name)
    thread.start()
    thread.join()


@pytest.fixture
def problems() -> RecentProblems:
    return RecentProblems("app-1")


def test_warnings_and_errors_are_kept_the_newest_first(problems: RecentProblems) -> None:
    LOG.info("nothing of note")
    LOG.warning("%d of %s", 3, "a")
    LOG.error("it ended")
    first, second = problems.rows()
    assert (first["level"], first["message"], first["times"]) == ("error", "it ended", 1)
    assert (second["level"], second["message"], second["where"]) == (
        "warning",
        "3 of a",
        threading.current_thread().name,
    )
    assert second["at"] <= first["at"]
    assert (first["class"], first["remedy"]) == (None, None)


def test_one_that_comes_again_is_counted_with_its_last_words(problems: RecentProblems) -> None:
    for late in (1, 5, 9):
        LOG.warning("step %s: %d times a record came too late", "counts", late)
    LOG.warning("step %s: %d times a record came too late", "totals", 1)
    assert [(row["message"], row["times"]) for row in problems.rows()] == [
        ("step totals: 1 times a record came too late", 1),
        ("step counts: 9 times a record came too late", 3),
    ]


def test_an_exception_comes_with_its_class_its_notes_and_its_remedy(problems: RecentProblems) -> None:
    error = DeserializationException("orders", 1, 4711, "no number")
    error.add_note("the thread is not replaced: five replacements did not help")
    LOG.error("%s ended by %s: %s", "app-1-StreamThread-1", type(error).__name__, error)
    [row] = problems.rows()
    assert (row["class"], row["remedy"]) == ("DeserializationException", REMEDIES[DeserializationException])
    assert "five replacements did not help" in row["message"]
    assert error_row(error)["remedy"] == row["remedy"]


@pytest.mark.parametrize(
    ("thread", "taken"),
    [
        ("app-1-StreamThread-2", True),
        ("app-1-StreamThread-1-StateUpdater", True),
        ("app-1-GlobalStreamThread", True),
        ("app-1-standbys", True),
        ("app-1-close", True),
        ("engine", True),
        ("MainThread", True),
        ("app-2-StreamThread-1", False),
        ("app-11-StreamThread-1", False),
        ("my-app-1-StreamThread-1", False),
        ("app-2-close", False),
    ],
)
def test_what_another_clients_threads_say_is_left_out(problems: RecentProblems, thread: str, taken: bool) -> None:
    on_thread(thread, lambda: LOG.warning("here"))
    assert [row["where"] for row in problems.rows()] == ([thread] if taken else [])


def test_they_are_bounded_in_number_and_in_length(problems: RecentProblems) -> None:
    for number in range(KEPT + 5):
        LOG.warning("problem of %s", f"step-{number}")
    LOG.warning("x" * 10_000)
    rows = problems.rows()
    assert len(rows) == KEPT
    assert len(rows[0]["message"]) == 2000
    assert rows[-1]["message"] == "problem of step-6"


def test_a_client_that_is_gone_is_not_followed_and_there_is_one_handler(problems: RecentProblems) -> None:
    before = list(logging.getLogger("streams_runtime").handlers)
    followers = recent_problems._HANDLER._followers
    other = RecentProblems("other")
    assert other in followers
    del other
    gc.collect()
    assert {each._instance for each in followers} >= {"app-1"}
    assert "other" not in {each._instance for each in followers}
    assert logging.getLogger("streams_runtime").handlers == before


def test_a_line_that_cannot_be_written_breaks_nobody(problems: RecentProblems, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)
    LOG.warning("%d of them", "three")
    LOG.warning("after it")
    assert [row["message"] for row in problems.rows()] == ["after it"]


def test_threads_note_and_read_at_once_without_losing_any(problems: RecentProblems) -> None:
    def work() -> None:
        for _ in range(200):
            LOG.warning("%s again", "same")
            problems.rows()

    threads = [threading.Thread(target=work, name=f"app-1-StreamThread-{number}") for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(row["times"] for row in problems.rows()) == [200] * 4


# --- remedies


def tree() -> dict[str, str]:
    """Class and remedy of each line of the tree in the docstring of errors.py."""
    found = re.findall(r"[├└]── (\w+)\s+(\S.*)", errors.__doc__ or "")
    return {name: remedy for name, remedy in found if not remedy.startswith("(")}


def test_every_exception_of_the_tree_has_a_remedy_or_is_one_of_queries_and_calls() -> None:
    classes = {name: getattr(errors, name) for name in tree()}
    without = {each for each in classes.values() if remedy_of_class(each) is None}
    assert {each for each in without if not issubclass(each, InvalidStateStoreException)} == {
        IllegalStateException,
        StoreTypeMismatch,
    }


def remedy_of_class(kind: type[Any]) -> str | None:
    return next((REMEDIES[base] for base in kind.__mro__ if base in REMEDIES), None)


OWN_WORDS = {
    *("SchemaRegistryNotAvailableException", "UnreleasedInstanceIdException", "ProducerException"),
    *("TaskMigratedException", "ProducerFencedException", "ProcessorStateException", "TaskCorruptedException"),
}
"""Where the tree says what has happened, or refers to the line above."""


def test_remedies_are_those_of_the_tree() -> None:
    said = tree()
    assert set(said) >= {kind.__name__ for kind in REMEDIES}
    others = {kind.__name__: remedy for kind, remedy in REMEDIES.items() if kind.__name__ not in OWN_WORDS}
    assert others == {name: said[name] for name in others}


def test_the_nearest_class_counts_and_foreign_ones_have_none() -> None:
    assert remedy_of(ProducerFencedException("x")) == REMEDIES[ProducerFencedException]
    assert remedy_of(LockException("x")) == "stop the process that holds the state folder"
    assert remedy_of(ValueError("x")) is None
    assert remedy_of(StreamsException("x")) is None
