"""How a document's sources, steps and sinks hang together: consumers, sub-topologies, and what can be foretold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from functools import cached_property
from typing import Any

Spec = Mapping[str, Any]


class Known(IntEnum):
    """How much of what a source or step gives is foretold."""

    NOTHING = 0
    """Only that it runs: it depends on how many changes a join by a foreign key has passed on in between."""
    LAST_VALUES = 1
    """The last value of each key."""
    LAST = 2
    """The last record of each key: an aggregate that is not asked for every change writes a key once a batch."""
    ALL = 3
    """Every record of each key, in order."""


class Graph:
    """A topology as it stands in a document."""

    def __init__(self, topology: Spec, several: bool = False) -> None:
        """`several`: topics have several partitions, whose tasks write to one partition as they come."""
        self._several = several
        self.sources: Sequence[Spec] = topology["sources"]
        self.steps: Sequence[Spec] = topology.get("steps", [])
        self.sinks: Sequence[Spec] = topology.get("sinks", [])
        self.nodes = {each["name"]: each for each in (*self.sources, *self.steps)}
        self.owner = {output: each for each in self.nodes.values() for output in outputs(each)}

    def consumers(self, name: str) -> list[Spec]:
        """The steps that take what an output gives, in the order of the file."""
        return [step for step in self.steps if name in inputs(step)]

    @cached_property
    def repartitioned(self) -> frozenset[str]:
        """The outputs whose records go through a topic."""
        return frozenset(self._new_keys_that_reach(_needs_keys)) | self._repartitions

    @cached_property
    def keeping_null_keys(self) -> frozenset[str]:
        """Those of them that pass records without a key on."""
        return frozenset(self._new_keys_that_reach(_takes_null_keys))

    @cached_property
    def _repartitions(self) -> frozenset[str]:
        return frozenset(step["name"] for step in self.steps if "repartition" in step)

    def _new_keys_that_reach(self, wanted: Any) -> Iterator[str]:
        new = (output for step in self.steps if _gives_keys(step) for output in outputs(step))
        return (output for output in new if self._reaches(output, wanted))

    def _reaches(self, output: str, wanted: Any) -> bool:
        seen, waiting = set(), [output]
        while waiting:
            for each in self.consumers(waiting.pop()):
                if wanted(each):
                    return True
                ends = _gives_keys(each) or each.keys() & {"repartition", "aggregate", "toTable"}
                if each["name"] not in seen and not ends:
                    seen.add(each["name"])
                    waiting += outputs(each)
        return False

    @cached_property
    def tables(self) -> frozenset[str]:
        """Names of all tables that pass changes on."""
        found: set[str] = {each["name"] for each in self.sources if "table" in each}
        for step in self.ordered:
            of_table = step.get("from") in found and step.keys() & {"where", "select", "join"}
            if of_table or step.keys() & {"aggregate", "toTable"}:
                found.add(step["name"])
        return frozenset(found)

    @cached_property
    def ordered(self) -> list[Spec]:
        """The steps, inputs first."""
        done = {output for each in self.sources for output in outputs(each)}
        found: list[Spec] = []
        while len(found) < len(self.steps):
            ready = [each for each in self.steps if each not in found and set(inputs(each)) <= done]
            assert ready, "steps in a circle, or inputs that nobody gives"
            for each in ready:
                found.append(each)
                done |= set(outputs(each))
        return found

    @cached_property
    def components(self) -> list[frozenset[str]]:
        """The sub-topologies: nodes that share tasks, upstream first. A keyBy with a topic belongs to its writer."""
        group = {name: {name} for name in self.nodes}
        for step in self.steps:
            for name in inputs(step):
                before = self.owner[name]
                if name in self.repartitioned or "groupBy" in step or self._apart(step, name):
                    continue
                both = group[step["name"]] | group[before["name"]]
                for each in both:
                    group[each] = both
        several = [frozenset(each) for each in {id(each): each for each in group.values()}.values()]
        # A keyBy without consumers on its own side still has an input there; so has every step. Upstream first.
        ordered: list[frozenset[str]] = []
        while len(ordered) < len(several):
            done = {name for each in ordered for name in each}
            left = [each for each in several if each not in ordered]
            ready = [each for each in left if self._before(each) - each <= done] or left[:1]
            ordered.append(ready[0])
        return ordered

    def _apart(self, step: Spec, name: str) -> bool:
        """Whether the step asks another sub-topology for what this input gives: global tables and foreign keys."""
        join = step.get("join", {})
        return "key" in join and name == join.get("table")

    def _before(self, component: frozenset[str]) -> set[str]:
        steps = [each for each in self.steps if each["name"] in component]
        return {self.owner[name]["name"] for each in steps for name in inputs(each) if not self._apart(each, name)}

    def is_global(self, name: str) -> bool:
        """Whether it is a global table."""
        return bool(self.nodes.get(name, {}).get("table", {}).get("global"))

    def is_foreign(self, step: Spec) -> bool:
        """Whether it joins two tables by a foreign key."""
        return "key" in step.get("join", {}) and step.get("from") in self.tables

    @cached_property
    def told(self) -> frozenset[str]:
        """The aggregates that are asked for every change."""
        asked: list[str] = []
        for step in self.steps:
            if step.keys() & {"toStream", "groupBy"}:
                asked.append(step["from"])
            if "table" in step.get("join", {}):
                asked += [step["join"]["table"], *([step["from"]] if step["from"] in self.tables else [])]
        return frozenset(root for name in asked for root in self._roots(name) if "aggregate" in self.nodes[root])

    def _roots(self, name: str) -> Iterator[str]:
        node = self.owner[name]
        made_of_others = node["name"] in self.tables and "from" in node
        if not made_of_others or node.keys() & {"aggregate", "toTable"} or self.is_foreign(node):
            yield node["name"]
        else:
            for each in inputs(node):
                yield from self._roots(each)

    def in_sessions(self, name: str) -> bool:
        """Whether the keys of a table's rows are sessions."""
        return any("session" in self.nodes[root].get("window", {}) for root in self._roots(name))

    def knows_old_rows(self, step: Spec) -> bool:
        """Whether what a step over a table gets of a change has the row before it: not of an aggregate that is not
        asked for every change, nor of windows that have closed, as in Kafka Streams where nobody enables old values.
        """
        if step.get("from") not in self.tables:
            return True
        roots = (self.nodes[root] for root in self._roots(step["from"]))
        return all("aggregate" not in root or (root["name"] in self.told and "suppress" not in root) for root in roots)

    def known(self, name: str) -> Known:
        """How much of an output is foretold."""
        node = self.owner[name]
        if "topic" in node:
            return Known.ALL
        before = min(self.known(each) for each in inputs(node) if not self.is_global(each))
        if self.is_foreign(node):
            return min(before, Known.LAST_VALUES)
        if "aggregate" in node:
            told = Known.ALL if "suppress" in node or node["name"] in self.told else Known.LAST
            if "groupBy" in node and self._several:  # what its rows come to in the end does not hang on their order
                told = Known.LAST_VALUES
            return told if before is Known.ALL else Known.NOTHING
        waits = "suppress" in node.get("toStream", {})  # which changes it passes on hangs on all that come
        if node["name"] in self.tables or node.keys() & {"toStream", "peek", "headers"} or node.keys() <= _OF_SELECT:
            return Known.NOTHING if waits and before is not Known.ALL else before
        return before if before is Known.ALL else Known.NOTHING

    def columns(self, name: str) -> tuple[str, ...]:
        """Names of the columns that an output has."""
        node = self.owner[name]
        if "topic" in node:
            return tuple(each.split()[0] for each in node["value"]["schema"].split(","))
        if "*" in node.get("select", {}):
            return tuple(dict.fromkeys((*self.columns(inputs(node)[0]), *node["select"])) - {"*": None}.keys())
        if "process" in node:
            return tuple(each.split()[0] for each in node["process"]["value"].split(","))
        if "select" in node or "aggregate" in node:
            return tuple(node.get("select") or node["aggregate"])
        before = self.columns(inputs(node)[0])
        more = [node["flatMap"]["as"]] if "flatMap" in node else list(node.get("join", {}).get("select", ()))
        return tuple(dict.fromkeys((*before, *more)))


