"""One application's topics as one thing: look, set up, init(), delete, each within a deadline."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, TypeVar

from streams_runtime.api import StreamsApplication
from streams_runtime.api.spec.operations.reset_spec import ResetSpec
from streams_runtime.errors import (
    BrokerNotAvailableException,
    ConfigException,
    InvalidApplicationException,
    MisconfiguredInternalTopicException,
    MissingSourceTopicException,
    Mistake,
    StreamsException,
    TopologyException,
)
from streams_runtime.kafka.client.client_properties import client_properties
from streams_runtime.kafka.client.security import config_path
from streams_runtime.topics.admins import Admins, OfItsOwn
from streams_runtime.topics.reset.reset_plan import OffsetMove, ResetOutlook, plan_reset
from streams_runtime.topics.reset.reset_steps import require_no_members, set_offsets, survey
from streams_runtime.topics.setup_policy import NONE_IF_INCOMPLETE, InitParameters, explicit
from streams_runtime.topics.table_changelogs import former_changelogs
from streams_runtime.topics.topic_manager import InternalTopicManager, Survey
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.partition_counts import internal_topic_names, tasks
from streams_runtime.topology.plan import Topology

# Seconds of a deadline that are kept for putting away what was made, when the brokers stop answering.
_RESERVE = 2.0
# Seconds between two looks at topics that are being deleted.
_TICK = 0.1

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TopicsReport:
    """Names of internal topics by what was found, in the order of the plan; `tasks` is the number of all tasks."""

    existing: tuple[str, ...]
    missing: tuple[str, ...]
    tasks: int
    created: tuple[str, ...] = ()

    @property
    def ready(self) -> bool:
        """Whether nothing is missing."""
        return not self.missing


@dataclass(frozen=True, slots=True)
class InitOutcome:
    """What an init() came to: `created` are the topics that it made, `existing` those that were there."""

    created: tuple[str, ...]
    existing: tuple[str, ...]
    tasks: int

    @property
    def result(self) -> Literal["Created", "AlreadySetUp"]:
        """In one word, as the resource's status has it."""
        return "Created" if self.created else "AlreadySetUp"


