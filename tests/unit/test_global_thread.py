"""The global thread by itself: brokers and Spark are played."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from pipeline_kit import source, topology_of

from streams_runtime.errors import MissingSourceTopicException
from streams_runtime.processing.batch_work import Counters
from streams_runtime.restore.restore_listener import NullListener
from streams_runtime.state.state_directory import StateDirectory
from streams_runtime.states import GlobalThreadState
from streams_runtime.threads.global_thread import GlobalStreamThread

BASE = source(schema="a BIGINT") | {"name": "base", "topic": "base", "key": {"format": "long"}}
BESIDE = {"name": "beside", "from": "in", "join": {"table": "base", "key": "a", "select": {"b": "base.a"}}}


def test_a_topic_that_is_not_there_ends_the_thread_and_is_named_with_its_field(tmp_path: Path) -> None:
    heard: list[BaseException] = []
    ended = threading.Event()
    admin = SimpleNamespace(
        address="here", wait_for_broker=lambda should_stop: True, describe_topics=lambda names, config: {}
    )
    context = SimpleNamespace(
        topology=topology_of(
            [source(schema="a BIGINT"), {**BASE, "table": {"store": "base", "global": True}}], [BESIDE]
        ),
        directory=StateDirectory(tmp_path, "app", "test"),
        engine=SimpleNamespace(start=lambda: None),
        admin=admin,
        client_properties={"bootstrap.servers": "here:1"},
        exactly_once=False,
        progress=NullListener(),
        poll_seconds=0.0,
    )
    thread = GlobalStreamThread("global", cast(Any, context), lambda _, error: heard.append(error), Counters())
    thread.machine.add_listener(lambda new, _: ended.set() if new is GlobalThreadState.DEAD else None)
    thread.start()
    assert ended.wait(30)
    thread.close()
    (error,) = heard
    assert isinstance(error, MissingSourceTopicException)
    assert "base (spec.topology.sources[1].topic)" in str(error)
