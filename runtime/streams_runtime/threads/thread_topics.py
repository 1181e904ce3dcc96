"""Topics that are deleted, or made anew, behind a thread's back: noticed, and made ready again."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from streams_runtime.client_context import ClientContext
from streams_runtime.errors import StreamsException
from streams_runtime.topics.pattern_watch import PatternWatch
from streams_runtime.topics.topic_watch import TopicWatch
from streams_runtime.topology.partition_counts import internal_topic_names
from streams_runtime.topology.plan import Topology

_LOGGER = logging.getLogger("streams_runtime.threads")


class ThreadTopics:
    """The topics that one thread reads and writes, and how many partitions they have."""

    def __init__(self, context: ClientContext) -> None:
        self._context = context
        self._watch = TopicWatch(context.admin, internal_topic_names(context.topology), context.users_topics)
        self._patterns = PatternWatch(context.admin, context.topology, context.client_properties)
        self._checked = False
        self._joined_with: frozenset[str] = frozenset()
        self._others_fit = False
        self._found({})

    def _found(self, counts: Mapping[str, int]) -> None:
        """What a check has found. It is kept: a thread asks at each turn."""
        self.counts = counts
        """The number of partitions of each topic, by the last check."""
        self.topology: Topology = self._context.topology.resolved(counts)
        """The topology with the topics that patterns fit, by the last check."""
        self.read = frozenset(topic for sub in self.topology.subtopologies for topic in sub.source_topics)
        """The topics that tasks read, by the last check."""

    def to_join_with(self) -> frozenset[str]:
        """The topics that a member subscribes to from now on."""
        self._joined_with, self._others_fit = self.read, False
        self._watch.follow(self._joined_with)
        return self._joined_with

    @property
    def are_others(self) -> bool:
        """Whether some are gone, made anew, or come or gone by a pattern. Asks now and then, and never waits for
        brokers.
        """
        self._others_fit = self._others_fit or self._patterns.differs(self._joined_with)
        return bool(self._watch.gone() or self._watch.renewed() or self.others_fit)

    @property
    def others_fit(self) -> bool:
        """Whether patterns fit other topics than those that the member has joined with, as far as is known."""
        return self._others_fit or (bool(self._joined_with) and self._joined_with != self.read)

    def check(self) -> None:
        """A rebalance's checks. Raises as ClientContext.make_topics_ready does."""
        self._found(self._context.make_topics_ready())
        self._checked = True

    def check_once(self) -> None:
        """The same, once since the assignment changed."""
        if not self._checked:
            self.check()

    def assignment_changed(self) -> None:
        """`check_once` checks again."""
        self._checked = False

    def note(self, ids: Mapping[str, str]) -> None:
        """Take in the ids of topics as tasks found them."""
        self._watch.note(ids, ())

    def make_ready(self) -> Mapping[str, str]:
        """Treat internal topics that are gone as at a rebalance; the topics that are others now, with their ids.

        Call `seen_to` once nothing goes by the old ones any more.

        Raises MissingInternalTopicException where they may not be made, and what else make_topics_ready raises.
        """
        gone = self._watch.gone()
        if gone:
            _LOGGER.warning("the brokers do not have internal topics any more: %s", ", ".join(sorted(gone)))
            self._found(self._context.make_topics_ready())
            self._watch.note(self._context.admin.topic_ids(self._watch.names), ())
        if self.others_fit:
            before = self._joined_with
            self._found(self._context.make_topics_ready())
            come, gone_now = sorted(self.read - before), sorted(before - self.read)
            _LOGGER.info("patterns fit other topics: come %s, gone %s", come, gone_now)
        renewed = self._watch.renewed()
        if renewed:
            _LOGGER.warning("topics were deleted and made anew: %s", ", ".join(sorted(renewed)))
        return renewed

    def seen_to(self) -> None:
        """What was noticed has been seen to: look anew."""
        self._watch.forget()

    def look_now(self) -> bool:
        """Ask the brokers for all topics and wait for the answer; False: there was none."""
        names = self._watch.names
        try:
            ids = self._context.admin.topic_ids(names)
        except StreamsException:
            return False
        self._watch.note(ids, names - ids.keys())
        return True
