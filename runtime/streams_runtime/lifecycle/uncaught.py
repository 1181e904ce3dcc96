"""What an exception that ends a stream thread comes to (KIP-671): the handler's answer, and whether it can be had.

Pure: `judge` says what is to be done; the lifecycle does it.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from streams_runtime.errors import IllegalStateException
from streams_runtime.lifecycle.retry_budget import RestartBudget, RestartPolicy

REPLACEMENTS = RestartPolicy(budget=5, refill=60.0, first=0.5)
"""How often a client's threads are replaced: five times in a row, one more for each minute that went well."""


class UncaughtExceptionResponse(enum.Enum):
    """What to end, after an exception has ended a stream thread."""

    REPLACE_THREAD = "replaceThread"
    """The thread only: a new one takes its member name and its tasks. REPLACEMENTS bounds how often."""
    SHUTDOWN_CLIENT = "shutdownClient"
    """This client, in ERROR. The default."""
    SHUTDOWN_APPLICATION = "shutdownApplication"
    """Every client of the application, each in ERROR."""


UncaughtExceptionHandler = Callable[[BaseException], UncaughtExceptionResponse]
"""Called on the thread that ends, with what ended it; may look at its class. Must not block."""

Declared = Literal["shutdownClient", "shutdownApplication", "replaceThread"]


def declared(answer: Declared) -> UncaughtExceptionHandler:
    """The handler that spec.processing.onUncaughtException stands for."""
    response = UncaughtExceptionResponse(answer)
    return lambda _error: response


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is to be done. `budget` is what is left of it; a replacement begins after `delay` seconds.

    `note`: why it is not what the handler asked for; empty when it is.
    """

    response: UncaughtExceptionResponse
    budget: RestartBudget
    delay: float = 0.0
    note: str = ""


def judge(
    error: BaseException,
    handler: UncaughtExceptionHandler,
    budget: RestartBudget,
    uptime: float,
    beyond_repair: str | None = None,
) -> Verdict:
    """What an exception of a thread that ran for `uptime` seconds comes to.

    `beyond_repair`: why a new thread would meet the same at once (Spark has gone, say); None: it may do better. A
    handler that raises, or that returns anything but a response, ends the client. Raises nothing.
    """
    shutdown = UncaughtExceptionResponse.SHUTDOWN_CLIENT
    try:
        answer = handler(error)
    except Exception as failure:
        return Verdict(
            shutdown,
            budget,
            note=f"the uncaught exception handler failed on it with {type(failure).__name__}: {failure}",
        )
    if not isinstance(answer, UncaughtExceptionResponse):
        found = f"the uncaught exception handler returned {answer!r}, which is no UncaughtExceptionResponse"
        return Verdict(shutdown, budget, note=found)
    if answer is not UncaughtExceptionResponse.REPLACE_THREAD:
        return Verdict(answer, budget)
    hopeless = beyond_repair or _hopeless(error)
    if hopeless is not None:
        return Verdict(shutdown, budget, note=f"the thread is not replaced: {hopeless}")
    budget, delay = budget.after_crash(uptime)
    if delay is None:
        spent = (
            f"the thread is not replaced: {budget.policy.budget} replacements in a row did not help, and each"
            f" {budget.policy.refill:g} s that go well allow one more"
        )
        return Verdict(shutdown, budget, note=spent)
    return Verdict(answer, budget, delay)


def _hopeless(error: BaseException) -> str | None:
    """As in Kafka Streams, a defect of the runtime itself is never left to a new thread."""
    if isinstance(error, IllegalStateException):
        return "the runtime asked for a move between states that there is not, which is a defect of it"
    if isinstance(error, MemoryError):
        return "the process is out of memory"
    return None if isinstance(error, Exception) else f"{type(error).__name__} is meant to end the process"
