"""NEXMark's queries: the page about them, and the events that they are asked about."""

from __future__ import annotations

import re
from collections import Counter
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from nexmark.events import TOPICS, events, main

from streams_runtime.api import load_application

FOLDER = Path(__file__).parents[2] / "examples" / "nexmark"
PAGE = (FOLDER / "README.md").read_text()
FILES = {file.stem: file for file in FOLDER.glob("q*.yaml")}


def test_the_page_lists_every_file_with_its_lines() -> None:
    listed = re.findall(r"^\| \[(q\d+)\]\((q\d+\.yaml)\) \| [^|]+ \| (\d+) \|", PAGE, re.MULTILINE)
    assert listed == [
        (name, file.name, str(len(file.read_text().splitlines())))
        for name, file in sorted(FILES.items(), key=lambda each: int(each[0][1:]))
    ]


def test_every_query_has_a_file_or_stands_among_those_without_one() -> None:
    without = re.findall(r"q\d+", "".join(re.findall(r"^\| (q[\dq, ]+) \|", PAGE, re.MULTILINE)))
    assert sorted([*FILES, *without], key=lambda name: int(name[1:])) == [f"q{number}" for number in range(23)]


def test_the_page_shows_a_file_as_it_is() -> None:
    shown = re.findall(r"```yaml resource\n(.*?)```", PAGE, re.DOTALL)
    assert shown == [FILES["q2"].read_text().split("\n", 1)[1]], "without the comment"


@pytest.mark.parametrize("query", sorted(FILES))
def test_a_query_is_valid_and_writes_a_topic_of_its_name(query: str) -> None:
    app = load_application(FILES[query])
    assert app.name == f"nexmark-{query}"
    assert [sink.topic for sink in app.spec.topology.sinks] == [query]


def test_names_of_steps_are_those_of_one_file_so_that_files_can_be_put_together() -> None:
    topologies = [yaml.safe_load(file.read_text())["spec"]["topology"] for file in FILES.values()]
    assert max(Counter(step["name"] for each in topologies for step in each["steps"]).values()) == 1


def test_of_fifty_events_one_is_a_person_three_are_auctions_and_the_others_bids() -> None:
    given = list(events(500))
    assert Counter(event.topic for event in given) == {"people": 10, "auctions": 30, "bids": 460}
    assert [event.topic for event in given[:50]] == ["people", *["auctions"] * 3, *["bids"] * 46]


def test_events_are_those_of_the_seed_in_the_order_of_their_times() -> None:
    given = list(events(500, seed=7))
    assert list(events(200, seed=7)) == given[:200]
    assert list(events(500, seed=8)) != given
    gaps = {after.time - before.time for before, after in pairwise(given)}
    assert gaps == {timedelta(milliseconds=50)}


@pytest.mark.parametrize("topic", ["people", "auctions"])
def test_people_and_auctions_are_numbered_from_1000(topic: str) -> None:
    numbers = [event.value["id"] for event in events(500) if event.topic == topic]
    assert numbers == list(range(1000, 1000 + len(numbers)))


def test_some_bids_come_before_their_auctions_and_some_prices_are_equal() -> None:
    """What queries have to be right about."""
    auctions, early, prices = set[int](), 0, Counter[int]()
    for event in events(500):
        if event.topic == "auctions":
            auctions.add(event.value["id"])
        if event.topic == "bids":
            early += event.value["auction"] not in auctions
            prices[event.value["price"]] += 1
    assert early > 0
    assert max(times for price, times in prices.items() if price > 10_000_000) > 1


def test_each_topic_is_a_file_of_json_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["events.py", str(tmp_path), "--count", "100"])
    main()
    lines = {topic: len((tmp_path / f"{topic}.jsonl").read_text().splitlines()) for topic in TOPICS}
    assert lines == {"people": 2, "auctions": 6, "bids": 92}
