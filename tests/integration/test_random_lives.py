"""Random lives of one real client on a broker of its own: every machine moves by its table, and every record counts.

`unit/test_life_properties.py` is the same with threads that are played. `make test` lives the same life each time, so
that it judges the change and not the dice; `make soak` takes another seed (STREAMSAPP_TEST_SEED) and more steps
(STREAMSAPP_TEST_STEPS). The seed is printed when a life fails.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from away import standing_still
from clients import client, make_topics, read, send, until_done
from thread_faults import Faults
from topic_apps import delete
from waiting import eventually

from streams_runtime.client import StreamsClient
from streams_runtime.errors import InvalidStateStoreException
from streams_runtime.kafka.broker.embedded_broker import EmbeddedBroker
from streams_runtime.lifecycle.uncaught import REPLACEMENTS
from streams_runtime.query.stores.key_value_handle import StoreQueryParameters
from streams_runtime.states import ClientState, Move, StateMachine, ThreadState

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark"), pytest.mark.timeout(900)]

STEPS = int(os.environ.get("STREAMSAPP_TEST_STEPS", "10"))
BURST, FRIENDS = 24, 4  # records that are sent at once, and how many of them are one user's
LONG = 120.0  # seconds; only ever waited for in full by a test that fails
SESSION = 6.0  # seconds after which the embedded broker counts a member out that says nothing
SOURCE, SINK = "orders", "copies"
REPARTITION, CHANGELOG = "life-by-user-repartition", "life-totals-changelog"
TOPOLOGY = f"""
sources:
  - {{name: orders, topic: {SOURCE}, key: {{format: string}},
      value: {{format: json, schema: "user STRING, id BIGINT"}}}}
steps:
  - {{name: copied, from: orders, where: "id >= 0"}}
  - {{name: by-user, from: copied, keyBy: user}}
  - {{name: totals, from: by-user, aggregate: {{n: count(*)}}, store: totals}}
sinks: [{{from: copied, topic: {SINK}}}]
"""


class History:
    """Every move of every client, thread and task, judged by its table and by the move before it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wrong: list[str] = []
        self.moves = Counter[str]()
        inner = StateMachine.__init__

        def watched(machine: StateMachine[Any], table: Any, owner: str) -> None:
            inner(machine, table, owner)
            last = [table.initial]

            def heard(new: Any, old: Any) -> None:
                self.moves[table.name] += 1
                if old is not last[0] or table.judge(old, new) is not Move.ALLOWED:
                    self.wrong.append(f"{owner}: {old} to {new}, after {last[0]}")
                last[0] = new

            machine.add_listener(heard)

        monkeypatch.setattr(StateMachine, "__init__", watched)


