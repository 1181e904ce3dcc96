"""The warm-up of an instance that starts: it takes part in its group when the tasks that it gets are warm."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from streams_runtime.client_context import ClientContext
from streams_runtime.errors import BrokerNotAvailableException, StreamsException
from streams_runtime.kafka.consumer.announcement import Announcement
from streams_runtime.kafka.types import GroupMember
from streams_runtime.tasks.announcements import announced, announcing_client_id
from streams_runtime.tasks.standby_placement import stateful_tasks
from streams_runtime.tasks.task_accounts import standby_ages, standby_lags
from streams_runtime.tasks.warm_up_patience import Belief, Patience
from streams_runtime.tasks.warm_up_plan import Account, Accounts, Outlook, account_of, moves, outlook

_LOGGER = logging.getLogger("streams_runtime.threads")
_LOOK_SECONDS = 0.5  # between two looks at the group and at the other instances
_WAIT_SECONDS = 0.1  # between two looks of a thread that waits
_ASK_SECONDS = 3.0  # for the group to answer
_END_SECONDS = 3.0  # for the announcement to be taken back; brokers that are away would not hear of it
_JOIN_SECONDS = 60.0  # for the threads to be members; the announcement ends then in any case

Figures = Callable[[Collection[str]], Mapping[str, Mapping[str, Any] | None]]
"""What instances say at `/state/figures`; None: an instance does not answer."""


class WarmUp:
    """Of one client, once: a client that has taken part joins anew without it. Safe to use from any thread."""

    def __init__(self, context: ClientContext, address: Callable[[], str], figures: Figures) -> None:
        """`address`: where others reach this instance, as client ids say it; asked for when the instance starts."""
        self._context = context
        self._own = context.settings.instance
        self._group = context.application.application_id
        self._threads = context.application.spec.processing.stream_threads
        self._acceptable = context.application.spec.processing.acceptable_recovery_lag
        self._timeout = context.application.spec.processing.warm_up_timeout.total_seconds()
        self._address = address
        self._figures = figures
        self._belief = Belief(time.monotonic)
        self._asking = threading.Lock()
        self._joins = threading.Event()
        self._closing = threading.Event()
        self._since = 0.0
        self._seen: Outlook | None = None
        self._thread: threading.Thread | None = None

    def wait(self, should_stop: Callable[[], bool], pause: Callable[[float], object]) -> None:
        """Return when the instance may take part in its group, or `should_stop` says so. Each stream thread calls it.

        `pause` waits for so many seconds, or less.

        Raises what keeps Spark from starting, before the instance has taken a task from others.
        """
        with self._asking:
            while not self._has_begun and not should_stop():
                try:
                    self._begin()
                except BrokerNotAvailableException as error:
                    _LOGGER.warning("%s. %s waits until it knows whether it is to warm up", error, self._own)
                    pause(_LOOK_SECONDS)
        while not self._joins.is_set() and not should_stop():
            self._context.engine.ready()
            pause(_WAIT_SECONDS)

    def withdraw(self) -> None:
        """Begin to take the announcement back; threads that wait go on waiting until they are stopped."""
        self._closing.set()

    def close(self) -> None:
        """Take the announcement back, within a few seconds: what brokers do not hear ends with the member's session."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join(_END_SECONDS)

    @property
    def remaining(self) -> int:
        """Records that are missing in the stores that this instance waits for, as far as they are known."""
        seen = self._seen
        return 0 if seen is None else seen.remaining

    def snapshot(self) -> dict[str, Any] | None:
        """What `/state` says of it; None before it and after it."""
        seen = self._seen
        if seen is None:
            return None
        return {
            "started_at": self._since,
            "ready": self._is_ready,
            "remaining": seen.remaining,
            "tasks": [
                {"id": str(move.task), "owner": move.owner, "instance": move.heir, "lag": lag}
                for move, lag in seen.warming.items()
            ],
            "unready": sorted(seen.unready),
        }

    @property
    def _client_id(self) -> str:
        return announcing_client_id(self._own, self._address(), self._threads)

    @property
    def _is_ready(self) -> bool:
        """Whether batches could be worked on at once."""
        return self._context.engine.is_ready

    @property
    def _has_begun(self) -> bool:
        return self._thread is not None or self._joins.is_set()

    def _begin(self) -> None:
        """Let the instance join, or announce it. Raises BrokerNotAvailableException: it could not join, either."""
        try:
            seen = None if self._context.standbys is None or not self._timeout else self._look()
        except BrokerNotAvailableException:
            raise
        except StreamsException as error:
            _LOGGER.warning("%s. %s takes part without a warm-up", error, self._own)
            seen = None
        if seen is None or not seen.warming:
            self._joins.set()
            return
        self._seen, self._since = seen, time.time()
        self._tell_begin(seen)
        self._context.engine.start()
        self._thread = threading.Thread(target=self._run, name=f"{self._own}-warm-up", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            announcement = Announcement(self._context.client_properties, self._group, self._client_id)
            try:
                self._warm_up(announcement)
                self._end()
                self._stay_until_joined(announcement)
            finally:
                announcement.close()
        except Exception as error:
            _LOGGER.warning("%s. %s takes part without further warm-up", error, self._own)
            _LOGGER.debug("stack trace", exc_info=error)
        finally:
            self._end()

    def _end(self) -> None:
        self._seen = None
        if not self._closing.is_set():
            self._joins.set()

    def _warm_up(self, announcement: Announcement) -> None:
        patience = Patience(time.monotonic, self._timeout)
        while not self._closing.wait(_LOOK_SECONDS):
            announcement.poll()
            try:
                self._seen = seen = self._look()
            except BrokerNotAvailableException as error:
                _LOGGER.debug("%s", error)  # whoever needs the brokers says that they are away
                patience.begin_anew()
                continue
            is_over = patience.is_over(seen, self._acceptable)
            is_close = patience.has_followed(seen, self._acceptable)
            may_join = self._is_ready and (is_over or is_close or seen.is_complete(self._acceptable))
            if not seen.warming or may_join or patience.has_run_out:
                self._tell_end(seen, patience.has_run_out, is_close)
                return
            standbys = self._context.standbys
            if standbys is not None and seen.tasks_of(self._own) - standbys.tasks.keys():
                standbys.look_now()

    def _look(self) -> Outlook:
        """Ask the group and the instances. Raises what Admin.group_members raises."""
        tasks = stateful_tasks(self._context.topology, self._context.partition_counts)
        members = list(self._context.admin.group_members(self._group, _ASK_SECONDS))
        if all(each.client_id != self._client_id for each in members):
            members.append(GroupMember(self._client_id, None, self._client_id, "", ()))  # it is on its way
        found = moves(members, tasks)
        others = {name for move in found for name in (move.owner, move.heir)} | announced(members)
        return outlook(self._own, members, tasks, self._accounts(others - {self._own}))

    def _accounts(self, others: Collection[str]) -> Accounts:
        answers = self._figures(others)
        standbys, snapshots = self._context.standbys, self._context.snapshots
        kept = {} if standbys is None else standbys.tasks
        lags = standby_lags(kept.values(), self._context.standby_progress.snapshot())
        ages = standby_ages(kept.values(), self._context.standby_progress.ages())
        believed = self._belief.after(
            {name: None if answer is None else account_of(answer) for name, answer in answers.items()}
        )
        received = 0 if snapshots is None else snapshots.fetcher.totals.received
        return believed | {self._own: Account(lags=lags, ages=ages, ready=self._is_ready, received=received)}

    def _stay_until_joined(self, announcement: Announcement) -> None:
        """The announcement stays until the threads are members: others know all the time what is to come."""
        until = time.monotonic() + _JOIN_SECONDS
        while time.monotonic() < until and not self._closing.wait(_LOOK_SECONDS):
            announcement.poll()
            members = self._context.admin.group_members(self._group, _ASK_SECONDS)
            if self._own not in announced(members):
                return

    def _tell_begin(self, seen: Outlook) -> None:
        _LOGGER.info(
            "%s takes part when these tasks lag at most %d records where they go; they are processed where they are"
            " meanwhile: %s",
            self._own,
            self._acceptable,
            ", ".join(map(str, seen.warming)),
        )

    def _tell_end(self, seen: Outlook, is_late: bool, is_close: bool) -> None:
        seconds = time.time() - self._since
        if not seen.warming:
            _LOGGER.info("%s takes part after %.1f s: nobody processes what it waits for any more", self._own, seconds)
            return
        late = [f"{move} ({_records(lag)})" for move, lag in seen.behind(self._acceptable).items()]
        late += [f"{name} is announced and does not say that it is ready" for name in sorted(seen.unready)]
        late += [] if self._is_ready else ["Spark does not run here yet"]
        if not late:
            _LOGGER.info("%s takes part after a warm-up of %.1f s", self._own, seconds)
            return
        if is_close and self._is_ready:
            _LOGGER.info(
                "%s takes part after a warm-up of %.1f s. More than %d records are written between two looks, so that"
                " these tasks move with what they lag: %s",
                self._own,
                seconds,
                self._acceptable,
                ", ".join(late),
            )
            return
        why = (
            "spec.processing.warmUpTimeout is over" if is_late else "its warm-up came no nearer to its end for a minute"
        )
        _LOGGER.warning(
            "%s takes part after %.1f s, since %s. Tasks that are not warm stop until they are restored: %s",
            self._own,
            seconds,
            why,
            ", ".join(late),
        )


def _records(lag: int | None) -> str:
    return "an unknown lag" if lag is None else f"{lag} records"
