"""Whole clients whose records fail: under exactly once, with a restart between, from the member and from Spark."""

from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from clients import client, make_topics, read, send, until_done, until_running
from orders import USERS, copies, make_order_topics, orders, topology, totals

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]

BAD = {3, 40, 41, 42, 99, 130}


def given(first: int, end: int) -> list[tuple[str, dict[str, Any]]]:
    """Orders of which some have a user who is no number."""
    return [
        (key, {**order, "user": "nobody"} if order["id"] in BAD else {**order, "user": str(order["id"] % USERS)})
        for key, order in orders(range(first, end))
    ]


@pytest.mark.parametrize("backlog", [1, 50_000], ids=["spark-reads", "the-member-fetches"])
def test_each_record_that_fails_has_one_letter_and_all_others_count_once(
    broker: Any, namespace: str, tmp_path: Path, backlog: int
) -> None:
    bootstrap, n = broker.bootstrap_servers, namespace
    make_order_topics(bootstrap, n)
    make_topics(bootstrap, **{f"{n}-letters": 1})
    text = topology(n).replace("amount > 0", "cast(user as int) >= 0")
    processing = {
        "guarantee": "exactly_once_v2",
        "onProcessingError": {"deadLetter": {"topic": f"{n}-letters"}},
    }
    for first, end in ((0, 100), (100, 150)):
        send(bootstrap, f"{n}-orders", given(first, end))
        with client(bootstrap, n, text, tmp_path, processing=processing) as made:
            made.context.limits = dataclasses.replace(made.context.limits, backlog=backlog)
            made.start()
            until_running(made)
            until_done(made, [f"{n}-orders"])
            until_done(made, [f"{n}-by-user-repartition"])
            counters: Any = made.describe()["counters"]
            failed = len([each for each in BAD if first <= each < end])
            assert (counters["processing_errors"], counters["dead_letters"]) == (failed, failed)
    assert copies(bootstrap, n) == Counter(set(range(150)) - BAD)
    assert sum(each["n"] for each in totals(bootstrap, n).values()) == 150 - len(BAD)
    letters = read(bootstrap, f"{n}-letters", committed=True)
    assert Counter(letter.key() for letter in letters) == Counter(b"k%d" % each for each in BAD)
    sent = {(each.topic(), str(each.partition()), str(each.offset())): each for each in read(bootstrap, f"{n}-orders")}
    for letter in letters:
        headers = {name: value.decode() for name, value in letter.headers()}
        topic, partition, offset = (headers[f"__streams.errors.{each}"] for each in ("topic", "partition", "offset"))
        assert sent[topic, partition, offset].value() == letter.value()
        assert headers["__streams.errors.exception"] == "FailedProcessingException"
        assert "CAST_INVALID_INPUT" in headers["__streams.errors.message"]
