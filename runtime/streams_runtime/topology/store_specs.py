"""The state stores of a plan: their kinds, and how windowed ones keep their records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from streams_runtime.api.reading.legal_names import changelog_topic
from streams_runtime.errors import TopologyException

StoreKind = Literal[
    "key-value", "window", "session", "join", "unjoined", "dedupe", "subscription", "process", "suppress"
]
"""`join` is the window store of a side of a join of streams, `unjoined` that of its records without a match.

`dedupe` is the window store of the ids that a dedupe has seen, `subscription` that of the rows which name a row of
another table, `process` what a task of a process step has come to, `suppress` that of changes that wait before they
are passed on.
"""

_LEAST_SEGMENT_INTERVAL = 60_000


@dataclass(frozen=True, slots=True)
class Windowing:
    """How a window or session store keeps its records. All in ms.

    `retention`: how long a record is shown, in stream time; at least the windows' size and their grace. `size` is that
    of the longest window; None for sessions, each of which has its own. Raises TopologyException for windows that would
    expire before they end.
    """

    retention: int
    size: int | None = None

    def __post_init__(self) -> None:
        if self.retention < 1 or (self.size is not None and not 1 <= self.size <= self.retention):
            raise TopologyException(
                f"a store with windows of {self.size} ms and a retention of {self.retention} ms loses windows before"
                " they end; give it a retention of at least their size and grace"
            )

    @property
    def segment_interval(self) -> int:
        """Records of so many ms are dropped together, once all of them have expired; Kafka Streams' own rule."""
        return max(self.retention // 2, _LEAST_SEGMENT_INTERVAL)


@dataclass(frozen=True, slots=True)
class StoreSpec:
    """A state store. `changelog_topic` is a full name; with `source_changelog` the user's source topic.

    `windowing` belongs to the kinds `window`, `session`, `join` and `dedupe`. Of a store that is `global_` every client
    has the whole, and no task a part. `history`: for how long (ms, in stream time) a key-value store keeps what each
    key had; None: it keeps the last value alone.
    """

    name: str
    kind: StoreKind
    changelog_topic: str
    source_changelog: bool
    node: str
    windowing: Windowing | None = None
    global_: bool = False
    history: int | None = None

    @classmethod
    def kept(
        cls,
        name: str,
        kind: StoreKind,
        application_id: str,
        node: str,
        windowing: Windowing | None = None,
        history: int | None = None,
    ) -> StoreSpec:
        """A store with a changelog of its own."""
        return cls(name, kind, changelog_topic(application_id, name), False, node, windowing, history=history)

    @property
    def is_queryable(self) -> bool:
        """Whether queries see it: what joins of two streams keep is theirs alone, as in Kafka Streams.

        So is what a dedupe keeps, who subscribes to a row, what a task of a process step has come to, and the changes
        that a suppress holds back.
        """
        return self.kind not in ("join", "unjoined", "dedupe", "subscription", "process", "suppress")

    def __post_init__(self) -> None:
        sized = self.windowing is not None and self.windowing.size is not None
        timeless = self.kind in ("key-value", "unjoined", "subscription", "process", "suppress")
        if (self.windowing is None) != timeless or sized != (self.kind == "window"):
            raise TopologyException(
                f"store {self.name!r} of kind {self.kind} can't be kept by {self.windowing}: a window store needs size"
                " and retention, a session store and those of joins and dedupes a retention, a key-value store neither"
            )
