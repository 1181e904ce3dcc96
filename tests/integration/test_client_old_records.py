"""A client that takes records of long ago into windows and histories says which changelogs won't keep them."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from clients import client, make_topics, run_until_done, send

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]


def topology(prefix: str) -> str:
    counted = "window: {tumbling: {size: 1m}, retention: 1h}, aggregate: {n: count(*)}"
    value = '{format: json, schema: "n BIGINT"}'
    return f"""
sources: [{{name: orders, topic: {prefix}-orders, key: {{format: string}}, value: {value}}}]
steps:
  - {{name: short, from: orders, {counted}, store: short}}
  - {{name: long, from: orders, {counted}, store: long}}
  - {{name: past, from: orders, toTable: {{store: past, historyRetention: 1h}}}}
  - {{name: last, from: orders, toTable: {{store: last}}}}
"""


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_only_what_may_be_lost_is_warned_of_and_status_shows_it(
    guarantee: str, broker: Any, namespace: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bootstrap, orders = broker.bootstrap_servers, f"{namespace}-orders"
    make_topics(bootstrap, **{orders: 2})
    send(bootstrap, orders, [(key, {"n": 1}) for key in "abcdef"])  # of 2023
    kept = {"overrides": {"long-changelog": {"retention.ms": 315_360_000_000}}}
    caplog.set_level(logging.WARNING, "streams_runtime.age")
    processing = {"guarantee": guarantee}
    with client(
        bootstrap, namespace, topology(namespace), tmp_path, internalTopics=kept, processing=processing
    ) as made:
        run_until_done(made, [orders])
        told = [each["message"] for each in made.describe()["problems"]]  # type: ignore[index,union-attr]
    said = sorted(each.getMessage() for each in caplog.records if each.name == "streams_runtime.age")
    assert [each.partition(" takes records of 2023-11-14 22:13:20 UTC, and its changelog ")[0] for each in said] == [
        "store past",
        "store short",
    ]
    assert f"{namespace}-past-changelog is declared to keep them for 1d1h (min.compaction.lag.ms=90000000)" in said[0]
    assert f"{namespace}-short-changelog is declared to keep them for 1d1h (retention.ms=90000000)" in said[1]
    assert sorted(each for each in told if "takes records of" in each) == said
