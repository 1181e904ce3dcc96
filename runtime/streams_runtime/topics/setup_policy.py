"""Which missing internal topics may be made: the one thing in which ways of setting up differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from streams_runtime.api.spec.kafka_spec import InitSpec
from streams_runtime.errors import ConfigException, MissingInternalTopicException
from streams_runtime.topology.plan import InternalTopic

SetupPolicy = Callable[[Sequence[InternalTopic], Sequence[InternalTopic]], Sequence[InternalTopic]]
"""Of (expected, missing): the topics to make. Raises if missing ones may not be made; then nothing is
made.
"""

_COMMAND = "streamsapp init FILE"
_NONCE = "a new spec.internalTopics.init.nonce"
_FIELDS = {
    "repartition": "setupRepartitionTopicsIfIncomplete",
    "changelog": "setupChangelogTopicsIfIncomplete",
}


@dataclass(frozen=True, slots=True)
class InitParameters:
    """Which missing internal topics an init() creates when others exist (InitParameters of KIP-698).

    The default enables none: a topic that is missing beside others was probably deleted, with the records in it.
    Immutable: each method returns new parameters.
    """

    setup_repartition_topics_if_incomplete_enabled: bool = False
    setup_changelog_topics_if_incomplete_enabled: bool = False
    timeout: timedelta | None = None
    """How long new topics may take until they are usable on all brokers; None: a minute."""

    @classmethod
    def from_spec(cls, spec: InitSpec | None) -> InitParameters:
        """The parameters that `spec.internalTopics.init` asks for; the default where it is absent."""
        if spec is None:
            return cls()
        return cls(spec.setup_repartition_topics_if_incomplete, spec.setup_changelog_topics_if_incomplete)

    @property
    def setup_internal_topics_if_incomplete_enabled(self) -> bool:
        """Whether repartition topics and changelog topics are both enabled."""
        return self.setup_repartition_topics_if_incomplete_enabled and self.setup_changelog_topics_if_incomplete_enabled

    @property
    def seconds(self) -> float | None:
        """How long new topics may take, in seconds; None: a minute."""
        return None if self.timeout is None else self.timeout.total_seconds()

    def enable_setup_repartition_topics_if_incomplete(self) -> InitParameters:
        """Create missing repartition topics; the records in them that were not processed yet stay lost."""
        return replace(self, setup_repartition_topics_if_incomplete_enabled=True)

    def disable_setup_repartition_topics_if_incomplete(self) -> InitParameters:
        """Have init() raise MissingInternalTopicException when a repartition topic is missing beside others."""
        return replace(self, setup_repartition_topics_if_incomplete_enabled=False)

    def enable_setup_changelog_topics_if_incomplete(self) -> InitParameters:
        """Create missing changelog topics, empty: what a store held can't be restored from them."""
        return replace(self, setup_changelog_topics_if_incomplete_enabled=True)

    def disable_setup_changelog_topics_if_incomplete(self) -> InitParameters:
        """Have init() raise MissingInternalTopicException when a changelog topic is missing beside others."""
        return replace(self, setup_changelog_topics_if_incomplete_enabled=False)

    def enable_setup_internal_topics_if_incomplete(self) -> InitParameters:
        """Create missing internal topics of both kinds, with what that loses of each."""
        return replace(
            self,
            setup_repartition_topics_if_incomplete_enabled=True,
            setup_changelog_topics_if_incomplete_enabled=True,
        )

    def disable_setup_internal_topics_if_incomplete(self) -> InitParameters:
        """Have init() raise MissingInternalTopicException when a topic of either kind is missing beside others."""
        return replace(
            self,
            setup_repartition_topics_if_incomplete_enabled=False,
            setup_changelog_topics_if_incomplete_enabled=False,
        )

    def with_timeout(self, timeout: timedelta) -> InitParameters:
        """Have init() raise BrokerNotAvailableException when new topics are not usable after `timeout`.

        Raises ConfigException: it is not more than zero.
        """
        if timeout <= timedelta(0):
            raise ConfigException(f"the timeout of init() has to be more than zero, and is {timeout}")
        return replace(self, timeout=timeout)


NONE_IF_INCOMPLETE = InitParameters()
"""The default of every init()."""


def automatic(expected: Sequence[InternalTopic], missing: Sequence[InternalTopic]) -> Sequence[InternalTopic]:
    """Makes whatever is missing (`internalTopics.setup: automatic`)."""
    del expected
    return missing


def manual(expected: Sequence[InternalTopic], missing: Sequence[InternalTopic]) -> Sequence[InternalTopic]:
    """Makes nothing (a rebalance with `internalTopics.setup: manual`).

    Raises MissingInternalTopicException with all that is missing: set it up by an init().
    """
    if not missing:
        return missing
    text = f"internal topics are missing, and spec.internalTopics.setup is manual: {_listed(missing)}"
    if len(missing) == len(expected):
        raise MissingInternalTopicException(f"{text}. Set them up: {_COMMAND}, or {_NONCE}")
    raise MissingInternalTopicException(
        f"{text} (there are: {_others(expected, missing)}). Find out who deleted them, since what was in them is"
        f" lost. {_with_parameters(missing)}"
    )


def explicit(parameters: InitParameters) -> SetupPolicy:
    """What init(parameters) may make: all when there is none, of some the enabled kinds (KIP-698's table)."""
    enabled = {
        "repartition": parameters.setup_repartition_topics_if_incomplete_enabled,
        "changelog": parameters.setup_changelog_topics_if_incomplete_enabled,
    }

    def policy(expected: Sequence[InternalTopic], missing: Sequence[InternalTopic]) -> Sequence[InternalTopic]:
        if len(missing) == len(expected):
            return missing
        refused = [topic for topic in missing if not enabled[topic.kind]]
        if not refused:
            return missing
        kinds = " and ".join(dict.fromkeys(f"{topic.kind} topics" for topic in refused))
        raise MissingInternalTopicException(
            f"internal topics are missing: {_listed(missing)}, while others are there: {_others(expected, missing)};"
            f" this init() does not set up missing {kinds}, and has made nothing. Find out who deleted them, since"
            f" what was in them is lost. {_with_parameters(missing)}"
        )

    return policy


def _listed(topics: Iterable[InternalTopic]) -> str:
    return ", ".join(topic.name for topic in topics)


def _others(expected: Sequence[InternalTopic], missing: Sequence[InternalTopic]) -> str:
    return _listed(topic for topic in expected if topic not in missing)


def _with_parameters(missing: Sequence[InternalTopic]) -> str:
    kinds = list(dict.fromkeys(topic.kind for topic in missing))
    options = " ".join(f"--setup-{kind}-topics-if-incomplete" for kind in kinds)
    fields = " and ".join(f"{_FIELDS[kind]}: true" for kind in kinds)
    return f"To set them up empty: {_COMMAND} {options}, or {_NONCE} with {fields}"
