"""Closing a client in the middle of everything: it ends in time, and nothing of it is left when that can be seen."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.integration

SCRIPT = Path(__file__).parents[1] / "support" / "closing_script.py"
ORDERLY = {
    "created": True,
    "while it rebalances and Spark starts": True,
    "from several threads": True,
    "in a state listener": False,  # the closing waits for the listener, so the listener does not wait for it
    "in a restoration, by its listener": False,
    "in a batch of Spark": True,
    "with a broker that stands still": True,
}


@pytest.mark.timeout(550)
def test_whatever_goes_on_a_close_ends_in_time_and_leaves_no_thread_file_consumer_or_session(
    broker: Any, namespace: str, tmp_path: Path
) -> None:
    """In a process of its own, whose threads, open files and Spark are those of its clients."""
    command = [sys.executable, str(SCRIPT), broker.bootstrap_servers, namespace, str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=540, check=False)
    accounts = {each["name"]: each for each in map(json.loads, ended.stdout.splitlines())}
    assert ended.returncode == 0, f"{ended.stderr[-4000:]}\nafter {list(accounts)}"
    assert {name: account["left"] for name, account in accounts.items() if account["left"]} == {}
    for name, waited in ORDERLY.items():
        assert set(accounts[name]["answers"]) == {waited}, name
        assert accounts[name]["moves"][-2:] == ["PENDING_SHUTDOWN", "NOT_RUNNING"], name
    failed = accounts["in an error, by its listener"]
    assert failed["moves"][-2:] == ["PENDING_ERROR", "ERROR"]
    assert failed["answers"] == [False], "a no-op, which does not wait either"
    orphaned = accounts["when the thread that restores dies"]
    assert orphaned["moves"][-2:] == ["PENDING_ERROR", "ERROR"]
    assert orphaned["error"] == repr(OSError("the user's listener fails"))
