"""Tables over tables, as the oracle's driver takes them (Tables.java), and the same as steps of a topology.

A table is {"table": topic}, {"filter": table}, {"double": table} or {"join": type, "left": table, "right": table}. Each
has a number `v` and a sink of its own: `out-0` of the one that is made first. {"made": number} is the table of that
sink once more. A join that is "swapped" has its right side made first. All changes of all tables meet in `all`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from hypothesis import strategies as st
from pipeline_kit import Record, json, source

Tree = Mapping[str, Any]
KINDS = ("inner", "left", "outer")


def table(topic: str) -> Tree:
    return {"table": topic}


def made(number: int) -> Tree:
    return {"made": number}


def joined(kind: str, left: Tree, right: Tree) -> Tree:
    return {"join": kind, "left": left, "right": right}


@dataclass(frozen=True)
class Steps:
    """Sources, steps and sinks of a tree."""

    sources: list[dict[str, Any]]
    steps: list[dict[str, Any]]
    sinks: list[dict[str, Any]]


def steps_of(tree: Tree, format: str = "json", merged: bool = False) -> Steps:
    """The tree as a user would declare it; `merged`: with a toStream behind each table, and these merged into `all`."""
    steps = Steps([], [], [])
    _add(tree, steps, format)
    return _merged(steps) if merged else steps


def _merged(made: Steps) -> Steps:
    """Each toStream stands right behind its table, before all that takes the table's rows."""
    names = [each["from"] for each in made.sinks]
    streams = {name: {"name": f"c-{name}", "from": name, "toStream": {}} for name in names}
    of_sources = [streams[each["name"]] for each in made.sources]
    steps = [one for each in made.steps for one in (each, streams[each["name"]])]
    merge = {"name": "merged", "merge": [streams[name]["name"] for name in names]}
    sinks = [{"from": "merged", "topic": "all", "value": {"format": "json"}}]
    return Steps(made.sources, [*of_sources, *steps, merge], [*made.sinks, *sinks])


def topics_of(tree: Tree) -> list[str]:
    """The topics that are read, in the order of the sources."""
    return [each["topic"] for each in steps_of(tree).sources]


def _add(tree: Tree, made: Steps, format: str) -> str:
    """Add the tree's steps; the name of its table."""
    if "made" in tree:
        return str(made.sinks[tree["made"]]["from"])
    if "table" in tree:
        topic = name = tree["table"]
        declared = source(schema="v BIGINT") | {"name": name, "topic": topic, "table": {"store": f"{topic}-store"}}
        made.sources.append(declared)
    elif "filter" in tree:
        before = _add(tree["filter"], made, format)
        name = f"s{len(made.steps)}"
        made.steps.append({"name": name, "from": before, "where": "v % 3 != 0"})
    elif "double" in tree:
        before = _add(tree["double"], made, format)
        name = f"s{len(made.steps)}"
        made.steps.append({"name": name, "from": before, "select": {"v": "v * 2"}})
    else:
        sides = ("right", "left") if "swapped" in tree else ("left", "right")
        named = {side: _add(tree[side], made, format) for side in sides}
        left, right = named["left"], named["right"]
        name = f"s{len(made.steps)}"
        select = {"v": f"coalesce(v, 0) * 10 + coalesce({right}.v, 0)"}
        made.steps.append(
            {"name": name, "from": left, "join": {"table": right, "type": tree["join"], "select": select}}
        )
    made.sinks.append({"from": name, "topic": f"out-{len(made.sinks)}", "value": {"format": format}})
    return name


@dataclass(frozen=True)
class Given:
    """A record of a topic: without a number it has no value. `time` in ms."""

    topic: str
    key: str | None
    number: int | None
    time: int

    @property
    def partition(self) -> int:
        """Keys b and z lie in partition 1."""
        return int(self.key in ("b", "z"))

    def record(self, partition: int, offset: int) -> Record:
        """As a task reads it."""
        key, value = None if self.key is None else self.key.encode(), None
        if self.number is not None:
            value = json(v=self.number)
        return Record(key, value, self.topic, partition, offset, self.time)


