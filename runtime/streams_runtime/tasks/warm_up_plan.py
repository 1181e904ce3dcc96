"""What has to be warm before an announced instance takes part; pure.

The group moves tasks as soon as an instance joins. So an instance first announces itself (announcements). Each instance
that gets a stateful task by that keeps a standby of it, and the announced ones join when those standbys have almost
caught up (KIP-441).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from streams_runtime.kafka.types import GroupMember, TopicPartition
from streams_runtime.states import TaskState
from streams_runtime.tasks.announcements import announced, instance_of, taking_part, when_joined
from streams_runtime.tasks.standby_placement import owners_of, range_assigned
from streams_runtime.topology.plan import TaskId

CLOSE_SECONDS = 5.0
"""For which a standby may have been behind that follows closely, however many records its owner writes in that time."""

Tasks = Mapping[TaskId, frozenset[TopicPartition]]
"""All stateful tasks with their inputs (standby_placement.stateful_tasks)."""


@dataclass(frozen=True, slots=True)
class Move:
    """A stateful task that goes from `owner` to `heir` when all announced instances have joined."""

    task: TaskId
    owner: str
    heir: str

    def __str__(self) -> str:
        return f"{self.task} from {self.owner} to {self.heir}"


@dataclass(frozen=True, slots=True)
class Account:
    """What an instance says of itself.

    `running`: its tasks that process records. `lags`: records that each of its standbys is behind, None while it does
    not know. `ages`: for how many seconds it has been at most. `ready`: whether it could process records at once.
    `follows`: whether it keeps standbys of tasks that are to move to it; earlier versions do not. `received`: bytes of
    snapshots that have come to it since its start. `assumed`: it has not answered yet, and is taken to process what the
    group gives it.
    """

    running: frozenset[TaskId] = frozenset()
    lags: Mapping[TaskId, int | None] = field(default_factory=dict)
    ages: Mapping[TaskId, float | None] = field(default_factory=dict)
    ready: bool = True
    follows: bool = True
    received: int = 0
    assumed: bool = False


Accounts = Mapping[str, Account | None]
"""By instance. None: it does not answer. Not there: nobody knows where it would."""


def account_of(figures: Mapping[str, Any]) -> Account | None:
    """What an instance says at `/state/figures`; None for what is no such answer."""
    try:
        warm_up = figures.get("warm_up")
        running = (TaskId.parse(each["id"]) for each in figures["tasks"] if each["state"] == TaskState.RUNNING)
        standbys = {TaskId.parse(each["id"]): each for each in figures["standbys"] if each.get("id") is not None}
        return Account(
            frozenset(running if figures.get("spark_ready", True) else ()),  # until then they stand still there, too
            {task: each["lag"] for task, each in standbys.items()},
            {task: each.get("age") for task, each in standbys.items()},
            ready=warm_up is None or bool(warm_up["ready"]),
            follows="warm_up" in figures,
            received=int(figures.get("snapshot_bytes", 0)),
        )
    except (KeyError, TypeError, ValueError):
        return None


@dataclass(frozen=True, slots=True)
class Outlook:
    """What an announced instance waits for.

    `warming`: the moves that stop a task that runs, with the records that its heir is behind, None while that is not
    known. `unready`: other announced instances that do not say that they could process records at once.
    `instances`: all of the group. `received`: bytes of snapshots that have come to the heirs. `close`: the moves whose
    heirs have all but what was written in the last `CLOSE_SECONDS`.
    """

    warming: Mapping[Move, int | None]
    unready: frozenset[str]
    instances: frozenset[str]
    received: int = 0
    close: frozenset[Move] = frozenset()

    def behind(self, acceptable: int) -> dict[Move, int | None]:
        """The moves whose heirs lag more than `acceptable` records, or have not said."""
        return {move: lag for move, lag in self.warming.items() if lag is None or lag > acceptable}

    def is_complete(self, acceptable: int) -> bool:
        """Whether the group can move the tasks."""
        return not self.behind(acceptable) and not self.unready

    def is_followed_closely(self, acceptable: int) -> bool:
        """Whether nothing is waited for but heirs that lag by what owners have just written."""
        return not self.unready and self.behind(acceptable).keys() <= self.close

    def tasks_of(self, heir: str) -> frozenset[TaskId]:
        """The tasks that `heir` warms up."""
        return frozenset(move.task for move in self.warming if move.heir == heir)

    @property
    def remaining(self) -> int:
        """The records that heirs are behind, as far as they say."""
        return sum(lag or 0 for lag in self.warming.values())


def moves(members: Collection[GroupMember], tasks: Tasks) -> list[Move]:
    """The tasks that go to another instance when all that are announced have joined."""
    if not announced(members):
        return []
    owners, heirs = owners_of(taking_part(members), tasks), range_assigned(when_joined(members), tasks)
    return [Move(task, owners[task], heir) for task, heir in sorted(heirs.items()) if owners.get(task, heir) != heir]


def expected_by(instance: str, members: Collection[GroupMember], tasks: Tasks) -> set[TaskId]:
    """The tasks that the group gives to `instance`, when it is at rest and all that are announced have joined."""
    return {task for task, heir in range_assigned(when_joined(members), tasks).items() if heir == instance}


def outlook(own: str, members: Collection[GroupMember], tasks: Tasks, accounts: Accounts) -> Outlook:
    """What `own`, which is announced, waits for; nothing when it is a member already.

    A task that nobody processes now, since its owner restores it too or is gone, is not waited for: whoever gets it,
    it can't go on earlier elsewhere (as in KIP-441, where a task without a caught-up owner is assigned at once). Nor
    is an heir that does not answer, or does not follow.
    """
    instances = frozenset(map(instance_of, members))
    coming = announced(members)
    if own not in coming or own in {instance_of(each) for each in taking_part(members)}:
        return Outlook({}, frozenset(), instances)
    warming: dict[Move, int | None] = {}
    close: set[Move] = set()
    for move in moves(members, tasks):
        owner = accounts.get(move.owner, Account(frozenset({move.task})))
        heir = accounts.get(move.heir)
        runs = owner is not None and (owner.assumed or move.task in owner.running)
        if runs and heir is not None and heir.follows:
            warming[move] = heir.lags.get(move.task)
            age = heir.ages.get(move.task)
            close |= {move} if age is not None and age <= CLOSE_SECONDS else set()
    # One that was killed counts as announced until its session ends, and then other tasks come to the rest.
    unready = {name for name in coming - {own} if name in accounts and not _is_ready(accounts[name])}
    heirs = [accounts.get(name) for name in {move.heir for move in warming}]
    received = sum(each.received for each in heirs if each is not None)
    return Outlook(warming, frozenset(unready if warming else ()), instances, received, frozenset(close))


def _is_ready(account: Account | None) -> bool:
    return account is not None and account.ready
