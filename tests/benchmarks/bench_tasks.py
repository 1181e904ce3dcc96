"""What the contestants have to do: the records of each task, what must come of them, and whether it did."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import orjson
from bench_data import START_MS, Message, Orders, make_orders, order_messages
from bench_declared import Case
from bench_kafka import Cluster
from bench_verify import WrongResultError, decode_any
from numpy.typing import NDArray

REFUSED_SHARE = 0.01
WINDOW_MS = 600_000
"""As in topologies/windowed.yaml, and in every peer."""
TIERS = 7
_LATER = 2
"""Every `_LATER`-th user is in the table; orders of the others fall out of the join."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Sum and count by the number of the user; arrays, since twenty million keys in a dict are gigabytes."""

    sums: NDArray[np.int64]
    counts: NDArray[np.int64]

    @classmethod
    def empty(cls, keys: int) -> Columns:
        """Nothing for any of `keys` users."""
        return cls(np.zeros(keys, dtype=np.int64), np.zeros(keys, dtype=np.int64))


def totals(orders: Orders, keys: int, of: NDArray[np.bool_] | None = None) -> Columns:
    """Sums and counts of the orders that are not refused, of the users marked in `of` only when given."""
    taken = orders.amounts >= 0
    if of is not None:
        taken &= of[orders.users]
    users = orders.users[taken]
    made = Columns(np.zeros(keys, dtype=np.int64), np.bincount(users, minlength=keys).astype(np.int64))
    np.add.at(made.sums, users, orders.amounts[taken])
    return made


def require_same(what: str, expected: Columns, found: Columns) -> None:
    """Raise WrongResultError naming the first differing keys when the two are not equal everywhere."""
    differing = np.flatnonzero((expected.sums != found.sums) | (expected.counts != found.counts))
    if len(differing):
        examples = "; ".join(
            f"u{user}: expected {(int(expected.sums[user]), int(expected.counts[user]))},"
            f" found {(int(found.sums[user]), int(found.counts[user]))}"
            for user in differing[:5].tolist()
        )
        raise WrongResultError(f"{what}: {len(differing):,} of {len(expected.sums):,} keys differ. {examples}")


def number_of(key: bytes, keys: int) -> int:
    """The number of a user by their key. Raises WrongResultError for one that is nobody's."""
    if key[:1] != b"u" or not key[1:].isdigit() or int(key[1:]) >= keys:
        raise WrongResultError(f"the key {key!r} is not one of the data")
    return int(key[1:])


def last_totals(entries: Iterator[tuple[bytes, bytes]], keys: int) -> Columns:
    """The last sum and count of each user among keys and values."""
    found = Columns.empty(keys)
    for key, value in entries:
        user = number_of(key, keys)
        found.sums[user], found.counts[user] = decode_any(value)
    return found


def joined_totals(entries: Iterator[tuple[bytes, bytes]], keys: int) -> Columns:
    """Sums and counts of joined orders, whose tier has to be their user's."""
    found = Columns.empty(keys)
    for key, value in entries:
        user, joined = number_of(key, keys), orjson.loads(value)
        if joined["tier"] != user % TIERS:
            raise WrongResultError(f"{key.decode()}: expected tier {user % TIERS}, found {joined['tier']}")
        found.sums[user] += joined["amount"]
        found.counts[user] += 1
    return found


def windows(orders: Orders) -> dict[tuple[int, int], int]:
    """How many orders that are not refused each user has in each window, by user and start."""
    taken = np.flatnonzero(orders.amounts >= 0)
    starts = (START_MS + taken) // WINDOW_MS * WINDOW_MS
    pairs, counts = np.unique(np.stack([orders.users[taken], starts]), axis=1, return_counts=True)
    return dict(zip(zip(*pairs.tolist(), strict=True), counts.tolist(), strict=True))


def last_windows(entries: Iterator[tuple[bytes, bytes]], keys: int) -> dict[tuple[int, int], int]:
    """The last count of each window among keys and values.

    Kafka Streams and this project have the start in the key's last eight bytes, the others in the value.
    """
    found = {}
    for key, value in entries:
        fields = orjson.loads(value)
        if "start" in fields:
            user, start = number_of(key, keys), fields["start"]
        else:
            user, start = number_of(key[:-8], keys), int.from_bytes(key[-8:], "big")
        found[user, start] = fields["n"]
    return found


@dataclass(slots=True)
class Prepared:
    """The topics of a case, filled; and the check of what a contestant made of them."""

    topics: Mapping[str, str]
    check: Callable[[str, str], None]
    """Takes what to call it in an error and the output topic; raises WrongResultError."""
    expected: Columns | None = None
    """The totals of that task, for stores and changelogs."""
    table_records: int = 0
    """How many records the table beside the orders has."""


def prepare(cluster: Cluster, prefix: str, case: Case, seed: int) -> Prepared:
    """Write the case's records, to topics whose names begin with `prefix`."""
    orders = make_orders(case.records, case.keys, seed, REFUSED_SHARE)
    topics = {"orders": f"{prefix}-orders"}
    cluster.create(topics["orders"], case.partitions)
    users = 0
    if case.task == "joined":
        topics["users"] = f"{prefix}-users"
        cluster.create(topics["users"], case.partitions)
        users = cluster.fill([topics["users"]], user_messages(case.keys))
    cluster.fill([topics["orders"]], order_messages(orders))

    def entries(topic: str) -> Iterator[tuple[bytes, bytes]]:
        return ((each.key, each.value) for each in cluster.records(topic))

    if case.task == "windowed":
        counted = windows(orders)

        def check_windows(what: str, topic: str) -> None:
            found = last_windows(entries(topic), case.keys)
            differing = [key for key in counted.keys() | found.keys() if counted.get(key) != found.get(key)]
            if differing:
                first = min(differing)
                raise WrongResultError(
                    f"{what}: {len(differing):,} of {len(counted):,} windows differ. u{first[0]} at {first[1]}:"
                    f" expected {counted.get(first)}, found {found.get(first)}"
                )

        return Prepared(topics, check_windows)
    if case.task == "joined":
        some = totals(orders, case.keys, np.arange(case.keys) % _LATER == 0)

        def check_joined(what: str, topic: str) -> None:
            require_same(what, some, joined_totals(entries(topic), case.keys))

        return Prepared(topics, check_joined, table_records=users)
    all_ = totals(orders, case.keys)
    return Prepared(topics, lambda what, topic: require_same(what, all_, last_totals(entries(topic), case.keys)), all_)


def user_messages(keys: int, chunk: int = 100_000) -> Iterator[list[Message]]:
    """The table of users, before the first order."""
    for start in range(0, keys, chunk):
        numbers = range(start + start % _LATER, min(keys, start + chunk), _LATER)
        yield [Message(b"u%d" % user, b'{"tier": %d}' % (user % TIERS), START_MS - 1) for user in numbers]
