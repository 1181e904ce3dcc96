"""StreamsClient: what KafkaStreams is. Start, close, states, stores."""

from __future__ import annotations

import logging
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence

from streams_runtime.api import StreamsApplication
from streams_runtime.engine import EngineRoom
from streams_runtime.errors import IllegalStateException
from streams_runtime.inspection import ClientInspection
from streams_runtime.kafka.admin import Admin
from streams_runtime.kafka.changelog_consumer import ChangelogConsumer
from streams_runtime.kafka.group_consumer import Membership
from streams_runtime.kafka.properties import client_properties, java_properties
from streams_runtime.query.handles import ReadOnlyKeyValueStore, StoreQueryParameters, open_store
from streams_runtime.query.server import QueryServer
from streams_runtime.restore.bulk import BulkLoader
from streams_runtime.restore.listener import StateRestoreListener
from streams_runtime.restore.reader import StoreChangelogReader
from streams_runtime.restore.updater import ProgressListener, StateUpdater
from streams_runtime.settings import InstanceSettings
from streams_runtime.state.directory import StateDirectory
from streams_runtime.states import CLIENT, ClientState, StateListener, StateMachine, ThreadState
from streams_runtime.tasks.intake import IntakeLimits
from streams_runtime.threads import StreamThread
from streams_runtime.topics.manager import InternalTopicManager
from streams_runtime.topics.policy import NONE_IF_INCOMPLETE, InitParameters, automatic, explicit, manual
from streams_runtime.topology.build import build_topology

_LOGGER = logging.getLogger("streams_runtime.client")
_FAILING = frozenset({ClientState.PENDING_ERROR, ClientState.ERROR})
_ENDED = frozenset({ClientState.NOT_RUNNING, ClientState.ERROR})
_CLOSING = frozenset({ClientState.PENDING_SHUTDOWN, ClientState.NOT_RUNNING})
_BATCH_GRACE = 10.0  # seconds that a running batch has to end at a close, before Spark's jobs are cancelled


