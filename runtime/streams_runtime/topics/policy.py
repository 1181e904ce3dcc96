"""Which missing internal topics may be made: the one thing in which ways of setting up differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from streams_runtime.topology.plan import InternalTopic

SetupPolicy = Callable[[Sequence[InternalTopic], Sequence[InternalTopic]], Sequence[InternalTopic]]
"""Of (expected, missing): the topics to make. Raises if missing ones may not be made; then nothing is
made.
"""


def automatic(expected: Sequence[InternalTopic], missing: Sequence[InternalTopic]) -> Sequence[InternalTopic]:
    """Makes whatever is missing (`internalTopics.setup: automatic`)."""
    del expected
    return missing
