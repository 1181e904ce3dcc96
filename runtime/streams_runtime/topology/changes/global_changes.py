"""What becomes of a table's store when the table is made global, or is no longer."""

from __future__ import annotations

from streams_runtime.topology.changes.change import Change
from streams_runtime.topology.store_specs import StoreSpec


def global_change(where: str, store: StoreSpec) -> Change:
    """The change of a store that is of tasks in one topology and global in the other; `store` is the new one."""
    kinds = ("in parts by tasks", "in whole by every instance")
    before, after = kinds if store.global_ else kinds[::-1]
    consequence = (
        "every instance reads the whole topic before it runs, and what tasks kept of it stays behind in their folders"
        if store.global_
        else "tasks read only what comes after the offsets that the group has committed, which it has none of for a"
        f" global table: they read {store.changelog_topic} from its beginning, and the instances' copies stay behind"
    )
    return Change(
        "changed",
        where,
        f"the store {store.name} was kept {before} and is kept {after}",
        consequence,
        "put it back, or allow the change: the topic has all that the store had, but for what brokers have deleted",
    )
