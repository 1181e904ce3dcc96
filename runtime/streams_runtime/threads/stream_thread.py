"""StreamThread: takes part in the group, runs batches, commits."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import ExitStack

from streams_runtime.client_context import ClientContext
from streams_runtime.errors import UnreleasedInstanceIdException
from streams_runtime.kafka.consumer.group_consumer import GroupConsumer, Membership
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.processing.batch_work import Counters
from streams_runtime.states import StateMachine, ThreadState
from streams_runtime.tasks.task_manager import TaskManager
from streams_runtime.threads.participation import Participation
from streams_runtime.threads.thread_parts import ThreadParts

_LOGGER = logging.getLogger("streams_runtime.threads")
_RETRY = 1.0  # seconds until the group is asked again to let the member in


class StreamThread:
    """One thread of a streams client, with its own member, producer, tasks and state updater.

    `on_exception(thread, error)` is called on the thread itself when it ends by an error, before it frees anything.
    """

    def __init__(
        self,
        name: str,
        context: ClientContext,
        membership: Membership,
        on_exception: Callable[[StreamThread, BaseException], None],
        counters: Counters | None = None,
    ) -> None:
        """`counters`: those of the thread that this one replaces."""
        self._parts = ThreadParts(name, context, membership, counters or Counters())
        self._on_exception = on_exception
        self._participation = Participation(self._parts)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def name(self) -> str:
        """The thread's name."""
        return self._parts.name

    @property
    def machine(self) -> StateMachine[ThreadState]:
        """The thread's states and who hears of them."""
        return self._parts.machine

    @property
    def counters(self) -> Counters:
        """What it has counted."""
        return self._parts.counters

    @property
    def state(self) -> ThreadState:
        """The thread's state."""
        return self.machine.state

    @property
    def instance_id(self) -> str:
        """The thread's static name in the group."""
        return self._parts.membership.instance_id

    @property
    def is_current(self) -> bool:
        """Whether it is the thread that calls."""
        return self._thread is threading.current_thread()

    @property
    def tasks(self) -> TaskManager:
        """The thread's tasks."""
        return self._parts.tasks

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """The offset that comes next for each input of a running task."""
        return self._participation.positions

    @property
    def last_turn(self) -> float:
        """When the loop, or a wait for brokers, last turned; by time.monotonic()."""
        return self._parts.stopping.looked_at

    @property
    def computing(self) -> bool:
        """Whether it waits for what Spark makes of a batch, which may keep the loop from turning for long."""
        return self._participation.computing

    def start(self) -> None:
        """Start; returns at once."""
        self.machine.move(ThreadState.STARTING)
        self._thread.start()

    def stop(self) -> None:
        """Ask the thread to end after its present batch; returns at once."""
        self._parts.stopping.set()

    def join(self, timeout: float | None = None) -> bool:
        """Wait until the thread is DEAD; False when `timeout` seconds pass first."""
        if self._thread.is_alive() and not self.is_current:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        self.counters.recorder.begin()
        try:
            with ExitStack() as resources:
                try:
                    self._work(resources)
                except BaseException as error:
                    self._report(error)
                finally:
                    self._parts.close_with(resources)
                    self.machine.move(ThreadState.PENDING_SHUTDOWN)
        except Exception as error:
            _LOGGER.warning("closing %s: %s: %s", self.name, type(error).__name__, error)
        finally:
            self.machine.move(ThreadState.DEAD)

    def _report(self, error: BaseException) -> None:
        if self._parts.stopping.is_set():
            _LOGGER.warning("%s left a batch unfinished while closing, to be read again: %s", self.name, error)
        else:
            self.counters.recorder.failures += 1
            self._on_exception(self, error)

    def _work(self, resources: ExitStack) -> None:
        parts, context, should_stop = self._parts, self._parts.context, self._parts.stopping.is_set
        if not context.admin.wait_for_broker(should_stop=should_stop):
            return
        parts.updater.start()
        parts.spark_start.begin()
        resources.callback(parts.output.close)
        while not should_stop():
            self._participation = member = Participation(parts)
            consumer = GroupConsumer(context.client_properties, parts.membership, member.on_assigned, member.on_revoked)
            try:
                member.take_part(consumer)
            except UnreleasedInstanceIdException as error:
                _LOGGER.warning("%s", error)
                consumer.close()
                parts.stopping.wait(_RETRY)
            except BaseException:
                resources.callback(consumer.close)
                raise
            else:
                if should_stop():
                    resources.callback(consumer.close)
                else:
                    consumer.close()  # which gives back its partitions, and closes their tasks
