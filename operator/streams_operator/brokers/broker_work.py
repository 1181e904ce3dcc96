"""Work at the brokers: in threads, one at a time for each application, few at a time for each cluster."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

import orjson

from streams_operator.brokers.broker_addresses import servers_from
from streams_operator.brokers.broker_slots import BrokerSlots, cluster_of
from streams_operator.brokers.reset_work import RESET_STEPS, ResetTopics, answer_to, reset_step
from streams_operator.model import InitResult, KafkaWork, Key, ResetAnswer, TopicsState
from streams_runtime.api import StreamsApplication
from streams_runtime.errors import (
    MisconfiguredInternalTopicException,
    MissingInternalTopicException,
    MissingSourceTopicException,
    StreamsException,
)
from streams_runtime.topics.admins import Admins, KeptAdmins
from streams_runtime.topics.application_topics import ApplicationTopics, InitOutcome, TopicsReport
from streams_runtime.topics.reset.reset_plan import ResetOutlook
from streams_runtime.topics.setup_policy import InitParameters

_LOGGER = logging.getLogger("streams_operator.brokers.broker_work")

_DEADLINE = 20.0  # seconds that one piece of work may take at the brokers
_UNREACHABLE = "BrokerNotAvailable"
_OVERDUE = 90.0  # seconds after which a thread is given up: its answer, should it ever come, counts for nothing


class Topics(ResetTopics, Protocol):
    """ApplicationTopics, as far as it is used here."""

    def check(self) -> TopicsReport: ...

    def setup(self) -> TopicsReport: ...

    def init(self, parameters: InitParameters = ...) -> InitOutcome: ...

    def delete(self) -> tuple[str, ...]: ...

    def close(self) -> None: ...


Open = Callable[[StreamsApplication, Mapping[str, str] | None, float], Topics]


def opened_with(admins: Admins) -> Open:
    """Opens an application's topics, at the brokers that its pods would reach by the same address.

    That raises ConfigException for a client property that can't be used.
    """

    def open_topics(application: StreamsApplication, secret: Mapping[str, str] | None, deadline: float) -> Topics:
        servers, namespace = application.spec.kafka.bootstrap_servers, application.metadata.namespace
        if servers is not None and namespace is not None:
            servers = servers_from(namespace, servers)
        return ApplicationTopics(application, secret, deadline, servers, admins)

    return open_topics


@dataclass(frozen=True, slots=True)
class BrokerState:
    """What is known of one application at the brokers."""

    topics: TopicsState | None = None
    init: InitResult | None = None
    topics_deleted: bool = False
    reset: ResetAnswer | None = None


@dataclass(slots=True)
class _Application:
    uid: str
    state: BrokerState = field(default_factory=BrokerState)
    fingerprint: str = ""  # of what `state.topics` is about
    reset_about: str = ""  # the same for `state.reset`
    task: asyncio.Task[None] | None = None
    current: KafkaWork | None = None
    next: tuple[KafkaWork, StreamsApplication, Mapping[str, str] | None] | None = None


class Brokers:
    """The last results, and the work under way. All methods belong to the event loop's thread."""

    def __init__(
        self,
        on_result: Callable[[Key, KafkaWork, BrokerState], None],
        open: Open | None = None,
        clock: Callable[[], float] = time.time,
        overdue: float = _OVERDUE,
        measured: Callable[[str, bool, float], None] = lambda *_: None,
    ) -> None:
        """`on_result`: called with each result, also with a failure. `open` absent: real brokers. `measured`: called
        with the kind of work, whether it has failed, and its seconds.
        """
        self._on_result = on_result
        self._admins = KeptAdmins()
        self._open = open or opened_with(self._admins)
        self._clock = clock
        self._overdue = overdue
        self._measured = measured
        self._applications: dict[Key, _Application] = {}
        self._slots = BrokerSlots()

    def state(self, key: Key, uid: str, application: StreamsApplication | None) -> BrokerState:
        """The results for this resource, as far as they are about the topics that it now asks for."""
        known = self._applications.get(key)
        if known is None or known.uid != uid:
            return BrokerState()
        if application is None:
            return known.state
        state, now = known.state, fingerprint(application)
        if known.fingerprint != now:
            state = replace(state, topics=None)
        # What was done stays done; what was found may be otherwise in another topology.
        if state.reset is not None and state.reset.step == "reset-check" and known.reset_about != now:
            state = replace(state, reset=None)
        return state

    def ask(
        self,
        key: Key,
        uid: str,
        application: StreamsApplication,
        secret: Mapping[str, str] | None,
        work: KafkaWork,
    ) -> None:
        """Begin `work`; `on_result` is called at its end. Work that is under way is not begun twice; other work waits
        for its end, and of that the newest alone.
        """
        known = self._applications.get(key)
        if known is None or known.uid != uid:
            self.forget(key)
            known = self._applications[key] = _Application(uid)
        if known.task is None:
            known.task = asyncio.create_task(self._run(key, known, work, application, secret))
            known.current = work
        elif known.current != work or known.fingerprint not in ("", fingerprint(application)):
            known.next = (work, application, secret)

    def refuse(
        self, key: Key, uid: str, application: StreamsApplication, failure: tuple[str, str], work: KafkaWork
    ) -> None:
        """The brokers can't even be asked for `work`; `failure` (reason, message) stands for their answer."""
        known = self._applications.setdefault(key, _Application(uid))
        known.uid = uid
        self._take(known, application, work, _Outcome(failure=failure))

    def forget(self, key: Key) -> None:
        """The resource has gone; a thread that is at work for it ends on its own and counts for nothing."""
        known = self._applications.pop(key, None)
        if known is not None and known.task is not None:
            known.task.cancel()

    def clear(self) -> None:
        """Forget all, when others take over."""
        for key in list(self._applications):
            self.forget(key)
        self._admins.close()

    async def _run(
        self,
        key: Key,
        known: _Application,
        work: KafkaWork,
        application: StreamsApplication,
        secret: Mapping[str, str] | None,
    ) -> None:
        try:
            async with self._slots.slot(key.namespace, cluster_of(key.namespace, application, secret)):
                began = time.monotonic()
                outcome = await self._in_thread(key, work, application, secret)
                self._measured(work.kind, outcome.failure is not None, time.monotonic() - began)
            self._take(known, application, work, outcome)
        finally:
            known.task, known.current = None, None
            if known.next is not None and self._applications.get(key) is known:
                work_next, application_next, secret_next = known.next
                known.next = None
                self.ask(key, known.uid, application_next, secret_next, work_next)
        if self._applications.get(key) is known:
            self._on_result(key, work, known.state)

    async def _in_thread(
        self, key: Key, work: KafkaWork, application: StreamsApplication, secret: Mapping[str, str] | None
    ) -> _Outcome:
        """In a thread of its own, since one that hangs can only be left behind; the process may end over it."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[_Outcome] = loop.create_future()

        def deliver(outcome: _Outcome) -> None:
            if not future.done():
                future.set_result(outcome)

        def body() -> None:
            outcome = _carry_out(work, application, secret, self._open)
            if not loop.is_closed():
                loop.call_soon_threadsafe(deliver, outcome)

        threading.Thread(target=body, name=f"kafka-{work.kind}-{key}", daemon=True).start()
        try:
            async with asyncio.timeout(self._overdue):
                return await future
        except TimeoutError:
            text = (
                f"the work ({work.kind}) at {application.spec.kafka.bootstrap_servers} has not ended in"
                f" {self._overdue:g} s. Check the brokers; it is tried again"
            )
            return _Outcome(failure=(_UNREACHABLE, text))

    def _take(self, known: _Application, application: StreamsApplication, work: KafkaWork, outcome: _Outcome) -> None:
        if work.kind in RESET_STEPS:
            answer = answer_to(work, self._clock(), outcome.outlook, outcome.failure, known.state.reset)
            known.state, known.reset_about = replace(known.state, reset=answer), fingerprint(application)
            if outcome.report is None:
                return
        self._note(known, application, outcome.report, outcome.failure)
        if outcome.init is not None:
            known.state = replace(known.state, init=InitResult(work.nonce, *outcome.init))
        if outcome.deleted:
            known.state = replace(known.state, topics_deleted=True)

    def _note(
        self,
        known: _Application,
        application: StreamsApplication,
        report: TopicsReport | None = None,
        failure: tuple[str, str] | None = None,
    ) -> None:
        now, new = self._clock(), fingerprint(application)
        before = known.state.topics if known.fingerprint == new else None
        if failure is not None and before is not None and before.failure is not None:
            # Its text counts attempts and milliseconds; the same failure again is no news, and no write.
            failure = before.failure if failure[0] == before.failure[0] == _UNREACHABLE else failure
        if report is not None:
            topics = TopicsState(
                now, not report.missing and failure is None, report.existing, report.missing, report.tasks, failure
            )
        elif before is not None:
            topics = replace(before, checked_at=now, ready=False, failure=failure)
        else:
            topics = TopicsState(now, False, failure=failure)
        known.fingerprint = new
        known.state = replace(known.state, topics=topics)


def fingerprint(application: StreamsApplication) -> str:
    """Of everything in an application that its topics depend on."""
    spec = application.spec.model_dump(
        mode="json", include={"application_id", "kafka", "internal_topics", "topology", "processing"}
    )
    for name in ("init", "deletionPolicy"):
        del spec["internalTopics"][name]
    return hashlib.sha256(orjson.dumps(spec, option=orjson.OPT_SORT_KEYS)).hexdigest()


_PLURAL = {MissingSourceTopicException, MissingInternalTopicException, MisconfiguredInternalTopicException}


def reason(error: Exception) -> str:
    """The reason of a condition, for an exception: its class without `Exception`, in the plural where it lists."""
    name = type(error).__name__.removesuffix("Exception")
    return f"{name}s" if type(error) in _PLURAL else name


@dataclass(frozen=True, slots=True)
class _Outcome:
    report: TopicsReport | None = None
    failure: tuple[str, str] | None = None
    init: tuple[str, str] | None = None  # result, message
    deleted: bool = False
    outlook: ResetOutlook | None = None


def _carry_out(
    work: KafkaWork, application: StreamsApplication, secret: Mapping[str, str] | None, open_topics: Open
) -> _Outcome:
    """In the thread; never raises."""
    try:
        topics = open_topics(application, secret, _DEADLINE)
        try:
            return _work(topics, work, application)
        finally:
            topics.close()
    except StreamsException as error:
        failure = (reason(error), str(error))
    except Exception as error:
        _LOGGER.exception("work at the brokers failed with an unexpected exception", extra={"work": work.kind})
        failure = ("InternalError", f"{type(error).__name__}: {error}. The operator's log has more; please report it")
    return _Outcome(failure=failure, init=failure if work.kind == "init" else None)


def _work(topics: Topics, work: KafkaWork, application: StreamsApplication) -> _Outcome:
    if work.kind in RESET_STEPS:
        outlook, report = reset_step(topics, work, time.time())
        return _Outcome(report, outlook=outlook)
    if work.kind == "setup":
        return _Outcome(topics.setup())
    if work.kind == "delete":
        topics.delete()
        return _Outcome(deleted=True)
    if work.kind == "init":
        return _init(topics, application)
    return _Outcome(topics.check())


def _init(topics: Topics, application: StreamsApplication) -> _Outcome:
    try:
        created = topics.init(InitParameters.from_spec(application.spec.internal_topics.init)).created
    except StreamsException as error:
        result = (reason(error), str(error))
    else:
        result = ("Created", f"created {', '.join(created)}") if created else ("AlreadySetUp", "")
    try:
        return _Outcome(topics.check(), init=result)
    except StreamsException as error:
        return _Outcome(failure=(reason(error), str(error)), init=result)
