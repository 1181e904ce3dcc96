"""Checks of manual set-up: an explicit init() and the way of setting up have to agree."""

from __future__ import annotations

from collections.abc import Iterator

from streams_runtime.api.spec.kafka_spec import InternalTopicsSpec
from streams_runtime.errors import Mistake


def init_mistakes(internal: InternalTopicsSpec) -> Iterator[Mistake]:
    """An init that nobody would carry out: with automatic set-up every rebalance makes what is missing."""
    if internal.init is not None and internal.setup == "automatic":
        yield Mistake(
            "spec.internalTopics.init",
            "asks for an explicit init while spec.internalTopics.setup is automatic, which needs none",
            "leave it out, or set setup: manual",
        )
