"""A topology as cards and lines with coordinates: what the page draws, in both directions.

Each sub-topology is laid out by itself, then all of them as blocks between the topics that connect them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from streams_runtime.query.page.layered_layout import Box, Gaps, Layout, Link, Point, lay_out
from streams_runtime.topology.describe import all_topics, title_of
from streams_runtime.topology.nodes.join_node import JoinNode
from streams_runtime.topology.plan import SubTopology, Topology

Direction = Literal["right", "down"]
Size = tuple[float, float]
"""Width and height, in pixels at a font of 12."""

_STEP: Final[Size] = (176.0, 58.0)
_STORE_LINE: Final = 20.0  # more height for each store of a step
_TOPIC: Final[Size] = (162.0, 58.0)
_TABLE: Final[Size] = (150.0, 30.0)  # a global table, where a step of another block asks it
_PADDING: Final = 14.0  # of a block around its steps
_TITLE: Final = 24.0  # of a block above its steps
_INSIDE: Final[Mapping[Direction, Gaps]] = {"right": Gaps(26.0, 16.0), "down": Gaps(26.0, 16.0)}
_OUTSIDE: Final[Mapping[Direction, Gaps]] = {"right": Gaps(32.0, 26.0), "down": Gaps(30.0, 26.0)}


def picture_of(topology: Topology, direction: Direction) -> dict[str, Any]:
    """`width`, `height`, `blocks` (one a sub-topology), `cards` (steps, topics, global tables that are asked), `lines`.

    Coordinates are those of upper left corners. Ids of cards are `step NAME`, `topic NAME` and `table STEP`; a line has
    the `points` that it passes, `back` where it closes a cycle, `dashed` where nothing but lookups take it.
    """
    insides = {_block(sub): _Inside(sub, direction) for sub in topology.every_subtopology}
    outer = [inside.box(block) for block, inside in insides.items()]
    outer += [_box(_topic(name), _TOPIC, direction) for name in all_topics(topology)]
    ports = list(_ports(topology))
    links = [Link(tail, head, _at(insides.get(tail), step), _at(insides.get(head), step)) for tail, head, step in ports]
    outside = lay_out(outer, links, _OUTSIDE[direction], late=[_topic(name) for name in all_topics(topology)])
    turn = _Turn(direction)
    cards, blocks, lines = [], [], []
    for name in all_topics(topology):
        kind = "repartition" if name in topology.repartition_topics else "topic"
        cards.append(_card(_topic(name), kind, name, turn.point(outside.boxes[_topic(name)]), _TOPIC))
    for sub in topology.every_subtopology:
        inside, origin = insides[_block(sub)], outside.boxes[_block(sub)]
        x, y = turn.point(origin)
        width, height = turn.size(inside.length, inside.breadth)
        blocks.append(
            {"id": sub.id, "title": title_of(topology, sub), "x": x, "y": y, "width": width, "height": height}
        )
        cards += inside.cards(origin)
        lines += inside.lines(origin)
    for number, (tail, head, step) in enumerate(ports):
        points = list(outside.links[number])
        if head in insides:  # a line ends at the step, not at the block's border
            points.append((points[-1][0] + insides[head].into(step), points[-1][1]))
        if tail in insides:
            points.insert(0, (points[0][0] - insides[tail].out_of(step), points[0][1]))
        ends = (_step(step) if tail in insides else tail, _step(step) if head in insides else head)
        lines.append(_line(*ends, turn.points(points), back=number in outside.back))
    width, height = turn.size(outside.length, outside.breadth)
    return {"width": width, "height": height, "blocks": blocks, "cards": cards, "lines": lines}


class _Inside:
    """One sub-topology, laid out by itself; its coordinates begin at the block's corner."""

    def __init__(self, sub: SubTopology, direction: Direction) -> None:
        self._turn = _Turn(direction)
        self._sizes: dict[str, Size] = {}
        self._names: dict[str, str] = {}
        self._kinds: dict[str, str] = {}
        links: list[Link] = []
        own = {node.name for node in sub.nodes}
        for node in sub.nodes:
            stores = sum(store.node == node.name for store in sub.stores)
            self._add(_step(node.name), "step", node.name, (_STEP[0], _STEP[1] + stores * _STORE_LINE))
            if isinstance(node, JoinNode) and node.table not in own:
                self._add(_table(node.name), "table", node.table, _TABLE)
                links.append(Link(_table(node.name), _step(node.name)))
            links += [Link(_step(name), _step(node.name)) for name in dict.fromkeys(node.inputs) if name in own]
        last = [_step(node.name) for node in sub.nodes if node.written_topics and not sub.consumers_of(node.name)]
        boxes = [_box(name, size, direction) for name, size in self._sizes.items()]
        tables = [name for name, kind in self._kinds.items() if kind == "table"]
        self._links = links
        self._layout: Layout = lay_out(boxes, links, _INSIDE[direction], last, tables)
        before_main, before_cross = (_PADDING, _TITLE) if direction == "right" else (_TITLE, _PADDING)
        self._shift = (before_main, before_cross)
        self.length = self._layout.length + before_main + _PADDING
        self.breadth = self._layout.breadth + before_cross + _PADDING

    def box(self, name: str) -> Box:
        """The whole of it as one box."""
        return Box(name, self.length, self.breadth)

    def port(self, step: str) -> float:
        """Where a line to the step, or from it, crosses the block's border."""
        return self._begin(_step(step))[1] + self._breadth(_step(step)) / 2

    def into(self, step: str) -> float:
        """How far the step is from where the block begins."""
        return self._begin(_step(step))[0]

    def out_of(self, step: str) -> float:
        """How far it is from the step to where the block ends."""
        return self.length - self._begin(_step(step))[0] - self._length(_step(step))

    def cards(self, origin: Point) -> list[dict[str, Any]]:
        """Its steps, and the global tables that they ask."""
        return [
            _card(
                each,
                self._kinds[each],
                self._names[each],
                self._turn.point(self._from(origin, self._begin(each))),
                size,
            )
            for each, size in self._sizes.items()
        ]

    def lines(self, origin: Point) -> list[dict[str, Any]]:
        """Those between its cards."""
        shifted = [[self._from(origin, self._shifted(point)) for point in each] for each in self._layout.links]
        return [
            _line(
                link.tail, link.head, self._turn.points(points), number in self._layout.back, link.tail in self._tables
            )
            for number, (link, points) in enumerate(zip(self._links, shifted, strict=True))
        ]

    @property
    def _tables(self) -> set[str]:
        return {name for name, kind in self._kinds.items() if kind == "table"}

    def _add(self, card: str, kind: str, name: str, size: Size) -> None:
        self._sizes[card], self._kinds[card], self._names[card] = size, kind, name

    def _begin(self, card: str) -> Point:
        return self._shifted(self._layout.boxes[card])

    def _shifted(self, point: Point) -> Point:
        return self._from(self._shift, point)

    def _length(self, card: str) -> float:
        return self._turn.size(*self._sizes[card])[0]

    def _breadth(self, card: str) -> float:
        return self._turn.size(*self._sizes[card])[1]

    @staticmethod
    def _from(origin: Point, point: Point) -> Point:
        return origin[0] + point[0], origin[1] + point[1]


