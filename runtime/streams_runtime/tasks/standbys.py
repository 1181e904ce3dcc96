"""The standby tasks of a client: opened and closed as the group changes, and given up to tasks that become active."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack

from streams_runtime.errors import BrokerNotAvailableException
from streams_runtime.kafka.types import GroupMember
from streams_runtime.restore.restore_listener import SuspendReason
from streams_runtime.restore.restorer import StateRestorer
from streams_runtime.restore.state_updater import StateUpdater
from streams_runtime.state.state_directory import StateDirectory
from streams_runtime.tasks.announcements import announced, taking_part
from streams_runtime.tasks.client_tags import Tags, shared_tags, tags_of
from streams_runtime.tasks.standby import StandbyTask
from streams_runtime.tasks.standby_placement import Wanted, owners_of, place_standbys, stateful_tasks
from streams_runtime.tasks.task_stores import damage_of, set_damaged_aside
from streams_runtime.tasks.warm_up_plan import expected_by, moves
from streams_runtime.topics.topic_watch import TopicWatch
from streams_runtime.topology.plan import TaskId, Topology

_LOGGER = logging.getLogger("streams_runtime.tasks")
_LOOK_SECONDS = 3.0  # between two looks at the group; a rebalance of this instance is looked at sooner
_QUIET_SECONDS = 10.0  # the same where none is kept: an instance that is added waits for this one so much longer
_MOVE_LOOK_SECONDS = 1.0  # the same while tasks are to move here: the sooner that is seen, the shorter they stop
_MOVE_SECONDS = 60.0  # in which a move is over, unless its owner does not let go
_AGAIN_SECONDS = 30.0  # after a failure
_END_SECONDS = 5.0  # for the thread to end; it changes nothing any more by then
_END_LOOK = 0.05  # between two looks whether it does nothing but wait for an answer


class StandbyTasks:
    """Keeps the standbys that fall to this instance, on a thread of its own; another one follows the changelogs.

    Every instance works out from the group's members who keeps which (standby_placement), and which tasks move to it
    when announced instances join (warm_up_plan): those are kept as standbys too, whatever is wanted. It asks for
    the members every few seconds, and more seldom while it keeps none. Nothing that a standby meets ends the client:
    the tasks that are active here do not need it. A failure is logged as an error, and all standbys are opened again
    half a minute later.
    """

    def __init__(
        self,
        instance: str,
        wanted: Wanted,
        topology: Topology,
        directory: StateDirectory,
        members: Callable[[], Collection[GroupMember]],
        counts: Callable[[], Mapping[str, int]],
        make_updater: Callable[[Callable[[TaskId], SuspendReason]], StateUpdater],
        watch: TopicWatch,
    ) -> None:
        """`members` asks the brokers; `counts` are the partitions of all topics, empty while they are not known.
        `watch` looks after the changelogs.

        `make_updater` makes a StateUpdater over a StandbyReader with the reasons that it is given.
        """
        self._instance = instance
        self._replicas = wanted.replicas
        self._tag_keys = wanted.tag_keys
        self._topology = topology
        self._directory = directory
        self._members = members
        self._counts = counts
        self._make_updater = make_updater
        self._watch = watch
        self._lock = threading.Lock()  # held while tasks are opened and closed
        self._nudge = threading.Event()
        self._stopping = threading.Event()
        self._active: frozenset[TaskId] = frozenset()
        self._moving: frozenset[TaskId] = frozenset()  # to this instance, when all that are announced have joined
        self._awaited: frozenset[TaskId] = frozenset()  # the same, from then on
        self._awaited_since = 0.0
        self._asks = False  # whether the thread waits for the brokers
        self._tasks: dict[TaskId, StandbyTask] = {}
        self._updater: StateUpdater | None = None
        self._missing = 0
        self._shared: Mapping[str, int] = {}  # tasks with copies under one value of a tag, by the tag's key
        self._thread = threading.Thread(target=self._run, name=f"{instance}-standbys", daemon=True)

    @property
    def tasks(self) -> Mapping[TaskId, StandbyTask]:
        """The open standbys; a copy."""
        return dict(self._tasks)

    @property
    def awaits_a_move(self) -> bool:
        """Whether the group is about to give this instance a task that is kept warm here."""
        return bool(self._awaited - self._active) and time.monotonic() - self._awaited_since < _MOVE_SECONDS

    def start(self) -> None:
        """Start the thread; returns at once."""
        self._thread.start()

    def look_now(self) -> None:
        """Look at the group at once; returns before that is done."""
        self._nudge.set()

    def promote(self, tasks: Collection[TaskId]) -> None:
        """These tasks become active here: their standbys are closed when this returns, and none is opened.

        Raises:
            ProcessorStateException: a store could not be flushed; it is closed nevertheless.
        """
        with self._lock:
            self._active |= set(tasks)
            self._close(self._tasks.keys() & set(tasks))
        self._nudge.set()

    def let_go(self, tasks: Collection[TaskId]) -> None:
        """These tasks are no longer active here, and their stores are closed: standbys may take their folders."""
        with self._lock:
            self._active -= set(tasks)
        self._nudge.set()

    def stop(self) -> None:
        """Close all standbys and open none any more. May be called twice, and before `start`."""
        with self._lock:
            self._stopping.set()
            self._start_over()
        self._nudge.set()
        until = time.monotonic() + _END_SECONDS
        while self._thread.is_alive() and not self._asks and time.monotonic() < until:
            self._thread.join(_END_LOOK)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._turn()
            except BrokerNotAvailableException as error:
                _LOGGER.log(logging.WARNING if self._tasks else logging.DEBUG, "%s. Standbys stay as they are", error)
            except Exception as error:
                self._report(error)
                with self._lock:
                    self._start_over()
                self._stopping.wait(_AGAIN_SECONDS)
            self._nudge.wait(self._seconds_to_the_next_look)
            self._nudge.clear()

    @property
    def _seconds_to_the_next_look(self) -> float:
        if self._moving or self.awaits_a_move:
            return _MOVE_LOOK_SECONDS
        return _LOOK_SECONDS if self._replicas or self._tasks else _QUIET_SECONDS

    def _turn(self) -> None:
        """Look at the group once, and follow it."""
        counts = self._counts()
        if not counts or self._stopping.is_set():
            return
        tasks = stateful_tasks(self._topology, counts)
        group = self._asked_members()
        members = taking_part(group)
        placed = place_standbys(members, tasks, self._replicas, self._tag_keys)
        self._say_what_is_missing(len(tasks), sum(self._replicas - len(kept) for kept in placed.values()))
        owners = owners_of(members, tasks)
        self._say_what_is_shared(owners, placed, tags_of(members, self._tag_keys))
        wanted = {task for task, instances in placed.items() if self._instance in instances}
        moving = frozenset(move.task for move in moves(group, tasks) if move.heir == self._instance)
        wanted |= moving
        # What the group is giving to this instance stays until the thread that gets it promotes it.
        expected = expected_by(self._instance, group, tasks)
        coming = expected | {task for task, owner in owners.items() if owner == self._instance}
        with self._lock:
            if self._stopping.is_set():
                return
            if self._updater is not None:
                self._updater.completed()  # raises what ended it
                if self._changelogs_are_others():
                    self._start_over()
                    return
            self._set_damaged_aside()
            self._close(self._tasks.keys() - wanted - coming)
            self._open(sorted(wanted - self._active - self._tasks.keys()))
            self._moving = moving
            # Not before all have joined: until then the others keep what they have.
            self._await(frozenset() if announced(group) else frozenset(expected & self._tasks.keys()))

    def _asked_members(self) -> Collection[GroupMember]:
        self._asks = True
        try:
            return self._members()
        finally:
            self._asks = False

    def _await(self, tasks: frozenset[TaskId]) -> None:
        if tasks - self._awaited:
            self._awaited_since = time.monotonic()
        self._awaited = tasks

    def _changelogs_are_others(self) -> bool:
        """Whether changelogs were made anew: what the updater's consumer knows of the old ones is in its way."""
        self._watch.gone()
        renewed = self._watch.renewed()
        if renewed:
            _LOGGER.warning("changelogs were deleted and made anew: %s", ", ".join(sorted(renewed)))
            self._watch.forget()
            self._nudge.set()
        return bool(renewed)

    def _open(self, tasks: Collection[TaskId]) -> None:
        opened: dict[StateRestorer, StandbyTask] = {}
        for task_id in tasks:
            task = StandbyTask(task_id, self._topology.subtopologies[task_id.subtopology])
            opened |= dict.fromkeys(task.open(self._directory), task)
            self._tasks = {**self._tasks, task_id: task}
        if opened and self._updater is None:
            self._watch.gone()  # asks at once: a changelog that is made anew by the next look would be the first seen
            self._updater = self._make_updater(self._why)
            self._updater.start()
        if opened and self._updater is not None:
            self._updater.add(opened)

    def _close(self, tasks: Collection[TaskId]) -> None:
        gone = [self._tasks[each] for each in tasks]
        if self._updater is not None and gone:
            self._updater.remove({changelog for task in gone for changelog in task.changelogs})
        self._tasks = {each: task for each, task in self._tasks.items() if task not in gone}
        with ExitStack() as closing:
            for task in gone:
                closing.callback(task.close)

    def _set_damaged_aside(self) -> None:
        """Close standbys with damaged files; they are opened again at once, and follow from the beginning."""
        damaged = [task for task in self._tasks.values() if damage_of(task.stores.values())]
        self._close([task.id for task in damaged])
        for task in damaged:
            set_damaged_aside(task.stores, self._directory)

    def _start_over(self) -> None:
        """Close everything, the updater too; what fails on the way is logged."""
        try:
            self._close(list(self._tasks))
        except Exception as error:
            _LOGGER.warning("closing standbys: %s", error)
        updater, self._updater = self._updater, None
        if updater is not None:
            updater.stop()

    def _why(self, task: TaskId) -> SuspendReason:
        # Asked by the updater's thread while another one waits for it with the lock.
        return SuspendReason.PROMOTED if task in self._active else SuspendReason.MIGRATED

    def _say_what_is_missing(self, tasks: int, missing: int) -> None:
        if missing and missing != self._missing:
            _LOGGER.warning(
                "%d of %d standbys have no instance to be kept on, since a task and its standbys are never on the same"
                " one. Raise spec.replicas above spec.processing.standbyReplicas (%d), or lower that",
                missing,
                tasks * self._replicas,
                self._replicas,
            )
        self._missing = missing

    def _say_what_is_shared(
        self, owners: Mapping[TaskId, str], placed: Mapping[TaskId, Collection[str]], tags: Mapping[str, Tags]
    ) -> None:
        shared = shared_tags(owners, placed, tags, self._tag_keys)
        if shared and shared != self._shared:
            values = {key: sorted({each[key] for each in tags.values() if key in each}) for key in shared}
            _LOGGER.warning(
                "standbys could not be kept apart from their tasks and from each other by %s; they are where they would"
                " be without tags. Run instances with more values, or lower spec.processing.standbyReplicas (%d)",
                "; ".join(f"{key} (of {shared[key]} tasks; there is {', '.join(values[key])})" for key in shared),
                self._replicas,
            )
        self._shared = shared

    def _report(self, error: Exception) -> None:
        _LOGGER.error(
            "Standbys are closed, and opened again in %.0f s; the tasks that are active here go on: %s: %s",
            _AGAIN_SECONDS,
            type(error).__name__,
            error,
        )
        _LOGGER.debug("stack trace", exc_info=error)