class Life:
    """A client, what is done to it, and what therefore has to come out."""

    def __init__(self, made: StreamsClient, broker: EmbeddedBroker, dice: random.Random, faults: Faults) -> None:
        self.made, self.broker, self.dice, self.faults = made, broker, dice, faults
        self.address = broker.bootstrap_servers
        self.sent = 0
        self.done = 0
        """All below this were committed by every stage when nothing was the matter."""
        self.may_repeat: set[int] = set()
        """At least once: these were in flight when the group, or the broker, changed."""
        self.may_be_gone = 0
        """The totals of all below this were in a changelog that was deleted."""
        self.killed = 0

    @property
    def live(self) -> list[Any]:
        return [each for each in self.made.threads if each.state is not ThreadState.DEAD]

    def possible(self) -> list[Callable[[], None]]:
        steps = [self.records, self.records, self.the_broker_stands_still, self.an_internal_topic_is_deleted]
        if len(self.live) < 3:
            steps.append(self.a_thread_is_added)
        if len(self.live) > 1:
            steps.append(self.a_thread_is_removed)
        if self.killed < REPLACEMENTS.budget:
            steps.append(self.a_thread_dies)
        return steps

    def records(self) -> None:
        numbers = range(self.sent, self.sent + BURST)
        send(self.address, SOURCE, [(f"k{i}", {"user": f"u{i // FRIENDS}", "id": i}) for i in numbers])
        self.sent += BURST

    def a_thread_is_added(self) -> None:
        self._in_the_midst()
        names = {each.name for each in self.live}
        assert self.made.add_thread() not in {None, *names}

    def a_thread_is_removed(self) -> None:
        self._in_the_midst()
        names = {each.name for each in self.live}
        assert self.made.remove_thread(LONG) in names

    def a_thread_dies(self) -> None:
        self._in_the_midst()
        self.killed += 1
        self.faults.next = ValueError(f"fault {self.killed}")
        self.records()
        self._may_repeat()  # of the other threads' batches
        eventually(lambda: self.faults.raised["ValueError"] == self.killed, "a thread meets the fault", LONG)

    def the_broker_stands_still(self) -> None:
        self._in_the_midst()
        seconds = self.dice.uniform(0, SESSION + 1)
        with standing_still(self.broker):
            time.sleep(seconds)  # as long as the dice say

    def an_internal_topic_is_deleted(self) -> None:
        self._catch_up()
        lost = self.dice.choice([REPARTITION, CHANGELOG])
        # What is not processed, and copies of stores, are gone with it.
        if lost == CHANGELOG:
            self.may_be_gone = self.sent
        delete(self.made.context.admin, [lost])
        if self.dice.random() < 0.5:
            self.records()
            self._may_repeat()
        eventually(lambda: self.made.context.admin.describe_topics([lost], config=False), f"{lost} is made again", LONG)

    def settle(self) -> None:
        """The client runs, and all of its threads do."""

        def settled() -> bool:
            assert self.made.state in (ClientState.REBALANCING, ClientState.RUNNING), self.made.error
            running = all(each.state is ThreadState.RUNNING for each in self.live)
            return running and self.made.state is ClientState.RUNNING and len(self.tasks()) == 6

        eventually(settled, "the client runs with all tasks", LONG)

    def tasks(self) -> list[Any]:
        return [task for thread in self.live for task in thread.tasks.tasks]

    def check(self) -> None:
        """Wait until everything is counted, and count."""
        self._catch_up()
        eventually(self._totals_are_right, "the store is right", LONG)
        found = Counter(int(json.loads(each.value())["id"]) for each in read(self.address, SINK))
        assert found.keys() == {*range(self.sent)}
        assert {i for i, times in found.items() if times > 1} <= self.may_repeat

    def _totals_are_right(self) -> bool:
        try:
            with self.made.store(StoreQueryParameters("totals")).all() as entries:
                found = {user: value["n"] for user, value in entries}
        except InvalidStateStoreException:
            return False
        for first in range(0, self.sent, FRIENDS):
            n = found.get(f"u{first // FRIENDS}", 0)
            enough = n >= FRIENDS or first < self.may_be_gone
            too_much = n > FRIENDS and not self.may_repeat & {*range(first, first + FRIENDS)}
            assert not too_much, f"u{first // FRIENDS}: {n}"
            if not enough:
                return False
        return True

    def _in_the_midst(self) -> None:
        """Either everything is done before the next thing happens, or something is in work."""
        if self.dice.random() < 0.5:
            self._catch_up()
        else:
            self.records()
            self._may_repeat()

    def _may_repeat(self) -> None:
        self.may_repeat |= {*range(self.done, self.sent)}

    def _catch_up(self) -> None:
        until_done(self.made, [SOURCE])
        until_done(self.made, [REPARTITION])
        self.done = self.sent


def test_a_random_life_moves_by_the_tables_and_counts_every_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed = int(os.environ.get("STREAMSAPP_TEST_SEED", "550268"))
    print(f"STREAMSAPP_TEST_SEED={seed}")  # shown when the test fails
    dice, history, faults = random.Random(seed), History(monkeypatch), Faults(monkeypatch)
    processing = {"streamThreads": 2, "onUncaughtException": "replaceThread"}
    with (
        EmbeddedBroker(tmp_path / "broker") as own,
        client(own.bootstrap_servers, "life", TOPOLOGY, tmp_path / "state", processing=processing) as made,
    ):
        make_topics(own.bootstrap_servers, **{SOURCE: 3, SINK: 1})
        life = Life(made, own, dice, faults)
        made.start()
        life.settle()
        for number in range(STEPS):
            step = dice.choice(life.possible())
            at = time.monotonic()
            step()
            life.settle()
            print(f"{number}: {step.__name__}, {len(life.live)} threads, {time.monotonic() - at:.1f} s")
            assert history.wrong == []
        life.records()
        life.check()
        assert made.close(60)
        assert made.state is ClientState.NOT_RUNNING
    assert history.wrong == []
    assert {"client", "thread", "task"} <= {name.split()[-1] for name in history.moves}, history.moves