@dataclass(frozen=True, slots=True)
class _Turn:
    """Main and cross coordinates as x and y. Turning twice is no turn, so sizes turn back by it too."""

    direction: Direction

    def point(self, point: Point) -> Point:
        return point if self.direction == "right" else (point[1], point[0])

    def size(self, first: float, second: float) -> Size:
        return (first, second) if self.direction == "right" else (second, first)

    def points(self, points: Sequence[Point]) -> list[Point]:
        return [self.point(each) for each in points]


def _ports(topology: Topology) -> list[tuple[str, str, str]]:
    """What leads from block to topic and from topic to block, with the step in the block."""
    found = []
    for sub in topology.every_subtopology:
        for node in sub.nodes:
            if node.read_topic is not None:
                found.append((_topic(node.read_topic), _block(sub), node.name))
            found += [(_block(sub), _topic(written), node.name) for written in node.written_topics]
    return found


def _at(inside: _Inside | None, step: str) -> float | None:
    return None if inside is None else inside.port(step)


def _box(name: str, size: Size, direction: Direction) -> Box:
    return Box(name, *_Turn(direction).size(*size))


def _card(id: str, kind: str, name: str, corner: Point, size: Size) -> dict[str, Any]:
    return {
        "id": id,
        "kind": kind,
        "name": name,
        "x": round(corner[0], 1),
        "y": round(corner[1], 1),
        "width": size[0],
        "height": size[1],
    }


def _line(tail: str, head: str, points: Sequence[Point], back: bool = False, dashed: bool = False) -> dict[str, Any]:
    rounded = [[round(x, 1), round(y, 1)] for x, y in points]
    return {"from": tail, "to": head, "points": rounded, "back": back, "dashed": dashed}


# A step, a topic and a block may have one name.
def _step(name: str) -> str:
    return f"step {name}"


def _topic(name: str) -> str:
    return f"topic {name}"


def _table(step: str) -> str:
    return f"table {step}"


def _block(sub: SubTopology) -> str:
    return f"block {sub.id}"
