"""The model with what the repartition topics of a run really hold: which order of what several tasks wrote they have.

Tasks write to one partition of a repartition topic as they come, so the order behind a keyBy is no property of the
records. A replay checks what the tasks before it should have written (`sent`), and goes on with what the topic holds.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from steps_model.graph import Graph, Known, Spec, inputs
from steps_model.items import Item, Row
from steps_model.model import Model


class Replay(Model):
    """Fed with records of sources, and then with those of each repartition topic, upstream first."""

    def __init__(self, document: Spec, partitions: int) -> None:
        """As Model."""
        super().__init__(document, partitions)
        self.graph: _ReplayGraph = _ReplayGraph(document["spec"]["topology"], partitions > 1)
        self.sent: dict[str, list[tuple[int, Row]]] = defaultdict(list)
        """By keyBy, what its tasks have to write, each with the task's partition; whoever has read it takes it out."""

    def arrive(self, name: str, partition: int, row: Row) -> None:
        """The next record of a partition of a keyBy's topic; `work` processes it."""
        self._append(name, partition, row)

    def tasks_of(self, name: str) -> list[Any]:
        """The steps of this name, by partition."""
        return [task[name] for task in self._tasks]

    def _send(self, name: str, partition: int, item: Item) -> None:
        assert isinstance(item, Row)
        if item.key is not None or name in self.graph.keeping_null_keys:
            self.sent[name].append((partition, item))


_OF_SELECT = {"name", "from", "select"}


class _ReplayGraph(Graph):
    """What can be foretold of a run whose repartition topics were read: behind each of them all is known again."""

    def known(self, name: str) -> Known:
        return Known.ALL if name in self.repartitioned else super().known(name)

    def known_before_topic(self, name: str) -> bool:
        """Whether it is foretold what a keyBy writes to its topic."""
        return self.known(self.nodes[name]["from"]) is Known.ALL

    def keeps_nothing(self, name: str) -> bool:
        """Whether doing records again gives the same ones again: tables stand still while they are joined."""
        node = self.owner[name]
        if name in self.repartitioned or "topic" in node:
            return "table" not in node
        join = node.get("join", {})
        if node.keys() & {"aggregate", "toTable", "dedupe"} or "stream" in join or node["name"] in self.tables:
            return False
        if "table" in join and not self.is_global(join["table"]) and not self.ends_alike(join["table"]):
            return False
        streams = node["merge"] if "merge" in node else [node["from"]]
        return all(self.keeps_nothing(each) for each in streams)

    def ends_alike(self, name: str) -> bool:
        """Whether doing records again leaves a key's last row, if it has one, the same: so it is with tables.

        An aggregate counts again, and what a stream's step leaves out may be the last record.
        """
        node = self.owner[name]
        if "topic" in node:
            return "table" in node
        if "toTable" in node:
            return self.keeps_nothing(node["from"])
        if "aggregate" in node:
            return False
        if "suppress" in node.get("toStream", {}):
            return False
        if node["name"] in self.tables or node.keys() & {"toStream", "peek", "headers"} or node.keys() <= _OF_SELECT:
            return all(self.ends_alike(each) for each in inputs(node))
        return False
