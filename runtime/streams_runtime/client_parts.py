"""What the lifecycle of a client opens, makes threads of, hurries and frees."""

from __future__ import annotations

import logging
from collections.abc import Callable

from streams_runtime.client_context import ClientContext
from streams_runtime.kafka.consumer.group_consumer import Membership
from streams_runtime.lifecycle.client_lifecycle import ClientLifecycle, Works
from streams_runtime.metrics.thread_recorder import ThreadRecorder
from streams_runtime.processing.batch_work import Counters
from streams_runtime.query.client.peer_figures import PeerFigures
from streams_runtime.query.server.query_server import QueryServer
from streams_runtime.state.task_folders import StateCleaner
from streams_runtime.tasks.client_tags import tagged_client_id
from streams_runtime.threads.global_thread import GlobalStreamThread
from streams_runtime.threads.stream_thread import StreamThread
from streams_runtime.threads.warm_up import WarmUp

_LOGGER = logging.getLogger("streams_runtime.client")
_OF_GLOBAL_THREAD = 0  # among the counters, which stream threads have from 1 on


class ClientParts:
    """The parts of one client. `url`: where others reach its queries, empty before it is open.

    `counters`: what each thread has counted, by its number, threads that are gone included.
    """

    def __init__(
        self, context: ClientContext, server: QueryServer, scheme: str, is_running: Callable[[], bool]
    ) -> None:
        """`is_running`: whether the client is RUNNING: in a rebalance tasks may be on their way back."""
        self.url = ""
        self.leaves_group = False
        """Whether the threads are taken out of their group at the end."""
        self.counters: dict[int, Counters] = {}
        self._context = context
        self._server = server
        self._scheme = scheme
        self._address = ""
        self._instance = context.settings.instance
        self._cleaner = StateCleaner(
            f"{self._instance}-CleanupThread",
            context.directory.tasks,
            context.application.spec.state.cleanup_delay.total_seconds(),
            is_running,
        )
        figures = PeerFigures(context.settings.peers)
        self._warm_up = context.warm_up = WarmUp(context, lambda: self._address, figures)
        self._lifecycle: ClientLifecycle[StreamThread] | None = None
        self._global_thread: GlobalStreamThread | None = None

    def works(self) -> Works[StreamThread]:
        """What the lifecycle moves."""
        return Works(
            threads=self._context.application.spec.processing.stream_threads,
            open=self._open,
            make_thread=self._make_thread,
            hurry=self._hurry,
            free=self._free,
            beyond_repair=lambda: self._context.engine.beyond_repair,
        )

    def belong_to(self, lifecycle: ClientLifecycle[StreamThread]) -> None:
        """Whom threads tell what becomes of them; to be called once, before the lifecycle starts."""
        self._lifecycle = lifecycle
        self._global_thread = self._context.global_tables = self._make_global_thread(lifecycle)

    def _open(self) -> None:
        """What threads need before they start: queries' port, since others read it from the group, and the folder."""
        settings, port = self._context.settings, self._server.start()
        self.url = f"{self._scheme}://{settings.advertised or f'{settings.host}:{port}'}"
        self._address = self.url.removeprefix("http://")  # as the group tells it: without a scheme it is http
        self._context.directory.acquire()
        self._context.engine.recall()
        self._cleaner.start()
        if self._global_thread is not None:
            self._global_thread.start()
        if self._context.standbys is not None:
            self._context.standbys.start()
        if self._context.snapshots is not None:
            self._context.snapshots.snapshotter.start()

    def _make_global_thread(self, lifecycle: ClientLifecycle[StreamThread]) -> GlobalStreamThread | None:
        """None without global tables."""
        if not self._context.topology.global_tables:
            return None
        name = f"{self._instance}-GlobalStreamThread"
        counters = self._counters_of(_OF_GLOBAL_THREAD)
        thread = GlobalStreamThread(name, self._context, lifecycle.uncaught_in_global_thread, counters)
        thread.machine.add_listener(lambda new, _old: lifecycle.global_thread_moved(name, new))
        return thread

    def _make_thread(self, number: int) -> StreamThread:
        lifecycle = self._lifecycle
        assert lifecycle is not None, "it makes threads"
        name = f"{self._instance}-StreamThread-{number}"
        client_id = tagged_client_id(self._instance, self._address, number, self._context.tags)
        membership = Membership(self._context.application.application_id, f"{self._instance}-{number}", client_id)
        counters = self._counters_of(number)
        thread = StreamThread(name, self._context, membership, lifecycle.uncaught, counters)
        thread.machine.add_listener(lambda new, _old: lifecycle.thread_moved(thread, new))
        return thread

    def _counters_of(self, number: int) -> Counters:
        if number not in self.counters:
            tracing = self._context.tracing
            trace = None if tracing is None else tracing.batches(f"{self._instance}-StreamThread-{number}")
            self.counters[number] = Counters(recorder=ThreadRecorder(self._context.level, trace=trace))
        return self.counters[number]

    def _hurry(self) -> None:
        for thread in self._lifecycle.threads if self._lifecycle is not None else ():
            self._context.engine.cancel_jobs(thread.name)

    def _leave_group(self) -> None:
        """Takes the threads out of the group, which would wait for them."""
        members = [thread.instance_id for thread in self._lifecycle.threads] if self._lifecycle is not None else []
        if self.leaves_group and members:
            self._context.engine.remove_members(members)

    def _free(self) -> None:
        context = self._context
        stop_standbys = () if context.standbys is None else (context.standbys.stop,)
        stop_snapshots = () if context.snapshots is None else (context.snapshots.snapshotter.stop,)
        end_traces = () if context.tracing is None else (context.tracing.close,)
        stop_global = () if self._global_thread is None else (self._global_thread.close,)
        for free in (
            self._warm_up.withdraw,
            self._leave_group,
            self._cleaner.stop,
            *stop_global,
            *stop_standbys,
            *stop_snapshots,
            context.engine.close,
            context.directory.release,
            context.admin.close,
            self._warm_up.close,
            self._server.stop,
            *end_traces,
        ):
            try:
                free()
            except Exception as error:
                _LOGGER.warning("closing %s: %s: %s", self._instance, type(error).__name__, error)
