"""StreamsClient: what KafkaStreams is. Start, close, states, stores."""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from streams_runtime.api import StreamsApplication
from streams_runtime.client_context import ClientContext
from streams_runtime.client_parts import ClientParts
from streams_runtime.errors import IllegalStateException, ShutdownRequestedException, StreamsException
from streams_runtime.inspection import ClientInspection
from streams_runtime.lifecycle.client_lifecycle import ClientLifecycle
from streams_runtime.lifecycle.uncaught import UncaughtExceptionHandler, declared
from streams_runtime.processing.batch_work import Counters
from streams_runtime.query.server.access import OPEN, QueryGuard, check_guard
from streams_runtime.query.server.query_server import QueryServer
from streams_runtime.query.stores.key_value_handle import ReadOnlyStore, StoreQueryParameters, open_store
from streams_runtime.restore.restore_listener import StandbyUpdateListener, StateRestoreListener
from streams_runtime.settings import InstanceSettings
from streams_runtime.states import ClientState, StateListener
from streams_runtime.threads.stream_thread import StreamThread
from streams_runtime.topics.setup_policy import NONE_IF_INCOMPLETE, InitParameters

if TYPE_CHECKING:
    from streams_runtime.pipeline.spark.executor_pods import OwnPod

_LOGGER = logging.getLogger("streams_runtime.client")
_AT_REST = frozenset({ClientState.CREATED, ClientState.NOT_RUNNING, ClientState.ERROR})
_ENDING = frozenset({ClientState.PENDING_SHUTDOWN, ClientState.PENDING_ERROR})


