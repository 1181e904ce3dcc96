"""A process step under the same name in two topologies: what its stores hold, and would be read as."""

from __future__ import annotations

from collections.abc import Iterator

from streams_runtime.api.flow.known_columns import shown_type
from streams_runtime.api.reading.field_paths import under
from streams_runtime.api.schemas.ddl_schema import parse_schema
from streams_runtime.topology.changes.change import Change
from streams_runtime.topology.nodes.plan_node import PlanNode
from streams_runtime.topology.nodes.process_node import ProcessNode, ProcessorStore

_RENAME = "give the store a new name, which makes it begin empty, or put back what it was"


def process_store_changes(was: PlanNode, now: PlanNode, name: str, field: str) -> Iterator[Change]:
    """What is other in a store that a process step has in either topology, or in both: its keys, and its columns.

    `field` is where it stands in the new one.
    """
    if not isinstance(was, ProcessNode) or not isinstance(now, ProcessNode):
        found = f"the store {name} was that of {was.name} and is that of {now.name}"
        yield Change("changed", field, found, "what it holds is of the other kind, and can't be read as this", _RENAME)
        return
    had = next((each for each in was.stores if each.name == name), None)
    has = next((each for each in now.stores if each.name == name), None)
    if had is None or has is None:  # the step's own, which is of every step alike
        return
    path = under(now.path, "process", "stores", name)
    if had.key_format != has.key_format:
        yield Change(
            "changed",
            under(path, "key"),
            f"the keys of the store {name} were {had.key_format} and are {has.key_format}",
            "what is under the old keys is read as other keys, or not at all",
            _RENAME,
        )
    yield from _window_changes(had, has, path)
    before, after = _types(had.value), _types(has.value)
    for column, kind in after.items():
        if before.get(column, kind) != kind:
            yield Change(
                "changed",
                under(path, "value"),
                f"the column {column} of the store {name} was {before[column]} and is {kind}",
                "a value that was written as the old type ends the processor that reads it, unless it fits the new one",
                _RENAME,
            )


def _window_changes(had: ProcessorStore, has: ProcessorStore, path: str) -> Iterator[Change]:
    if had.windowing is None or has.windowing is None:
        return
    before, after = had.windowing, has.windowing
    field = "session" if has.kind == "session" else "window"
    if before.size != after.size:
        yield Change(
            "changed",
            under(path, field, "size"),
            f"the windows of the store {has.name} were {before.size} ms long and are {after.size} ms long",
            "windows that are there are shown with the new length",
            _RENAME,
        )
    if before.retention != after.retention:
        yield Change(
            "changed",
            under(path, field, "retention"),
            f"the retention of the store {has.name} was {before.retention} ms and is {after.retention} ms",
            "the changelog was made for the old one, and its stores lie in segments of the old length: they are"
            " restored anew, and a longer retention is refused until the topic's retention.ms has grown",
            "keep it, or raise the topic's retention.ms first",
        )


def _types(ddl: str) -> dict[str, str]:
    return {each.name: shown_type(each.type) for each in parse_schema(ddl)[0] or () if each.type is not None}
