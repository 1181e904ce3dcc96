"""Deleting what is processed from repartition topics, on a real broker."""

from __future__ import annotations

import logging

import pytest
from away import standing_still
from clients import make_topics, send
from waiting import eventually

from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.broker.embedded_broker import EmbeddedBroker
from streams_runtime.kafka.types import TopicPartition, TopicSpec
from streams_runtime.processing.purge import Purge

pytestmark = pytest.mark.integration


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def ask_and_hear(purge: Purge, committed: dict[TopicPartition, int]) -> None:
    purge.behind(committed)
    deletion = purge._deletion
    assert deletion is not None
    eventually(lambda: deletion.done, "the brokers have answered, or time is over")
    purge.behind(committed)


def test_what_is_processed_of_a_repartition_topic_goes_every_half_minute_and_nothing_else(broker, namespace):
    between, users = TopicPartition(f"{namespace}-between", 0), TopicPartition(f"{namespace}-users", 0)
    make_topics(broker.bootstrap_servers, **{between.topic: 1, users.topic: 1})
    for each in (between, users):
        send(broker.bootstrap_servers, each.topic, [("k", number) for number in range(10)])
    clock, admin = Clock(), Admin({"bootstrap.servers": broker.bootstrap_servers})
    try:
        purge = Purge(admin, [between.topic], clock)
        clock.now += 29
        purge.behind({between: 4, users: 4})
        assert admin.start_offsets([between, users]) == {between: 0, users: 0}
        clock.now += 1
        purge.behind({between: 4, users: 4})
        eventually(lambda: admin.start_offsets([between, users]) == {between: 4, users: 0})
        clock.now += 29
        purge.behind({between: 9, users: 9})
        assert admin.start_offsets([between, users]) == {between: 4, users: 0}
    finally:
        admin.close()


def test_brokers_that_refuse_to_delete_are_told_of_once_and_end_nothing(broker, namespace, caplog):
    """They refuse it of a compacted topic, as they do without the right to delete."""
    between = TopicPartition(f"{namespace}-between", 0)
    clock, admin = Clock(), Admin({"bootstrap.servers": broker.bootstrap_servers})
    try:
        admin.create_topics([TopicSpec(between.topic, 1, config={"cleanup.policy": "compact"})])
        send(broker.bootstrap_servers, between.topic, [("k", number) for number in range(10)])
        purge = Purge(admin, [between.topic], clock)
        for _ in range(3):
            clock.now += 30
            ask_and_hear(purge, {between: 4})
        assert admin.start_offsets([between]) == {between: 0}
        (said,) = [record for record in caplog.records if record.levelno == logging.WARNING]
        assert "POLICY_VIOLATION" in said.getMessage()
        assert "stay in the repartition topics and take space" in said.getMessage()
    finally:
        admin.close()


def test_a_broker_that_is_away_is_asked_again_later(tmp_path, namespace, caplog):
    between = TopicPartition(f"{namespace}-between", 0)
    with EmbeddedBroker(tmp_path) as own:
        make_topics(own.bootstrap_servers, **{between.topic: 1})
        send(own.bootstrap_servers, between.topic, [("k", number) for number in range(10)])
        clock, admin = Clock(), Admin({"bootstrap.servers": own.bootstrap_servers})
        impatient = Admin({"bootstrap.servers": own.bootstrap_servers}, timeout=1.0)
        purge = Purge(impatient, [between.topic], clock)

        def is_purged() -> bool:
            clock.now += 30
            purge.behind({between: 5})
            return admin.start_offsets([between]) == {between: 5}

        try:
            clock.now += 30
            with standing_still(own):
                ask_and_hear(purge, {between: 4})
            assert "The records are deleted later" in caplog.text
            eventually(is_purged)
        finally:
            impatient.close()
            admin.close()
