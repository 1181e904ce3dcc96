"""All topics of a cluster, asked for as AdminClient's other methods are: with futures and a deadline."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from threading import Thread

from confluent_kafka.admin import AdminClient

from streams_runtime.api.checks.topic_checks import BROKERS_OWN


def list_topics(client: AdminClient, request_timeout: float) -> Mapping[str, Future[frozenset[str]]]:
    """The names of all topics but the brokers' own, as one answer. `request_timeout` is in seconds."""
    answer: Future[frozenset[str]] = Future()

    def ask() -> None:
        try:
            found = client.list_topics(timeout=request_timeout).topics
            answer.set_result(frozenset(name for name, it in found.items() if it.error is None) - {*BROKERS_OWN})
        except BaseException as failure:
            answer.set_exception(failure)

    # AdminClient#list_topics is the one of its methods that blocks.
    Thread(target=ask, name="topic-listing", daemon=True).start()
    return {"topics": answer}
