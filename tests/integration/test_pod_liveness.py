"""Liveness of a real client: a loop that stands still is seen, one that waits for a broker is left alone."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import httpx
import pytest
from clients import client, make_topics, until_running
from waiting import eventually

from streams_runtime.processing.inputs.intake import Intake
from streams_runtime.query.server import liveness

pytestmark = pytest.mark.integration

TOPOLOGY = """
sources: [{name: in, topic: %s-in, value: {format: string}}]
sinks: [{from: in, topic: %s-out}]
"""


@pytest.mark.usefixtures("spark")
def test_a_loop_that_stands_still_is_unhealthy_until_it_turns_again(
    broker: Any, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_topics(broker.bootstrap_servers, **{f"{namespace}-in": 1, f"{namespace}-out": 1})
    standing, go_on = threading.Event(), threading.Event()
    next_batch = Intake.next

    def stand_still(intake: Intake) -> object:
        standing.set()
        go_on.wait()
        return next_batch(intake)

    topology = TOPOLOGY % (namespace, namespace)
    with client(broker.bootstrap_servers, namespace, topology, tmp_path) as made:
        try:
            made.start()
            until_running(made, 90)

            def healthz() -> httpx.Response:
                return httpx.get(f"{made.url}/healthz", trust_env=False, verify=False)

            def readyz() -> httpx.Response:
                return httpx.get(f"{made.url}/readyz", trust_env=False, verify=False)

            assert healthz().status_code == 200
            monkeypatch.setattr(Intake, "next", stand_still)
            assert standing.wait(60)
            assert healthz().status_code == 200
            assert readyz().status_code == 200
            monkeypatch.setattr(liveness, "READY_SECONDS", 0.5)
            monkeypatch.setattr(liveness, "TURN_SECONDS", 0.5)
            # Whether a batch was the last thing in work makes no difference to this test.
            monkeypatch.setattr(liveness, "WORK_SECONDS", 0.5)
            eventually(lambda: healthz().status_code == 503, "the loop counts as stuck")
            assert readyz().status_code == 503
            [thread] = healthz().json()["threads"]
            assert thread["name"] == made.threads[0].name
            monkeypatch.undo()
            go_on.set()
            before = made.threads[0].last_turn
            eventually(lambda: made.threads[0].last_turn > before, "the loop turns again")
            assert (healthz().status_code, readyz().status_code) == (200, 200)
        finally:
            go_on.set()


def test_a_thread_that_waits_for_a_broker_gives_signs_of_life(tmp_path: Path) -> None:
    with client("127.0.0.1:1", "alone", TOPOLOGY % ("a", "a"), tmp_path) as made:
        made.start()
        [thread] = made.threads
        for _ in range(3):
            before = thread.last_turn
            eventually(lambda before=before: thread.last_turn > before, "another look")
