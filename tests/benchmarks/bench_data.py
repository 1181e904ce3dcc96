"""The benchmark's records, made from a seed, and the totals that they must give."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Totals = dict[bytes, tuple[int, int]]
"""Key -> (sum of amounts, number of records)."""

START_MS = 1_700_000_000_000
"""Timestamp of the first record; each following record is one millisecond later."""

MAX_AMOUNT = 1_000
"""Amounts are below this."""


@dataclass(frozen=True, slots=True)
class Message:
    """One record as it goes to a topic; `timestamp` in milliseconds."""

    key: bytes
    value: bytes
    timestamp: int


@dataclass(frozen=True, slots=True)
class Orders:
    """Orders in the order of their arrival: the key's number and the amount of each."""

    users: NDArray[np.int64]
    amounts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.users)


def make_orders(records: int, keys: int, seed: int, refused_share: float) -> Orders:
    """`records` orders of users drawn evenly from `keys`; `refused_share` of them have a negative amount."""
    random = np.random.default_rng(seed)
    users = random.integers(0, keys, records, dtype=np.int64)
    amounts = random.integers(0, MAX_AMOUNT, records, dtype=np.int64)
    refused = random.random(records) < refused_share
    return Orders(users, np.where(refused, -1 - amounts, amounts))


def unique_orders(records: int) -> Orders:
    """Order i is of user i, and none is refused: each comes out by itself."""
    numbers = np.arange(records, dtype=np.int64)
    return Orders(numbers, numbers % MAX_AMOUNT)


def order_messages(orders: Orders, chunk: int = 100_000, first: int = 0) -> Iterator[list[Message]]:
    """The orders as JSON records, in chunks; the first one has the number `first`, which its time goes by."""
    for start in range(0, len(orders), chunk):
        users = orders.users[start : start + chunk].tolist()
        amounts = orders.amounts[start : start + chunk].tolist()
        yield [
            Message(b"u%d" % user, b'{"user": "u%d", "amount": %d, "ts": %d}' % (user, amount, stamp), stamp)
            for stamp, (user, amount) in enumerate(zip(users, amounts, strict=True), START_MS + first + start)
        ]


def changelog_messages(orders: Orders, chunk: int = 100_000, pad: int = 0) -> Iterator[list[Message]]:
    """The running totals after each order, in chunks: a changelog that was written record by record.

    Each value is `pad` bytes longer, in a field of text that hardly compresses.
    """
    sums, counts = running_totals(orders)
    fill = padding(pad)
    for start in range(0, len(orders), chunk):
        stop = start + chunk
        columns = zip(
            orders.users[start:stop].tolist(),
            sums[start:stop].tolist(),
            counts[start:stop].tolist(),
            strict=True,
        )
        yield [
            Message(b"u%d" % user, b'{"total":%d,"n":%d%s}' % (total, n, fill(stamp)), stamp)
            for stamp, (user, total, n) in enumerate(columns, START_MS + start)
        ]


def padding(pad: int) -> Callable[[int], bytes]:
    """What makes a JSON object `pad` bytes longer, another for each number (at least 11 bytes, unless none)."""
    if not pad:
        return lambda _number: b""
    length = pad - len(b',"note":""')
    text = base64.b64encode(np.random.default_rng(length).bytes(2 * length))
    return lambda number: b',"note":"%s"' % text[number % length : number % length + length]


def running_totals(orders: Orders) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sum and count of each order's user up to and including that order; every amount counts."""
    by_user = np.argsort(orders.users, kind="stable")
    users, amounts = orders.users[by_user], orders.amounts[by_user]
    first = np.flatnonzero(np.r_[True, users[1:] != users[:-1]])
    group = np.cumsum(np.r_[False, users[1:] != users[:-1]])
    total = np.cumsum(amounts)
    before = total[first] - amounts[first]
    sums, counts = np.empty_like(total), np.empty_like(total)
    sums[by_user] = total - before[group]
    counts[by_user] = np.arange(len(users)) - first[group] + 1
    return sums, counts


def expected_totals(orders: Orders) -> Totals:
    """What the application must find: totals of the orders whose amount is not negative, per key."""
    accepted = orders.amounts >= 0
    users, amounts = orders.users[accepted], orders.amounts[accepted]
    sums = np.zeros(int(orders.users.max(initial=0)) + 1, dtype=np.int64)
    np.add.at(sums, users, amounts)
    counts = np.bincount(users, minlength=len(sums))
    seen = np.flatnonzero(counts)
    return {
        b"u%d" % user: (total, n)
        for user, total, n in zip(seen.tolist(), sums[seen].tolist(), counts[seen].tolist(), strict=True)
    }