class StreamsClient:
    """One instance of an application: its threads, stores, query server and Spark session.

    `start` and `close` return; the states (states.CLIENT) tell the rest. A client that ends in ERROR keeps its
    exception in `error`, and nobody may start it again before a person has looked at it (KIP-696).
    """

    def __init__(
        self,
        application: StreamsApplication,
        settings: InstanceSettings,
        restore_listener: StateRestoreListener | None = None,
    ) -> None:
        """Builds the plan; connects to nothing.

        Raises:
            ConfigException: a setting that can't be used; the message names the field.
        """
        kafka, processing = application.spec.kafka, application.spec.processing
        self.application = application
        self.topology = build_topology(application)
        self.client_properties: Mapping[str, str] = client_properties(settings.bootstrap_servers, kafka.config)
        self.admin = Admin(self.client_properties)
        self.directory = StateDirectory(settings.state_dir, application.application_id, settings.instance)
        self.limits = IntakeLimits(processing.max_batch_records, processing.commit_interval.total_seconds())
        self.partition_counts: Mapping[str, int] = {}
        self.error: BaseException | None = None
        self.url = ""
        self._settings = settings
        self._progress = ProgressListener(restore_listener)
        self._transitions = [(ClientState.CREATED, time.time())]
        self._machine = StateMachine(CLIENT, f"client {settings.instance}")
        self._machine.add_listener(self._note_transition)
        self._topics = InternalTopicManager(self.admin)
        java = java_properties(settings.bootstrap_servers, kafka.config)
        self.engine = EngineRoom(application, self.topology, java)
        self._threads: list[StreamThread] = []
        self._inspection = ClientInspection(self, self.topology, self.engine, self.admin, self._progress)
        self._server = QueryServer(self._inspection, settings.host, settings.port)

    @property
    def state(self) -> ClientState:
        """The client's state."""
        return self._machine.state

    @property
    def instance(self) -> str:
        """The client's static name in the group."""
        return self._settings.instance

    @property
    def threads(self) -> Sequence[StreamThread]:
        """The stream threads."""
        return tuple(self._threads)

    @property
    def transitions(self) -> Sequence[tuple[ClientState, float]]:
        """The states that the client has been in, each with when it came there (seconds since 1970)."""
        return tuple(self._transitions)

    def set_state_listener(self, listener: StateListener[ClientState]) -> None:
        """Call `listener(new, old)` after every move, in order.

        Raises:
            IllegalStateException: the client is no longer CREATED.
        """
        if self.state is not ClientState.CREATED:
            raise IllegalStateException(
                f"a state listener can be set only in CREATED; {self.instance} is {self.state}. Set it before start()"
            )
        self._machine.add_listener(listener)

    def init(self, parameters: InitParameters = NONE_IF_INCOMPLETE) -> None:
        """Set up the application's topics on the brokers before `start` (KIP-698); one client of them all is enough.

        Makes every check that a rebalance makes. No internal topic there: all are made. All there: nothing is done.
        Some there: those are made whose kind `parameters` enable, if that is all of the missing ones. All or nothing;
        may be repeated, and several clients may call it at once. With automatic set-up it is allowed, not needed.

        Raises:
            IllegalStateException: the client is no longer CREATED.
            MissingInternalTopicException: some are missing that may not be made; the message lists them.
            MisconfiguredInternalTopicException: internal topics are there and do not fit; correct them.
            MissingSourceTopicException, TopologyException: users' topics are missing or do not fit together.
            BrokerNotAvailableException: call again.
            ConfigException: the brokers refuse the settings of the new topics, the login, or a right.
        """
        if self.state is not ClientState.CREATED:
            raise IllegalStateException(
                f"init() is for a client that is CREATED; {self.instance} is {self.state}. Call it before start(), or"
                " run streamsapp init"
            )
        self._topics.set_up(self.topology, self.application.spec, explicit(parameters))

    def start(self) -> None:
        """Start everything and return; wait for RUNNING with `wait_for`.

        What fails from here on, the state folder's lock included, ends in ERROR with its exception in `error`.

        Raises:
            IllegalStateException: the client was started or closed before.
        """
        if self.state is not ClientState.CREATED or not self._machine.move(ClientState.REBALANCING):
            raise IllegalStateException(
                f"client {self.instance} is {self.state} and can't be started; make a new StreamsClient"
            )
        try:
            port = self._server.start()
            advertised = self._settings.advertised or f"{self._settings.host}:{port}"
            self.url = f"http://{advertised}"
            self.directory.acquire()
            count = self.application.spec.processing.stream_threads
            self._threads = [self._make_thread(number, advertised) for number in range(1, count + 1)]
            for thread in self._threads:
                thread.start()
        except Exception as error:
            self._fail(error)

    def close(self, timeout: float | None = None) -> bool:
        """Close in order: threads, stores, Spark, queries; NOT_RUNNING then. May be called twice, from any thread.

        In PENDING_ERROR and ERROR it does nothing but warn (KIP-696). Returns whether the client has ended within
        `timeout` seconds; closing goes on if it has not.
        """
        if self.state in _FAILING:
            _LOGGER.warning("close() does nothing: client %s is %s already", self.instance, self.state)
            return self.state is ClientState.ERROR
        if self._machine.move(ClientState.PENDING_SHUTDOWN):
            self._end_in_background(ClientState.NOT_RUNNING)
        return self.wait_for_end(timeout)

    def wait_for(self, *states: ClientState, timeout: float | None = None) -> bool:
        """Block until the client is in one of `states`, or has ended; whether it is in one of them."""
        self._machine.wait_for(lambda state: state in states or state in _ENDED, timeout)
        return self.state in states

    def wait_for_end(self, timeout: float | None = None) -> bool:
        """Block until the client is NOT_RUNNING or ERROR; False when `timeout` seconds pass first."""
        return self._machine.wait_for(lambda state: state in _ENDED, timeout)

    def store(self, name: str | StoreQueryParameters, type: str | None = None) -> ReadOnlyKeyValueStore:
        """A read-only handle over the local partitions of a store (KIP-216).

        `store(StoreQueryParameters(...))`; the old form `store(name, type)` warns.

        Raises:
            StreamsNotStartedException, StreamsRebalancingException, StateStoreMigratedException: retry.
            StateStoreNotAvailableException, UnknownStateStoreException, InvalidStateStorePartitionException: do not.
            StoreTypeMismatch: ask for the type that the store has.
        """
        if isinstance(name, StoreQueryParameters):
            return open_store(self._inspection, name)
        warnings.warn("store(name, type) is deprecated: use store(StoreQueryParameters(...))", DeprecationWarning, 2)
        return open_store(
            self._inspection, StoreQueryParameters(name) if type is None else StoreQueryParameters(name, type)
        )

    def describe(self) -> Mapping[str, object]:
        """What `/state` answers."""
        return self._inspection.describe()

    # What threads share (threads.Application).

    def make_topics_ready(self) -> Mapping[str, int]:
        """A rebalance's checks; with automatic set-up makes missing internal topics. Returns all partition counts."""
        again = bool(self.partition_counts)
        policy = manual if self.application.spec.internal_topics.setup == "manual" else automatic
        done = self._topics.set_up(self.topology, self.application.spec, policy)
        if again and done.created:
            _LOGGER.warning(
                "internal topics had been deleted and were made again, empty: %s. What was in them is lost: records"
                " that were not processed yet, and copies of stores. Find out who deleted them;"
                " spec.internalTopics.setup: manual ends the application instead",
                ", ".join(done.created),
            )
        self.partition_counts = done.partitions
        return self.partition_counts

    def make_updater(self, name: str) -> StateUpdater:
        """A state updater with a restore consumer and a bulk loader of its own."""

        def make_reader() -> tuple[StoreChangelogReader, Callable[[], None]]:
            consumer = ChangelogConsumer(self.client_properties, name)
            bulk = BulkLoader(self.client_properties)

            def free() -> None:
                bulk.close()
                consumer.close()

            group, poll = self.application.application_id, self._settings.poll_seconds
            return StoreChangelogReader(consumer, self.admin, group, self._progress, bulk, poll), free

        return StateUpdater(name, make_reader)

    def _make_thread(self, number: int, advertised: str) -> StreamThread:
        name = f"{self.instance}-StreamThread-{number}"
        client_id = f"{self.instance}|{advertised}|{number}"
        membership = Membership(self.application.application_id, f"{self.instance}-{number}", client_id)
        thread = StreamThread(name, self, membership, self._on_uncaught)
        thread.machine.add_listener(self._on_thread_state)
        return thread

    def _on_thread_state(self, new: ThreadState, _old: ThreadState) -> None:
        """REBALANCING while any thread rebalances; RUNNING once every live thread is RUNNING."""
        if new in (ThreadState.PARTITIONS_REVOKED, ThreadState.PARTITIONS_ASSIGNED):
            self._machine.move(ClientState.REBALANCING)
        live = [thread.state for thread in self._threads if thread.state is not ThreadState.DEAD]
        if new is ThreadState.RUNNING and all(state is ThreadState.RUNNING for state in live):
            self._machine.move(ClientState.RUNNING)

    def _on_uncaught(self, thread: StreamThread, error: BaseException) -> None:
        """SHUTDOWN_CLIENT: the client ends in ERROR, not in NOT_RUNNING."""
        _LOGGER.error("%s ended by %s: %s", thread.name, type(error).__name__, error)
        _LOGGER.debug("stack trace", exc_info=error)
        self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if self.error is None and self.state not in _CLOSING:
            self.error = error
        if self._machine.move(ClientState.PENDING_ERROR):
            self._end_in_background(ClientState.ERROR)

    def _end_in_background(self, last: ClientState) -> None:
        threading.Thread(target=self._end, args=(last,), name=f"{self.instance}-close", daemon=True).start()

    def _end(self, last: ClientState) -> None:
        """Free everything, then enter the last state: whoever sees it may count on that."""
        for thread in self._threads:
            thread.stop()
        deadline = time.monotonic() + _BATCH_GRACE
        ended = [thread.join(max(deadline - time.monotonic(), 0)) for thread in self._threads]
        if not all(ended):
            self.engine.cancel_jobs()
        for thread in self._threads:
            thread.join()
        for free in (self.engine.close, self.directory.release, self.admin.close, self._server.stop):
            try:
                free()
            except Exception as error:
                _LOGGER.warning("closing %s: %s", self.instance, error)
        self._machine.move(last)

    def _note_transition(self, new: ClientState, old: ClientState) -> None:
        self._transitions.append((new, time.time()))
        _LOGGER.info("State transition from %s to %s", old, new)
