"""`streamsapp query`: what is printed, where errors go, and the exit codes."""

from __future__ import annotations

import json
import socket

import pytest
from query_fakes import KEYS, FakeView, Pair
from typer.testing import CliRunner, Result

from streams_runtime.cli.query.query_command import app
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.states import ClientState


def query(*arguments: str, url: str | None = None) -> Result:
    return CliRunner().invoke(app, [*arguments, *(["--url", url] if url else [])])


def printed(result: Result) -> list[object]:
    assert (result.exit_code, result.stderr) == (0, "")
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.parametrize("output", ["text", "json"])
def test_get_finds_the_owner_and_prints_one_object(pair: Pair, output: str) -> None:
    result = query("counts", "get", "UA", "--output", output, url=pair.first.url)
    assert printed(result) == [{"key": "UA", "value": {"n": 4}}]


def test_an_answer_contains_the_records_that_are_named_or_there_is_none(pair: Pair) -> None:
    for view in (*pair.first.local.values(), *pair.second.local.values()):
        view.position = {TopicPartition("flights", view.partition): 58}
    named = [word for number in range(3) for word in ("--position", f"flights-{number}:57")]
    assert printed(query("counts", "count", *named, url=pair.first.url)) == [{"count": len(KEYS)}]
    later = query("counts", "count", "--position", "flights-0:58", "--timeout", "0", url=pair.first.url)
    assert (later.exit_code, later.stdout) == (75, "")
    assert "flights-0 before offset 58" in later.stderr
    wrong = query("counts", "count", "--position", "flights", url=pair.first.url)
    assert (wrong.exit_code, wrong.stderr.startswith("error: --position: 'flights'")) == (1, True)


def test_a_key_that_is_not_there_is_null_and_no_error(pair: Pair) -> None:
    assert printed(query("counts", "get", "nobody", url=pair.first.url)) == [{"key": "nobody", "value": None}]


def test_range_all_and_count_span_all_instances(pair: Pair) -> None:
    assert [row["key"] for row in printed(query("counts", "range", "DL", "WN", url=pair.second.url))] == [  # type: ignore[index]
        "DL",
        "EV",
        "UA",
        "WN",
    ]
    assert [row["key"] for row in printed(query("counts", "all", url=pair.first.url))] == [*KEYS]  # type: ignore[index]
    assert printed(query("counts", "count", url=pair.first.url)) == [{"count": len(KEYS)}]


def test_a_negative_number_is_a_key_and_no_option(pair: Pair) -> None:
    for instance in (pair.first, pair.second):
        instance.key_format = "long"
        instance.local = {p: FakeView(p, {(-5).to_bytes(8, "big", signed=True): b"1"}) for p in instance.local}
    assert printed(query("counts", "get", "-5", url=pair.first.url)) == [{"key": -5, "value": 1}]
    assert query("counts", "get", "-5", "--ulr", "x", url=pair.first.url).exit_code == 2


def test_the_url_comes_from_the_environment_where_no_option_gives_it(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STREAMSAPP_URL", pair.second.url)
    assert printed(query("counts", "count")) == [{"count": len(KEYS)}]


def test_an_instance_that_does_not_answer_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    result = query("counts", "get", "AA", url=url)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"error: no instance answers at {url}")
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("verb", [("get", "UA"), ("range", "A", "Z"), ("all",), ("count",)])
def test_errors_are_one_object_with_output_json(pair: Pair, verb: tuple[str, ...]) -> None:
    pair.first.state = pair.second.state = ClientState.ERROR
    result = query("counts", *verb, "--output", "json", url=pair.first.url)
    assert (result.exit_code, result.stdout) == (1, "")
    error = json.loads(result.stderr)["error"]
    assert (error["class"], error["category"]) == ("StateStoreNotAvailableException", "fatal")
    assert error["remedy"] == "do-not-retry"
    assert error["message"].endswith("do not retry here, ask another instance")


def test_a_timeout_of_zero_does_not_wait_for_a_rebalance(pair: Pair) -> None:
    pair.second.state = ClientState.REBALANCING
    result = query("counts", "get", "UA", "--timeout", "0", url=pair.first.url)
    assert result.exit_code == 75
    assert "retry with the same handle" in result.stderr


def test_an_unknown_store_is_an_error_that_names_those_that_there_are(pair: Pair) -> None:
    result = query("count", "get", "UA", url=pair.first.url)
    assert (result.exit_code, "only: counts" in result.stderr) == (1, True)
