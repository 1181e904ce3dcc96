"""StreamsClient: what KafkaStreams is. Start, close, states, stores."""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Collection, Mapping, Sequence

from streams_runtime.api import StreamsApplication
from streams_runtime.engine import EngineRoom
from streams_runtime.errors import IllegalStateException, ShutdownRequestedException, StreamsException
from streams_runtime.global_thread import GlobalStreamThread
from streams_runtime.inspection import ClientInspection
from streams_runtime.kafka.admin import Admin
from streams_runtime.kafka.group_consumer import Membership
from streams_runtime.kafka.properties import client_properties, java_properties
from streams_runtime.lifecycle.life import Life, Works
from streams_runtime.lifecycle.uncaught import UncaughtExceptionHandler, declared
from streams_runtime.pipeline.executor_pods import OwnPod
from streams_runtime.pipeline.pushdown.foreseen import is_added_up
from streams_runtime.query.access import OPEN, QueryGuard, check_guard
from streams_runtime.query.handles import ReadOnlyStore, StoreQueryParameters, open_store
from streams_runtime.query.server import QueryServer
from streams_runtime.restore.listener import StandbyUpdateListener, StateRestoreListener
from streams_runtime.restore.progress import ProgressListener
from streams_runtime.restore.standby_progress import StandbyProgress
from streams_runtime.restore.updater import StateUpdater
from streams_runtime.restore.updaters import Updaters
from streams_runtime.settings import InstanceSettings
from streams_runtime.state.directory import StateDirectory
from streams_runtime.state.global_store import GlobalStore
from streams_runtime.state.task_folders import StateCleaner
from streams_runtime.states import ClientState, GlobalThreadState, StateListener
from streams_runtime.tasks.batch_size import AGGREGATED_KEYS
from streams_runtime.tasks.intake import AGGREGATED_RECORDS, BATCH_RECORDS, IntakeLimits
from streams_runtime.tasks.processor import Counters
from streams_runtime.tasks.standbys import StandbyTasks
from streams_runtime.threads import StreamThread
from streams_runtime.topics.external import sink_topics, source_topics
from streams_runtime.topics.manager import InternalTopicManager
from streams_runtime.topics.policy import NONE_IF_INCOMPLETE, InitParameters, automatic, explicit, manual
from streams_runtime.topics.watch import TopicWatch
from streams_runtime.topology.build import build_topology