def in_turn(given: Sequence[Given], topics: Sequence[str]) -> list[Given]:
    """The records of one partition as a task takes them: of the topics' next records that with the smallest time.

    At the same time the topic that is named first comes first.
    """
    queues = {topic: deque(each for each in given if each.topic == topic) for topic in topics}
    order = []
    while any(queues.values()):
        waiting = [topic for topic in topics if queues[topic]]
        order.append(queues[min(waiting, key=lambda topic: queues[topic][0].time)].popleft())
    return order


def in_partitions(given: Sequence[Given], topics: Sequence[str], partitions: int) -> list[Record]:
    """The same as records of so many partitions, which are read side by side."""
    parts = [[each for each in given if each.partition % partitions == number] for number in range(partitions)]
    ordered = (in_turn(part, topics) for part in parts)
    offsets: dict[tuple[str, int], int] = {}
    found = []
    for each in _one_of_each(ordered):
        place = (each.topic, each.partition % partitions)
        found.append(each.record(place[1], offsets.get(place, 0)))
        offsets[place] = offsets.get(place, 0) + 1
    return found


def _one_of_each(parts: Iterable[list[Given]]) -> Iterator[Given]:
    for some in zip_longest(*parts):
        yield from (each for each in some if each is not None)


def renamed(given: Sequence[Given], topics: Sequence[str]) -> list[Given]:
    """Records of the topics 0, 1, … as those of a tree's topics; those of topics that it has not are left out."""
    return [replace(each, topic=topics[int(each.topic)]) for each in given if int(each.topic) < len(topics)]


RECORDS = st.lists(
    st.builds(
        Given,
        st.sampled_from("0123"),
        st.sampled_from(["a", "b", "c", None]),
        st.one_of(st.none(), st.integers(1, 9)),
        st.integers(0, 20),
    ),
    min_size=1,
    max_size=40,
)


PARTITIONS = 2
Case = tuple[list[Given], list[int], int]
"""Records, before which of them a batch begins, and over how many of the partitions they are spread."""
SPREAD = st.tuples(RECORDS, st.lists(st.integers(0, 40), max_size=3), st.integers(1, PARTITIONS))


@st.composite
def _trees(draw: st.DrawFn, topics: Sequence[str]) -> Tree:
    """Any tree over all of these topics."""
    if len(topics) == 1:
        made = table(topics[0])
    else:
        cut = draw(st.integers(1, len(topics) - 1))
        made = joined(draw(st.sampled_from(KINDS)), draw(_trees(topics[:cut])), draw(_trees(topics[cut:])))
    for kind in draw(st.lists(st.sampled_from(["filter", "double"]), max_size=2)):
        made = {kind: made}
    return made


@st.composite
def _meeting(draw: st.DrawFn) -> Tree:
    """A tree over few topics in whose joins rows of one topic meet themselves."""
    counted = draw(_trees([f"t{number}" for number in range(draw(st.integers(1, 2)))]))
    for _ in range(draw(st.integers(1, 2))):
        again = made(draw(st.integers(0, len(steps_of(counted).sinks) - 1)))
        for kind in draw(st.lists(st.sampled_from(["filter", "double"]), max_size=1)):
            again = {kind: again}
        # What is made first has the first number, whichever side it is on.
        kind = draw(st.sampled_from(KINDS))
        swapped = joined(kind, again, counted) | {"swapped": True}
        counted = swapped if draw(st.booleans()) else joined(kind, counted, again)
        for kind in draw(st.lists(st.sampled_from(["filter", "double"]), max_size=1)):
            counted = {kind: counted}
    return counted


MEETING = _meeting()
TREES = st.integers(1, 4).flatmap(lambda count: _trees([f"t{number}" for number in range(count)]))
