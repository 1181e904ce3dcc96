"""What a batch's part of one side of a join by a foreign key comes to."""

from __future__ import annotations

from dataclasses import dataclass, field

from streams_runtime.pipeline.stage import Emission, Keyed
from streams_runtime.state.store import Updates
from streams_runtime.state.stores import AnyStore


@dataclass(slots=True)
class Done:
    """Records for the other side, what the stores will hold, and the changes of the join's result, in turn."""

    emissions: list[Emission] = field(default_factory=list)
    updates: list[tuple[AnyStore, Updates]] = field(default_factory=list)
    changes: Keyed | None = None
