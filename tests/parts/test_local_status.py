"""`streamsapp status` over folders of runs and instances that answer, do not answer, or have ended."""

from __future__ import annotations

import json
import socket
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
import typer
from http_answers import answering
from typer.testing import CliRunner, Result

from streams_runtime.cli.status.local_status import status

DESCRIBED = {
    "state": "RUNNING",
    "tasks": [{"id": "0_0", "state": "RUNNING", "stores": ["totals"]}],
    "standbys": [],
    "restoration": [],
    "lag": [{"lag": 3}],
    "error": None,
}


def run(*arguments: str) -> Result:
    app = typer.Typer()
    app.command()(status)
    return CliRunner().invoke(app, [*arguments])


def instance(root: Path, name: str, url: str | None = None, last_word: dict[str, Any] | None = None) -> None:
    folder = root / name
    folder.mkdir()
    (folder / "instance.log").write_text("")
    if url is not None:
        (folder / "endpoint.json").write_text(json.dumps({"url": url, "pid": 1}))
    if last_word is not None:
        (folder / "termination.json").write_text(json.dumps(last_word))


def answer(request: BaseHTTPRequestHandler) -> None:
    """`/state`, for those with the token."""
    allowed = request.headers.get("Authorization") == "Bearer secret"
    body = json.dumps(DESCRIBED).encode() if allowed else b"{}"
    request.send_response(200 if allowed else 401)
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    request.wfile.write(body)


def test_instances_that_run_have_ended_are_gone_or_start_are_told_apart(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret\n")
    runs = tmp_path / "run"
    runs.mkdir()
    (runs / "broker").mkdir()
    with socket.socket() as nobody, answering(answer) as url:
        nobody.bind(("127.0.0.1", 0))
        instance(runs, "orders-0", url)
        instance(runs, "orders-1", f"http://127.0.0.1:{nobody.getsockname()[1]}")
        instance(runs, "orders-2", last_word={"state": "NOT_RUNNING", "class": None, "message": ""})
        instance(runs, "orders-10", last_word={"state": "ERROR", "class": "LockException", "message": "in use"})
        instance(runs, "orders-9")
        found = run("--state-dir", str(runs), "--queries-token-file", str(token), "--output", "json")
        refused = run("--state-dir", str(runs), "--output", "json")
    document = json.loads(found.stdout)
    assert [(each["name"], each["state"]) for each in document["instances"]] == [
        ("orders-0", "RUNNING"),
        ("orders-1", "CRASHED"),
        ("orders-2", "NOT_RUNNING"),
        ("orders-9", "CREATED"),
        ("orders-10", "ERROR"),
    ]
    assert (document["name"], document["state"], document["ready"], document["lag"]) == ("orders", "ERROR", 1, 3)
    gone, failed = document["problems"]
    assert (gone["where"], failed["where"]) == ("orders-1", "orders-10")
    assert gone["what"].startswith("does not answer at http://127.0.0.1:")
    assert failed["what"] == "LockException: in use"
    assert failed["remedy"] == f"its log: {runs / 'orders-10' / 'instance.log'}"
    first = json.loads(refused.stdout)["problems"][0]
    assert first == {
        "where": "orders-0",
        "what": f"{url}/state answers 401",
        "remedy": "give its token by --queries-token-file",
    }


def test_all_runs_of_the_machine_are_shown_and_none_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    none = run()
    assert none.exit_code == 1
    assert f"no run is in {tmp_path}" in none.stderr
    for name in ("streamsapp-a-x1", "streamsapp-b-x2", "streamsapp-broker-x3", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "streamsapp-notes.txt").write_text("a file, and no run")
    instance(tmp_path / "streamsapp-a-x1", "a-0")
    instance(
        tmp_path / "streamsapp-b-x2", "b-0", last_word={"state": "ERROR", "class": "LockException", "message": "m"}
    )
    shown = run().stdout.splitlines()
    assert [line for line in shown if line[0] in "ab"] == [
        "a CREATED  0 of 1 ready, tasks 0, lag -",
        "b ERROR  0 of 1 ready, tasks 0, lag -",
    ]


def test_a_folder_without_a_run_and_one_that_is_not_there_are_errors(tmp_path: Path) -> None:
    empty = run("--state-dir", str(tmp_path))
    assert (empty.exit_code, "holds no run" in empty.stderr) == (1, True)
    missing = run("--state-dir", str(tmp_path / "none"))
    assert (missing.exit_code, "can't be read: No such file" in missing.stderr) == (1, True)
