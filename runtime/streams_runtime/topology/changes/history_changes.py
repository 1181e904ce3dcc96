"""What becomes of a table's store when the table gets a history, loses it, or keeps it for another time."""

from __future__ import annotations

from datetime import timedelta

from streams_runtime.api.reading.field_paths import under
from streams_runtime.api.spec.spec_values import format_duration
from streams_runtime.topology.changes.change import Change
from streams_runtime.topology.nodes.source_and_sink_nodes import TableSourceNode
from streams_runtime.topology.nodes.table_nodes import ToTableNode
from streams_runtime.topology.store_specs import StoreSpec


def history_change(node: TableSourceNode | ToTableNode, before: StoreSpec, after: StoreSpec) -> Change:
    """The change of a store whose `history` differs; `node` is the table's in the new topology."""
    field = "table" if isinstance(node, TableSourceNode) else "toTable"
    return Change(
        "changed",
        under(node.path, field, "historyRetention"),
        f"the store {after.name} {_had(before.history)} and {_has(after.history)}",
        _consequence(before, after),
        "put it back, or allow for the restoration"
        + (
            f"; raise min.compaction.lag.ms of {after.changelog_topic} first"
            if _keeps_longer(before, after) and not after.source_changelog
            else ""
        ),
    )


def _consequence(before: StoreSpec, after: StoreSpec) -> str:
    topic = after.changelog_topic
    restored = f"it is wiped and restored from {topic}"
    if after.history is None:
        return f"{restored}, and joins take the last value of a key, whatever the times of their records"
    joins = "" if before.history is not None else ", and joins take what was valid at the times of their records"
    lost = "" if not _keeps_longer(before, after) else "; what compaction has removed there is missing in the history"
    if _keeps_longer(before, after) and not after.source_changelog:
        lost += ", and the application does not start until the topic's min.compaction.lag.ms has grown"
    return f"{restored}{joins}{lost}"


def _keeps_longer(before: StoreSpec, after: StoreSpec) -> bool:
    return after.history is not None and (before.history is None or after.history > before.history)


def _had(history: int | None) -> str:
    return "had no history" if history is None else f"had a history of {_shown(history)}"


def _has(history: int | None) -> str:
    return "has none" if history is None else f"has one of {_shown(history)}"


def _shown(history: int) -> str:
    return format_duration(timedelta(milliseconds=history))
