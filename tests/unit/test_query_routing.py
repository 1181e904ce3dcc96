"""Which remedy a failure calls for, and which instance is asked for which partitions."""

from __future__ import annotations

import pytest

from streams_runtime.errors import (
    InvalidStateStorePartitionException,
    StreamsException,
    StreamsRebalancingException,
)
from streams_runtime.kafka.producer.partitioner import partition_for
from streams_runtime.query.client.routing import Directory, Failure, Next, directory_of, next_step, pause
from streams_runtime.query.wire.problems import KINDS, InstanceNotReachableException
from streams_runtime.state.serdes import key_serde
from streams_runtime.topology.nodes.source_and_sink_nodes import Format

STEPS = {
    "StreamsNotStartedException": Next.RETRY,
    "StreamsRebalancingException": Next.RETRY,
    "StateStoreMigratedException": Next.REDISCOVER,
    "NotUpToBoundException": Next.RETRY,
    "StateStoreNotAvailableException": Next.GIVE_UP,
    "UnknownStateStoreException": Next.GIVE_UP,
    "InvalidStateStorePartitionException": Next.REDISCOVER,
    "BrokerNotAvailableException": Next.RETRY,
    "InstanceNotReachableException": Next.REDISCOVER,
    "InvalidQueryException": Next.GIVE_UP,
    "StoreTypeMismatch": Next.GIVE_UP,
    "NotSupportedException": Next.GIVE_UP,
    "QueryNotAuthenticatedException": Next.GIVE_UP,
    "QueryForbiddenException": Next.GIVE_UP,
    "AccessNotCheckedException": Next.RETRY,
}


@pytest.mark.parametrize("exception", KINDS, ids=lambda exception: exception.__name__)
def test_every_problem_has_its_remedy(exception: type[StreamsException]) -> None:
    assert next_step(exception("x")) is STEPS[exception.__name__]


def test_an_instance_that_is_gone_is_looked_for_and_a_defect_ends_the_query() -> None:
    assert next_step(InstanceNotReachableException("x")) is Next.REDISCOVER
    assert next_step(StreamsException("x")) is Next.GIVE_UP


def test_the_answers_own_pause_counts() -> None:
    asked = Failure(StreamsException("x"), "u", retry_after=8.0)
    assert [pause(asked, failures) for failures in (1, 9)] == [8.0, 8.0]
    assert pause(asked, 1, jitter=1.0) == 10.0, "never sooner than asked"


def test_other_pauses_grow_to_a_limit_and_are_spread() -> None:
    failed = Failure(StreamsException("x"), "u")
    pauses = [pause(failed, n) for n in range(1, 5000)]
    assert pauses[:3] == [0.1, 0.2, 0.4]
    assert (max(pauses), pauses[-1]) == (2.0, 2.0)
    assert (pause(failed, 50, jitter=0.5), pause(failed, 50, jitter=1.0)) == (1.5, 1.0)


def directory(*urls: str | None, key_format: str | None = "string") -> Directory:
    """Of a store with as many partitions, each on one of the URLs, or on none."""
    owners = [{"partition": n, "instance": url, "url": url} for n, url in enumerate(urls) if url is not None]
    document = {"store": "counts", "partitions": len(urls), "owners": owners, "keyFormat": key_format}
    return directory_of(document)


def test_every_partition_is_asked_of_one_instance() -> None:
    assert directory("a", "b", "a").partitions_by_url() == {"a": (0, 2), "b": (1,)}
    assert directory("a", "b", None).partitions_by_url(only=1) == {"b": (1,)}


def test_a_partition_that_nobody_has_is_worth_a_retry_and_is_named() -> None:
    with pytest.raises(StreamsRebalancingException, match="'counts': partitions 0, 2 is on no instance"):
        directory(None, "b", None).partitions_by_url()


def test_a_partition_that_there_is_not_is_refused() -> None:
    with pytest.raises(InvalidStateStorePartitionException, match="has 2 partitions, numbered from 0, so partition 2"):
        directory("a", "b").partitions_by_url(only=2)


@pytest.mark.parametrize(("key_format", "text"), [("string", "ada"), ("long", "-7"), ("json", '{ "a": 1 }')])
def test_a_key_is_sent_where_kafkas_producers_put_it(key_format: str, text: str) -> None:
    serde = key_serde(Format(key_format, None))
    owner = str(partition_for(serde.encode(serde.parse(text)), 7))
    assert directory(*"0123456", key_format=key_format).owner_of_key(text) == owner


def test_a_key_that_can_not_be_placed_is_left_to_the_instances() -> None:
    assert directory("a", "b", key_format=None).owner_of_key("x") is None
    assert directory("a", "b", key_format="long").owner_of_key("seven") is None
    assert directory(None).owner_of_key("x") is None
