"""The process steps that made topologies have: what a step declares beside its class, and what goes on behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

VALUE = "v BIGINT, g STRING"
_NUMBERS = {"key": "STRING", "value": "n BIGINT"}


@dataclass(frozen=True)
class ProcessKind:
    """A class of composed_processors: its store, the type of the keys that it gives, and its outputs.

    All outputs meet again in a merge, the last one behind a select.
    """

    of: str
    store: Mapping[str, Any] | None = None
    key: str | None = None
    outputs: tuple[str, ...] = ()

    def process(self, step: str) -> dict[str, Any]:
        """The field `process` of the step of this name."""
        own: dict[str, Any] = {"python": f"composed_processors:{self.of}", "value": VALUE}
        if self.store is not None:
            own |= {"python": f"{own['python']}_{step}", "stores": {f"{step}-kept": dict(self.store)}}
        if self.outputs:
            own["outputs"] = [*self.outputs]
        return own | ({} if self.key is None else {"key": self.key})


PROCESS_KINDS: Mapping[str, ProcessKind] = {
    "process counts": ProcessKind("Counting", _NUMBERS),
    "process windows": ProcessKind("Windowing", {**_NUMBERS, "window": {"size": "2s", "retention": "6s"}}),
    "process sessions": ProcessKind("Visiting", {**_NUMBERS, "session": {"retention": "4s"}}),
    "process sweeps": ProcessKind("Sweeping", {"key": "STRING", "value": "n BIGINT, g STRING, at BIGINT"}, "STRING"),
    "process resets": ProcessKind("Resetting", _NUMBERS),
    "process keys": ProcessKind("Rekeying", key="BIGINT"),
    "process outputs": ProcessKind("Sorting", outputs=("even", "odd")),
    "process outputs keys": ProcessKind("SortingKeys", key="STRING", outputs=("even", "odd")),
    "process columns": ProcessKind("Columns"),
    "process batches": ProcessKind("Batching", _NUMBERS, "STRING"),
}
PICKY_KINDS: Mapping[str, ProcessKind] = {
    "process picks": ProcessKind("Picky", _NUMBERS),
    "process picks columns": ProcessKind("PickyColumns"),
}
"""Those that fail over some records, which only `onProcessingError` lets an application have."""

UNORDERED = tuple(name for name, kind in PROCESS_KINDS.items() if kind.key is None or kind.outputs)
"""Those behind which records have no order by their offsets: of no topic, or of several."""
