"""NEXMark's events from a seed: of each fifty, one person, three auctions and 46 bids, in the order of their times.

    python examples/nexmark/events.py FOLDER --count 5000

writes people.jsonl, auctions.jsonl and bids.jsonl into the folder. The rules are those of NEXMark's generator, smaller:
half of all bids go to the hot auction of the moment, some auctions and people are named shortly before they are there,
and prices spread over six powers of ten. They have one significant digit, so that many are equal.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

TOPICS = {"people": "id", "auctions": "id", "bids": "auction"}
"""Each topic, and the column that is its key."""
START = datetime(2026, 3, 31, 23, 59, tzinfo=UTC)
FIRST_ID = 1000
_ROUND, _PEOPLE, _AUCTIONS = 50, 1, 3  # events of a round; the rest are bids
_LEAD = 10  # ids that are named before they are there
_ACTIVE, _OPEN = 100, 20  # the newest people and auctions, of which the others are chosen
_HOT = 10  # of so many one is hot
_STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
_CITIES = ("Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent")
_FIRST = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
_LAST = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")


@dataclass(frozen=True)
class Event:
    """A record of one of the topics; `value` has its columns as JSON has them, times as texts in UTC."""

    topic: str
    value: dict[str, Any]
    time: datetime

    @property
    def key(self) -> str:
        """The text of the column that is the topic's key."""
        return str(self.value[TOPICS[self.topic]])


def events(count: int, seed: int = 1, gap: timedelta = timedelta(milliseconds=50)) -> Iterator[Event]:
    """The first so many events, `gap` apart. The same arguments give the same events."""
    chance = random.Random(seed)
    for number in range(count):
        rounds, place = divmod(number, _ROUND)
        people, auctions = rounds + 1, min(rounds * _AUCTIONS + max(place - _PEOPLE + 1, 0), (rounds + 1) * _AUCTIONS)
        time = START + number * gap
        if place < _PEOPLE:
            yield Event("people", _person(chance, FIRST_ID + rounds, time), time)
        elif place < _PEOPLE + _AUCTIONS:
            yield Event("auctions", _auction(chance, FIRST_ID + auctions - 1, people, time, gap), time)
        else:
            yield Event("bids", _bid(chance, auctions, people, time), time)


def _person(chance: random.Random, number: int, time: datetime) -> dict[str, Any]:
    return {
        "id": number,
        "name": f"{chance.choice(_FIRST)} {chance.choice(_LAST)}",
        "emailAddress": f"{_letters(chance, 7)}@{_letters(chance, 5)}.com",
        "creditCard": " ".join(f"{chance.randrange(10_000):04}" for _ in range(4)),
        "city": chance.choice(_CITIES),
        "state": chance.choice(_STATES),
        "dateTime": _text(time),
        "extra": _letters(chance, 20),
    }


def _auction(chance: random.Random, number: int, people: int, time: datetime, gap: timedelta) -> dict[str, Any]:
    first = _price(chance)
    # Until twice as many auctions are there as are open at a time, on average half of that.
    longest = 2 * _OPEN * _ROUND // _AUCTIONS
    return {
        "id": number,
        "itemName": _letters(chance, 10),
        "description": _letters(chance, 30),
        "initialBid": first,
        "reserve": first + _price(chance),
        "dateTime": _text(time),
        "expires": _text(time + chance.randrange(1, longest) * gap),
        "seller": _one_of(chance, people, _ACTIVE, 4),
        "category": 10 + chance.randrange(5),
        "extra": _letters(chance, 20),
    }


def _bid(chance: random.Random, auctions: int, people: int, time: datetime) -> dict[str, Any]:
    if chance.randrange(2):
        channel, channel_id = chance.choice(_CHANNELS), None
    else:
        number = chance.randrange(1000)
        channel, channel_id = f"channel-{number}", number * 7919 if number % 10 else None
    folders = "/".join(_letters(chance, 5) for _ in range(3))
    url = f"https://www.nexmark.com/{folders}/item.htm?query=1"
    return {
        "auction": _one_of(chance, auctions, _OPEN, 2),
        "bidder": _one_of(chance, people, _ACTIVE, 4, beside=1),
        "price": _price(chance),
        "channel": channel,
        "url": url if channel_id is None else f"{url}&channel_id={channel_id}",
        "dateTime": _text(time),
        "extra": _letters(chance, 20),
    }


def _one_of(chance: random.Random, there: int, newest: int, ratio: int, beside: int = 0) -> int:
    """An id: in all but one of `ratio` cases the hot one, else one of the newest or of those that are to come."""
    if chance.randrange(ratio):
        return FIRST_ID + (there - 1) // _HOT * _HOT + beside
    return FIRST_ID + max(there - newest, 0) + chance.randrange(min(there, newest) + _LEAD)


def _price(chance: random.Random) -> int:
    return int(float(f"{100 * 10 ** (6 * chance.random()):.0e}"))


def _letters(chance: random.Random, count: int) -> str:
    return "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=count))


def _text(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def main() -> None:
    """Write a file for each topic."""
    parser = argparse.ArgumentParser(description="Write NEXMark's events to files.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=5000, help="how many events (5000)")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    lines: dict[str, list[str]] = {topic: [] for topic in TOPICS}
    for event in events(given.count, given.seed):
        lines[event.topic].append(json.dumps(event.value))
    for topic, values in lines.items():
        (given.folder / f"{topic}.jsonl").write_text("".join(f"{line}\n" for line in values))
        print(f"{given.folder / f'{topic}.jsonl'}: {len(values)}")


if __name__ == "__main__":
    main()