_OF_SELECT = {"name", "from", "select"}


def inputs(step: Spec) -> tuple[str, ...]:
    """What a step takes."""
    if "merge" in step:
        return tuple(step["merge"])
    join = step.get("join", {})
    other = join.get("table") or join.get("stream")
    return tuple(each for each in (step.get("from"), other) if each is not None)


def outputs(node: Spec) -> tuple[str, ...]:
    """What others may take of a source or step."""
    if "outputs" in node.get("process", {}):
        return tuple(f"{node['name']}.{each}" for each in node["process"]["outputs"])
    if "split" not in node:
        return (node["name"],)
    names = [each["name"] for each in node["split"]] + ([node["default"]] if "default" in node else [])
    return tuple(f"{node['name']}.{each}" for each in names)


def _needs_keys(step: Spec) -> bool:
    by_itself = "join" in step and "key" not in step["join"]
    return by_itself or bool(step.keys() & {"aggregate", "toTable", "dedupe", "process"})


def _gives_keys(step: Spec) -> bool:
    return "keyBy" in step or "key" in step.get("process", {})


def _takes_null_keys(step: Spec) -> bool:
    join = step.get("join")
    return bool(step.keys() & {"dedupe", "process"}) or (
        join is not None and ("key" in join or join.get("type", "inner") != "inner")
    )