class StreamsClient:
    """One instance of an application, as KafkaStreams is: its threads, stores, query server and Spark session.

    `start` returns at once, and `state` (KIP-696) says what becomes of the client. A client that ends in ERROR keeps
    the exception in `error`. Nothing starts it again: mend the cause, then make a new one.
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
        """Build the plan; connect to nothing. `settings` say who this instance is and where it listens.

        `queries` stands before the query server, as spec.queries asks for. `own_pod` reads the pod that this process
        runs in; only executors that are pods need it. The listeners hear of restorations and of standbys.

        Raises:
            ConfigException: a setting can't be used; the message names it. Correct it, then make another client.
        """
        self.context = ClientContext(application, settings, own_pod, restore_listener, standby_listener)
        """What the client's threads, standbys and queries share."""
        self._transitions = [(ClientState.CREATED, time.time())]
        self.context.make_standbys(lambda: self.state not in _AT_REST and self.state not in _ENDING)
        self._inspection = ClientInspection(self, self.context, settings.peers)
        check_guard(application.spec.queries, queries)
        server = QueryServer(self._inspection, settings.host, settings.port, guard=queries)
        self._parts = ClientParts(self.context, server, queries.scheme, self._is_running)
        self._lifecycle: ClientLifecycle[StreamThread] = ClientLifecycle(
            settings.instance, self._parts.works(), declared(application.spec.processing.on_uncaught_exception)
        )
        self._lifecycle.machine.add_listener(self._note_transition)
        self._parts.belong_to(self._lifecycle)

    @property
    def url(self) -> str:
        """Where others reach its queries; empty before `start`."""
        return self._parts.url

    @property
    def state(self) -> ClientState:
        """The client's state (KafkaStreams#state, KIP-696). Raises nothing."""
        return self._lifecycle.state

    @property
    def error(self) -> BaseException | None:
        """The exception by which the client ends, or has ended, in ERROR; None in every other case."""
        return self._lifecycle.error

    @property
    def spark_ready(self) -> bool:
        """Whether Spark runs and has compiled the topology. A client is RUNNING, answers queries where an earlier start
        has left what that needs, and does the batches that need no Spark, before it is. What Spark refuses ends it in
        ERROR.
        """
        return self.context.engine.is_ready

    @property
    def shutdown_requested(self) -> bool:
        """Whether `error` asks all clients of the application to end in ERROR (SHUTDOWN_APPLICATION, KIP-671).

        Whoever hosts the client tells the others, which end by `shut_down_with_application`.
        """
        return self._lifecycle.shutdown_requested

    @property
    def instance(self) -> str:
        """The client's static name, InstanceSettings.instance. Its threads are the group's members NAME-1, NAME-2, …"""
        return self.context.settings.instance

    @property
    def threads(self) -> Sequence[StreamThread]:
        """The stream threads by number. A dead one stays until its number is given away or `remove_thread` takes it."""
        return self._lifecycle.threads

    @property
    def counters(self) -> Sequence[Counters]:
        """What each thread has counted since the client was made, threads that are gone included."""
        return tuple(self._parts.counters.values())

    @property
    def transitions(self) -> Sequence[tuple[ClientState, float]]:
        """The states that the client has been in, oldest first, each with its time in seconds since 1970."""
        return tuple(self._transitions)

    @property
    def warm_up_remaining(self) -> int:
        """Records that stores miss for whose tasks this client waits before it takes part in its group; 0 after that.

        See spec.processing.acceptableRecoveryLag.
        """
        return 0 if self.context.warm_up is None else self.context.warm_up.remaining

    def set_state_listener(self, listener: StateListener[ClientState]) -> None:
        """Call `listener(new, old)` after every move between states, in order (KafkaStreams#setStateListener).

        It replaces an earlier listener and must not block for long. An exception that it raises is logged and changes
        nothing.

        Raises:
            IllegalStateException: the client is not CREATED any more; set the listener before `start`.
        """
        self._lifecycle.set_state_listener(listener)

    def set_uncaught_exception_handler(self, handler: UncaughtExceptionHandler) -> None:
        """Let `handler(exception)` say what to end when an exception ends a stream thread (KIP-671).

        It replaces spec.processing.onUncaughtException and runs on the thread that ends. Exceptions come as themselves,
        so MissingSourceTopicException and MissingInternalTopicException can be told apart. A handler that raises, or
        returns no UncaughtExceptionResponse, ends the client in ERROR; the log has both failures.

        Raises:
            IllegalStateException: the client is not CREATED any more; set the handler before `start`.
        """
        self._lifecycle.set_handler(handler)

    def init(self, parameters: InitParameters = NONE_IF_INCOMPLETE) -> None:
        """Set up the application's internal topics before `start` (KIP-698). One client of the application is enough.

        It makes every check that a rebalance makes. Without any internal topic it creates all of them; with all of them
        it does nothing. Where some are missing it creates them if `parameters` enable the kind of each. It creates all
        or nothing, may be repeated, and several clients may call it at once. Automatic set-up allows it and does not
        need it.

        Raises:
            IllegalStateException: the client is not CREATED any more; call it before `start`.
            MissingInternalTopicException: some are missing that may not be created; the message lists them.
            MisconfiguredInternalTopicException: internal topics have settings that do not fit; correct them.
            MissingSourceTopicException, TopologyException: users' topics are missing or do not fit together.
            BrokerNotAvailableException: call again; new topics may also not have been usable within the timeout.
            ConfigException: the brokers refuse the settings of the new topics, the login, or a right.
        """
        if self.state is not ClientState.CREATED:
            raise IllegalStateException(
                f"init() is for a client that is CREATED; {self.instance} is {self.state}. Call it before start(), or"
                " run streamsapp init"
            )
        self.context.set_up_topics(parameters)

    def start(self) -> None:
        """Start threads, stores, queries and Spark, and return; `wait_for` waits for RUNNING (KafkaStreams#start).

        What fails from here on, the state folder's lock included, ends the client in ERROR with the exception in
        `error`.

        Raises:
            IllegalStateException: the client was started or closed already; make a new one.
        """
        self._lifecycle.start()

    def close(self, timeout: float | None = None, *, leave_group: bool = False) -> bool:
        """End threads, stores, Spark and queries in order; the client is NOT_RUNNING then (KafkaStreams#close).

        With `leave_group` the group gives its partitions to others at once (KIP-812). Without it they wait for the end
        of its session, since it may come back under its name, with its stores.

        Returns whether it has ended within `timeout` seconds (None: no limit); closing goes on if it has not. It may be
        called twice and from any thread. From a listener or a handler it returns without waiting. In PENDING_ERROR and
        ERROR it only warns (KIP-696), and returns whether the client is in ERROR. Raises nothing.
        """
        self._parts.leaves_group = self._parts.leaves_group or leave_group
        return self._lifecycle.close(timeout)

    def clean_up(self) -> None:
        """Delete the application's local stores; the next start restores them from Kafka (KafkaStreams#cleanUp).

        Raises:
            IllegalStateException: the client is neither CREATED nor ended; close it first.
            LockException: another live process has the state folder; stop that one.
            ProcessorStateException: a folder can't be deleted; mend the disk or the rights, then call again.
        """
        if self.state not in _AT_REST:
            raise IllegalStateException(f"{self.instance} is {self.state}: close it before clean_up()")
        with self.context.directory as directory:
            for each in sorted(directory.root.iterdir()):
                if each.is_dir():
                    directory.remove(each)

    def pause(self) -> None:
        """Process no further records until `resume` (KafkaStreams#pause, KIP-834). It lasts as long as this client.

        What is in work is completed and committed; nothing that is written from now on is processed. The client keeps
        its state, its tasks and its place in the group; stores answer, lag is told, and tasks that come to it and
        standbys are restored meanwhile, so that it goes on at once. It may be called before `start` and twice. Raises
        nothing.
        """
        self.context.paused.set()

    def resume(self) -> None:
        """Go on where `pause` has stopped (KafkaStreams#resume, KIP-834). Raises nothing."""
        self.context.paused.clear()

    @property
    def is_paused(self) -> bool:
        """Whether `pause` was called last (KafkaStreams#isPaused); a batch that is in work may still be completed."""
        return self.context.paused.is_set()

    def add_thread(self) -> str | None:
        """Start one more stream thread under the lowest free number (KafkaStreams#addStreamThread, KIP-663).

        Returns the thread's name; the group gives it tasks. Returns None, with a warning in the log, when the client is
        neither RUNNING nor REBALANCING.
        """
        return self._lifecycle.add_thread()

    def remove_thread(self, timeout: float | None = None) -> str | None:
        """End one stream thread in order (KafkaStreams#removeStreamThread, KIP-663).

        It ends the first thread, or the next one when that is the caller. The last one may go: the client then keeps
        its state and processes nothing until `add_thread`. Returns the thread's name; None, with a warning in the log,
        when the client is neither RUNNING nor REBALANCING, or has no thread.

        Raises:
            TimeoutException: the thread has not ended within `timeout` seconds (None: no limit). It goes on ending.
        """
        thread = self._lifecycle.remove_thread(timeout)
        if thread is None or thread.is_current:
            return None if thread is None else thread.name
        try:
            self.context.engine.remove_members([thread.instance_id])
        except StreamsException as error:
            _LOGGER.warning("%s", error)
        return thread.name

    def shut_down_with_application(self, request: ShutdownRequestedException) -> bool:
        """End in ERROR because another instance asked all of them to (SHUTDOWN_APPLICATION, KIP-671). Hosts call it.

        Returns False when the client is ending already, or has ended.

        Raises:
            IllegalStateException: the client is CREATED; call it after `start`.
        """
        return self._lifecycle.shut_down_with_application(request)

    def wait_for(self, *states: ClientState, timeout: float | None = None) -> bool:
        """Block until the client is in one of `states`, or has ended; return whether it is in one of them.

        After `timeout` seconds (None: no limit) it returns as well. Raises nothing.
        """
        return self._lifecycle.wait_for(*states, timeout=timeout)

    def wait_for_end(self, timeout: float | None = None) -> bool:
        """Block until the client is NOT_RUNNING or ERROR, and return True; False when `timeout` seconds pass first."""
        return self._lifecycle.wait_for_end(timeout)

    def store(self, name: str | StoreQueryParameters, type: str | None = None) -> ReadOnlyStore:
        """Return a read-only handle over a store's local partitions (KafkaStreams#store, KIP-216).

        Call it as `store(StoreQueryParameters(...))`; the form `store(name, type)` raises a DeprecationWarning.

        Raises:
            StreamsNotStartedException: the client is CREATED; retry once it is RUNNING.
            StreamsRebalancingException: it is REBALANCING, or a partition is still being restored; retry.
            StateStoreMigratedException: the store closed meanwhile; call again.
            StateStoreNotAvailableException: the client is closing, closed or in ERROR; ask another instance.
            UnknownStateStoreException: the topology has no such store; fix the name.
            InvalidStateStorePartitionException: the partition, or every one, is elsewhere; ask that instance.
            StoreTypeMismatch: ask for the type that the store has.
        """
        if isinstance(name, StoreQueryParameters):
            return open_store(self._inspection, name)
        warnings.warn("store(name, type) is deprecated: use store(StoreQueryParameters(...))", DeprecationWarning, 2)
        return open_store(
            self._inspection, StoreQueryParameters(name) if type is None else StoreQueryParameters(name, type)
        )

    def describe(self) -> Mapping[str, object]:
        """The client's account, as `/state` answers it: states, threads, tasks, restorations, lag, counters, error.

        It may ask the brokers for the ends of the input topics; without an answer it gives the last ones that it knows.
        """
        return self._inspection.describe()

    def _is_running(self) -> bool:
        return self.state is ClientState.RUNNING

    def _note_transition(self, new: ClientState, old: ClientState) -> None:
        self._transitions.append((new, time.time()))
        _LOGGER.info("State transition from %s to %s", old, new)
