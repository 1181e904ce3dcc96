"""How long a warm-up is waited for, and an instance that does not answer is believed; by a clock that is given."""

from __future__ import annotations

from collections.abc import Callable

from streams_runtime.tasks.warm_up_plan import Account, Accounts, Outlook

PATIENCE_SECONDS = 60.0
"""In which a warm-up has to come `PROGRESS_RECORDS` nearer to its end; if it does not, it is not waited for."""
FOLLOWED_SECONDS = 10.0
"""For which tasks are followed closely before they move with a larger lag, since their owners write so much."""
PROGRESS_RECORDS = 10_000
SILENCE_SECONDS = 10.0
"""For which an instance that does not answer is taken to go on as before: a busy one may answer late."""


class Patience:
    """How long a warm-up is waited for. For one announced instance."""

    def __init__(self, clock: Callable[[], float], most_seconds: float) -> None:
        """`most_seconds`: from now on, however much it comes nearer to its end."""
        self._clock = clock
        self._until = clock() + most_seconds
        self._met: set[frozenset[str]] = set()
        self._best = (0, 0)
        self._received = 0
        self._since = clock()
        self._close_since: float | None = None

    @property
    def has_run_out(self) -> bool:
        """Whether it is not waited for in any case."""
        return self._clock() >= self._until

    def begin_anew(self) -> None:
        """What was seen is forgotten, since nothing could be for a while; `most_seconds` go on."""
        self._met.clear()
        self._since = self._clock()
        self._close_since = None

    def has_followed(self, seen: Outlook, acceptable: int) -> bool:
        """Whether the heirs have followed closely for long enough, by the looks so far. To be called at every look."""
        now = self._clock()
        if not seen.is_followed_closely(acceptable):
            self._close_since = None
            return False
        if self._close_since is None:
            self._close_since = now
        return now - self._close_since >= FOLLOWED_SECONDS

    def is_over(self, seen: Outlook, acceptable: int) -> bool:
        """Whether what `seen` waits for has not come nearer for too long. To be called at every look.

        What is not known counts before all numbers; what comes of a snapshot counts while something is not known. A
        group of other instances than ever before has its own time.
        """
        behind = seen.behind(acceptable)
        lags = [lag for lag in behind.values() if lag is not None]
        unknown, left = len(behind) - len(lags) + len(seen.unready), sum(lags)
        best_unknown, best_left = self._best
        nearer = unknown < best_unknown or (unknown == best_unknown and left <= best_left - PROGRESS_RECORDS)
        if nearer or seen.instances not in self._met:
            self._met.add(seen.instances)
            self._best, self._since = (unknown, left), self._clock()
        if len(lags) < len(behind) and seen.received > self._received:
            self._since = self._clock()
        self._received = seen.received
        return self._clock() - self._since >= PATIENCE_SECONDS


class Belief:
    """What instances have said last. For one announced instance."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._last: dict[str, tuple[float, Account]] = {}

    def after(self, answers: Accounts) -> dict[str, Account | None]:
        """The accounts to go by, when these are the answers. None: it has not answered for `SILENCE_SECONDS`."""
        return {name: self._believed(name, answer) for name, answer in answers.items()}

    def _believed(self, name: str, answer: Account | None) -> Account | None:
        now = self._clock()
        if answer is not None:
            self._last[name] = now, answer
            return answer
        since, last = self._last.setdefault(name, (now, Account(ready=False, follows=False, assumed=True)))
        return last if now - since < SILENCE_SECONDS else None
