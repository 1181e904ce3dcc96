"""Work that ends when the caller has left."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
from fastapi import Request

T = TypeVar("T")


class CallerLeft(Exception):
    """Nobody waits for the answer any more."""


async def while_connected(request: Request, do: Callable[[], Awaitable[T]]) -> T:
    """What `do` gives; it is cancelled when the caller leaves.

    Raises:
        CallerLeft: that happened.
    """
    answer: list[T] = []

    async def listen(scope: anyio.CancelScope) -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        scope.cancel()

    # Not around `do`: a task group would put its exceptions into a group.
    error: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listen, tasks.cancel_scope)
        try:
            answer.append(await do())
        except Exception as raised:
            error = raised
        tasks.cancel_scope.cancel()
    if error is not None:
        raise error
    if not answer:
        raise CallerLeft
    return answer[0]