_LOGGER = logging.getLogger("streams_runtime.client")
_OF_GLOBAL_THREAD = 0  # among the counters, which stream threads have from 1 on
_AT_REST = frozenset({ClientState.CREATED, ClientState.NOT_RUNNING, ClientState.ERROR})
_ENDING = frozenset({ClientState.PENDING_SHUTDOWN, ClientState.PENDING_ERROR})


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
        queries: QueryGuard = OPEN,
        standby_listener: StandbyUpdateListener | None = None,
        own_pod: OwnPod | None = None,
    ) -> None:
        """Builds the plan; connects to nothing. `queries` stands before the query server, as spec.queries asks for;
        `own_pod` reads the pod that this process is in, which executors that are pods are made of.

        Raises:
            ConfigException: a setting that can't be used; the message names the field.
        """
        kafka, processing = application.spec.kafka, application.spec.processing
        self.application = application
        self.topology = build_topology(application)
        users_topics = {**source_topics(self.topology), **sink_topics(self.topology, application.spec)}
        # The global thread looks after its own topics.
        self.users_topics: Collection[str] = users_topics.keys() - set(self.topology.global_topics)
        self.exactly_once = once = processing.exactly_once
        self.client_properties: Mapping[str, str] = client_properties(settings.bootstrap_servers, kafka.config, once)
        self.admin = Admin(self.client_properties)
        self.directory = StateDirectory(settings.state_dir, application.application_id, settings.instance)
        interval, poll = processing.commit_interval.total_seconds(), processing.poll_duration.total_seconds()
        most, keys = processing.max_batch_records or BATCH_RECORDS, None
        if processing.max_batch_records is None and is_added_up(self.topology):
            most, keys = AGGREGATED_RECORDS, AGGREGATED_KEYS
        self.limits = IntakeLimits(most, interval, read_committed=once, keys=keys)
        self.partition_counts: Mapping[str, int] = {}
        self.url = ""
        self._address = ""
        self._settings = settings
        self._progress = ProgressListener(restore_listener)
        self._transitions = [(ClientState.CREATED, time.time())]
        self._counters: dict[int, Counters] = {}
        self._topics = InternalTopicManager(self.admin)
        java = java_properties(settings.bootstrap_servers, kafka.config, once)
        self.engine = EngineRoom(application, self.topology, self.client_properties, java, own_pod)
        standby_progress = StandbyProgress(standby_listener)
        self._updaters = Updaters(
            self.client_properties,
            self.admin,
            application.application_id,
            self._progress,
            standby_progress,
            poll,
            once,
        )
        self.standbys = self._make_standbys(processing.standby_replicas)
        self._cleaner = StateCleaner(
            f"{settings.instance}-CleanupThread",
            self.directory.tasks,
            application.spec.state.cleanup_delay.total_seconds(),
            lambda: self.state is ClientState.RUNNING,  # in a rebalance tasks may be on their way back
        )
        self._inspection = ClientInspection(
            self, self.topology, self.engine, self.admin, self._progress, standby_progress, settings.peers
        )
        check_guard(application.spec.queries, queries)
        self._scheme = queries.scheme
        self._server = QueryServer(self._inspection, settings.host, settings.port, guard=queries)
        works = Works(
            threads=processing.stream_threads,
            open=self._open,
            make_thread=self._make_thread,
            hurry=self._hurry,
            free=self._free,
            beyond_repair=lambda: self.engine.beyond_repair,
        )
        self._life: Life[StreamThread] = Life(settings.instance, works, declared(processing.on_uncaught_exception))
        self._life.machine.add_listener(self._note_transition)
        self.global_thread: GlobalStreamThread | None = self._make_global_thread(poll)
        """Keeps the global tables; None without any."""

    @property
    def state(self) -> ClientState:
        """The client's state."""
        return self._life.state

    @property
    def error(self) -> BaseException | None:
        """What the client ends, or has ended, in ERROR by."""
        return self._life.error

    @property
    def shutdown_requested(self) -> bool:
        """Whether it asks all other clients of the application to end in ERROR too: whoever hosts it carries that."""
        return self._life.shutdown_requested

    @property
    def instance(self) -> str:
        """The client's static name in the group."""
        return self._settings.instance

    @property
    def threads(self) -> Sequence[StreamThread]:
        """The stream threads."""
        return self._life.threads

    @property
    def counters(self) -> Sequence[Counters]:
        """What the threads have counted, those that are gone included."""
        return tuple(self._counters.values())

    @property
    def transitions(self) -> Sequence[tuple[ClientState, float]]:
        """The states that the client has been in, each with when it came there (seconds since 1970)."""
        return tuple(self._transitions)

    def set_state_listener(self, listener: StateListener[ClientState]) -> None:
        """Call `listener(new, old)` after every move, in order; it replaces the one before. It must not block for long.

        What it raises is logged, and nothing else comes of it.

        Raises:
            IllegalStateException: the client is no longer CREATED.
        """
        self._life.set_state_listener(listener)

    def set_uncaught_exception_handler(self, handler: UncaughtExceptionHandler) -> None:
        """Let `handler(exception)` say what an exception that ends a stream thread comes to (KIP-671).

        It stands in place of spec.processing.onUncaughtException, and is called on the thread that ends. Exceptions
        come as themselves: MissingSourceTopicException and MissingInternalTopicException can be told apart. One that
        raises, or returns no UncaughtExceptionResponse, ends the client in ERROR; both failures are told.

        Raises:
            IllegalStateException: the client is no longer CREATED.
        """
        self._life.set_handler(handler)

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
        self._life.start()

    def close(self, timeout: float | None = None) -> bool:
        """Close in order: threads, stores, Spark, queries; NOT_RUNNING then. May be called twice, from any thread.

        In PENDING_ERROR and ERROR it does nothing but warn (KIP-696). Returns whether the client has ended within
        `timeout` seconds; closing goes on if it has not. Called from a listener or a handler, which closing may have to
        wait for, it does not wait: it returns at once.
        """
        return self._life.close(timeout)

    def clean_up(self) -> None:
        """Delete the local stores of the application: they are restored from their changelogs (KafkaStreams#cleanUp).

        Raises:
            IllegalStateException: the client is neither CREATED nor ended; close it first.
            LockException: another live process has the state folder.
            ProcessorStateException: something can't be deleted; what is left is still whole.
        """
        if self.state not in _AT_REST:
            raise IllegalStateException(f"{self.instance} is {self.state}: close it before clean_up()")
        with self.directory as directory:
            for each in sorted(directory.root.iterdir()):
                if each.is_dir():
                    directory.remove(each)

    def add_thread(self) -> str | None:
        """Start one stream thread more, under the lowest free number (KIP-663); the group gives it tasks.

        Returns its name; None, with a warning, when the client is neither RUNNING nor REBALANCING.
        """
        return self._life.add_thread()

    def remove_thread(self, timeout: float | None = None) -> str | None:
        """End one stream thread in order (KIP-663): the first, or the next one when that calls. The last one may go.

        Without threads the client stays in its state and processes nothing, until `add_thread`. Returns the thread's
        name; None, with a warning, when the client is neither RUNNING nor REBALANCING, or has no thread.

        Raises:
            TimeoutException: it has not ended within `timeout` seconds (None: wait); it goes on ending.
        """
        thread = self._life.remove_thread(timeout)
        if thread is None or thread.is_current:
            return None if thread is None else thread.name
        try:
            self.engine.remove_member(thread.instance_id)
        except StreamsException as error:
            _LOGGER.warning("%s", error)
        return thread.name

    def shut_down_with_application(self, request: ShutdownRequestedException) -> bool:
        """End in ERROR because another instance asked for that (SHUTDOWN_APPLICATION): for whoever hosts this client.

        False when it is ending already.

        Raises:
            IllegalStateException: the client is CREATED; tell it after `start`.
        """
        return self._life.shut_down_with_application(request)

    def wait_for(self, *states: ClientState, timeout: float | None = None) -> bool:
        """Block until the client is in one of `states`, or has ended; whether it is in one of them."""
        return self._life.wait_for(*states, timeout=timeout)

    def wait_for_end(self, timeout: float | None = None) -> bool:
        """Block until the client is NOT_RUNNING or ERROR; False when `timeout` seconds pass first."""
        return self._life.wait_for_end(timeout)

    def store(self, name: str | StoreQueryParameters, type: str | None = None) -> ReadOnlyStore:
        """A read-only handle over the local partitions of a store (KIP-216), of the type that was asked for.

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

    @property
    def global_tables_are_complete(self) -> bool:
        """Whether the global tables have what their topics had at the start; True where there are none."""
        return self.global_thread is None or self.global_thread.state is GlobalThreadState.RUNNING

    @property
    def global_stores(self) -> Mapping[str, GlobalStore]:
        """The stores of the global tables that are open, by the names of the tables."""
        return {} if self.global_thread is None else self.global_thread.stores

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
        alone = self.application.spec.processing.stream_threads == 1
        return self._updaters.for_thread(name, cold=lambda: alone and self.directory.tasks.empty)

    def _make_standbys(self, replicas: int) -> StandbyTasks | None:
        """None without standbys."""
        if not replicas:
            return None
        name = f"{self.instance}-StreamThread-Standbys-StateUpdater"
        return StandbyTasks(
            self.instance,
            replicas,
            self.topology,
            self.directory,
            lambda: self.admin.group_members(self.application.application_id),
            lambda: {} if self.state in _AT_REST or self.state in _ENDING else self.partition_counts,
            lambda reason: self._updaters.for_standbys(name, reason),
            TopicWatch(
                self.admin, [each.changelog_topic for sub in self.topology.subtopologies for each in sub.stores]
            ),
        )

    def _open(self) -> None:
        """What threads need before they start: queries' port, since others read it from the group, and the folder."""
        port = self._server.start()
        self.url = f"{self._scheme}://{self._settings.advertised or f'{self._settings.host}:{port}'}"
        self._address = self.url.removeprefix("http://")  # as the group tells it: without a scheme it is http
        self.directory.acquire()
        self._cleaner.start()
        if self.global_thread is not None:
            self.global_thread.start()
        if self.standbys is not None:
            self.standbys.start()

    def _make_global_thread(self, poll_seconds: float) -> GlobalStreamThread | None:
        """None without global tables."""
        if not self.topology.global_tables:
            return None
        name = f"{self.instance}-GlobalStreamThread"
        counters = self._counters.setdefault(_OF_GLOBAL_THREAD, Counters())
        uncaught = self._life.uncaught_in_global_thread
        thread = GlobalStreamThread(name, self, uncaught, self._progress, counters, poll_seconds)
        thread.machine.add_listener(lambda new, _old: self._life.global_thread_moved(name, new))
        return thread

    def _make_thread(self, number: int) -> StreamThread:
        name = f"{self.instance}-StreamThread-{number}"
        client_id = f"{self.instance}|{self._address}|{number}"
        membership = Membership(self.application.application_id, f"{self.instance}-{number}", client_id)
        counters = self._counters.setdefault(number, Counters())
        thread = StreamThread(name, self, membership, self._life.uncaught, counters)
        thread.machine.add_listener(lambda new, _old: self._life.thread_moved(thread, new))
        return thread

    def _hurry(self) -> None:
        for thread in self.threads:
            self.engine.cancel_jobs(thread.name)

    def _free(self) -> None:
        stop_standbys = () if self.standbys is None else (self.standbys.stop,)
        stop_global = () if self.global_thread is None else (self.global_thread.close,)
        for free in (
            self._cleaner.stop,
            *stop_global,
            *stop_standbys,
            self.engine.close,
            self.directory.release,
            self.admin.close,
            self._server.stop,
        ):
            try:
                free()
            except Exception as error:
                _LOGGER.warning("closing %s: %s: %s", self.instance, type(error).__name__, error)

    def _note_transition(self, new: ClientState, old: ClientState) -> None:
        self._transitions.append((new, time.time()))
        _LOGGER.info("State transition from %s to %s", old, new)
