"""Exceptions that end a stream thread in the middle of its work, when a test wants one."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from streams_runtime.processing.batch_queue import Batches


class Faults:
    """Raises what it was given in the next batch with records, once, before anything of it is written."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.next: BaseException | None = None
        self.raised = Counter[str]()
        inner = Batches.work_on

        def work_on(batches: Batches, batch: Any) -> None:
            if batch is not None and self.next is not None:
                error, self.next = self.next, None
                self.raised[type(error).__name__] += 1
                raise error
            inner(batches, batch)

        monkeypatch.setattr(Batches, "work_on", work_on)