class ApplicationTopics:
    """The topics around one application. Every call blocks; one thread uses an object at a time.

    Each call ends within about `deadline` seconds, and may be repeated. All of them raise
    BrokerNotAvailableException (try again later) and ConfigException (the brokers refuse the login, a right or a
    setting: correct it).
    """

    def __init__(
        self,
        application: StreamsApplication,
        secret: Mapping[str, str] | None = None,
        deadline: float = 20.0,
        bootstrap_servers: str | None = None,
        admins: Admins | None = None,
    ) -> None:
        """Connects to nothing yet.

        `secret` are client properties that win over `spec.kafka.config`; no exception tells their values.
        `deadline` is in seconds, for each call. `bootstrap_servers` absent: `spec.kafka.bootstrapServers`.
        `admins` absent: a connection of its own.

        Raises:
            ConfigException: no address, or client properties that can't be used; all of them are listed.
        """
        address = bootstrap_servers or application.spec.kafka.bootstrap_servers
        if address is None:
            raise ConfigException(
                f"spec.kafka.bootstrapServers is missing, and nobody else says where the brokers of"
                f" {application.name} are. Give their address, host:port"
            )
        self.address = address
        self._application = application
        self._topology: Topology = build_topology(application)
        self._work = max(deadline - _RESERVE, deadline / 2)
        self._deadline = deadline
        self._admins = admins or OfItsOwn()
        properties = _properties(address, application.spec.kafka.config, secret or {})
        self._admin = self._admins.take(properties, self._work)
        self._sound, self._closed = True, False
        self._manager = InternalTopicManager(self._admin, timeout=self._work)

    def check(self) -> TopicsReport:
        """Looks, and changes nothing; internal topics that are missing are in the report.

        Raises:
            MissingSourceTopicException, TopologyException: users' topics are missing or do not fit together.
            MisconfiguredInternalTopicException: internal topics are there and do not fit.
        """
        return self._bounded(lambda: self._report(self._manager.look(self._topology, self._application.spec)))

    def setup(self) -> TopicsReport:
        """Makes whatever internal topic is missing (automatic set-up), all or none; raises what `check` raises."""

        def work() -> TopicsReport:
            done = self._manager.set_up(self._topology, self._application.spec)
            return self._report(done.survey, done.created)

        return self._bounded(work)

    def init(self, parameters: InitParameters = NONE_IF_INCOMPLETE) -> InitOutcome:
        """KIP-698's init(): makes all internal topics, or of an incomplete set the kinds that `parameters` enable.

        Raises what `check` raises, and:
            MissingInternalTopicException: some are missing that may not be made. Nothing was made.
        """

        def work() -> InitOutcome:
            seconds = None if parameters.seconds is None else min(parameters.seconds, self._work)
            done = self._manager.set_up(self._topology, self._application.spec, explicit(parameters), seconds)
            return self._outcome(done.survey, done.created)

        return self._bounded(work)

    def rehearse(self, parameters: InitParameters = NONE_IF_INCOMPLETE) -> InitOutcome:
        """What `init` would do now, its exceptions included; `created` is what it would make. Changes nothing."""

        def work() -> InitOutcome:
            survey = self._manager.rehearse(self._topology, self._application.spec, explicit(parameters))
            return self._outcome(survey, tuple(topic.name for topic in survey.missing))

        return self._bounded(work)

    def delete(self) -> tuple[str, ...]:
        """Removes the internal topics that the plan names, whatever they look like; returns those that were there.

        Nobody else's topic is touched: of names that an earlier plan had nothing is known. Returns when the brokers
        show none of them any more.
        """
        return self._bounded(self._delete)

    def rehearse_reset(self, reset: ResetSpec, now: float) -> ResetOutlook:
        """What a reset would do, or why it is refused; `now` in seconds since 1970. Changes nothing."""

        def work() -> ResetOutlook:
            exactly_once = self._application.spec.processing.exactly_once
            found = survey(self._admin, reset, self._topology, exactly_once, self._problems())
            return plan_reset(reset, self._topology, found, now)

        return self._bounded(work)

    def reset_topics(self) -> TopicsReport:
        """Deletes the internal topics that the plan names and makes them anew, empty, however they are set up.

        Raises what `setup` raises, and:
            IllegalStateException: the group has members. Nothing was done.
        """

        def work() -> TopicsReport:
            require_no_members(self._admin, self._topology.application_id)
            self._delete()
            done = self._manager.set_up(self._topology, self._application.spec, is_begun=False)
            return self._report(done.survey, done.created)

        return self._bounded(work)

    def reset_offsets(self, moves: Sequence[OffsetMove]) -> None:
        """Sets the group's offsets, all or none. Raises IllegalStateException: the group has members."""
        self._bounded(lambda: set_offsets(self._admin, self._topology.application_id, moves))

    def close(self) -> None:
        """Frees the connections. May be called twice."""
        if not self._closed:
            self._closed = True
            self._admins.give_back(self._admin, sound=self._sound)

    def _delete(self) -> tuple[str, ...]:
        names = (*internal_topic_names(self._topology), *former_changelogs(self._admin, self._topology))
        found = left = self._admin.describe_topics(names, config=False)
        ends_at = time.monotonic() + self._work
        while left:
            self._admin.delete_topics(left)
            left = self._admin.describe_topics(names, config=False)
            if left and time.monotonic() > ends_at:
                raise BrokerNotAvailableException(
                    f"the brokers at {self.address} still show internal topics that they were told to delete:"
                    f" {', '.join(left)}. Try again, or delete them by hand (kafka-topics.sh --delete)"
                )
            if left:
                time.sleep(_TICK)
        return tuple(name for name in names if name in found)

    def _problems(self) -> Sequence[str]:
        """What keeps the application from running as it is; internal topics that do not fit are emptied anyway."""
        try:
            with suppress(MisconfiguredInternalTopicException):
                self._manager.look(self._topology, self._application.spec)
        except (MissingSourceTopicException, TopologyException) as error:
            return [str(error)]
        return []

    def _bounded(self, work: Callable[[], T]) -> T:
        try:
            with self._admin.within(self._work):
                return work()
        except BaseException:
            self._sound = False
            raise

    def _outcome(self, survey: Survey, created: tuple[str, ...]) -> InitOutcome:
        report = self._report(survey, created)
        there = tuple(name for name in report.existing if name not in created)
        return InitOutcome(created, there, report.tasks)

    def _report(self, survey: Survey, created: tuple[str, ...] = ()) -> TopicsReport:
        return TopicsReport(
            existing=tuple(topic.name for topic in survey.existing),
            missing=tuple(topic.name for topic in survey.missing),
            tasks=len(tasks(self._topology, survey.counts)),
            created=created,
        )


def _properties(address: str, config: Mapping[str, str], secret: Mapping[str, str]) -> dict[str, str]:
    """Client properties; what is wrong with a secret one is told by its key, without its value."""
    try:
        return client_properties(address, {**config, **secret})
    except InvalidApplicationException as error:
        raise InvalidApplicationException([_discreet(each, secret) for each in error.mistakes]) from None
    except StreamsException as error:
        raise ConfigException(_without(str(error), secret)) from None


def _discreet(mistake: Mistake, secret: Mapping[str, str]) -> Mistake:
    keys = {config_path(key): key for key in secret}
    path = mistake.path
    if path in keys:
        path = f"spec.kafka.secretRef (key {keys[path]})"
    return Mistake(path, _without(mistake.found, secret), _without(mistake.remedy, secret))


def _without(text: str, secret: Mapping[str, str]) -> str:
    for value in sorted(filter(None, secret.values()), key=len, reverse=True):
        # Some messages show what a value is read as, in capitals.
        text = re.sub(re.escape(value), "…", text, flags=re.IGNORECASE)
    return text
