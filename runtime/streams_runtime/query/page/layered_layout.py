"""Coordinates of a directed graph's boxes and links, layer by layer: no box over another, every link in a lane.

The *main* axis leads from layer to layer, the *cross* axis along a layer; a drawing turns them as it likes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from streams_runtime.query.page.layer_order import Hop, back_links, layers_of, ordered

Point = tuple[float, float]
"""Main and cross coordinate."""

_ROUNDS: Final = 16  # of aligning each layer with its neighbours
_LANE: Final = 12.0  # what a link takes of a layer that it passes


@dataclass(frozen=True, slots=True)
class Box:
    """A box of the graph: `length` along the main axis, `breadth` along the cross axis."""

    name: str
    length: float
    breadth: float


@dataclass(frozen=True, slots=True)
class Link:
    """From one box to another; `tail_at` and `head_at` say where on their breadths, None in the middle."""

    tail: str
    head: str
    tail_at: float | None = None
    head_at: float | None = None


@dataclass(frozen=True, slots=True)
class Gaps:
    """Space between layers, and between the boxes of one."""

    layers: float
    boxes: float


@dataclass(frozen=True, slots=True)
class Layout:
    """Where each box begins, the points that each link passes, and what all takes.

    `back`: numbers of the links that lead backwards; they go around the boxes.
    """

    boxes: Mapping[str, Point]
    links: tuple[tuple[Point, ...], ...]
    length: float
    breadth: float
    back: frozenset[int]


@dataclass(frozen=True, slots=True)
class _Hop:
    """A part of a link, from one layer to the next; of boxes, or of lanes where the link passes a layer."""

    tail: str
    head: str
    tail_at: float
    head_at: float


def lay_out(
    boxes: Sequence[Box],
    links: Sequence[Link],
    gaps: Gaps,
    last: Collection[str] = (),
    late: Collection[str] = (),
) -> Layout:
    """The layout of the graph, the same for the same input; `last` and `late` as in `layers_of`."""
    names = [box.name for box in boxes]
    pairs = [(link.tail, link.head) for link in links]
    back = back_links(names, pairs)
    layer = layers_of(names, [pair for number, pair in enumerate(pairs) if number not in back], last, late)
    sizes = {box.name: box for box in boxes}
    lanes: dict[int, list[str]] = {}
    hops: list[_Hop] = []
    for number, link in enumerate(links):
        if number not in back:
            passed = [f"\0{number} {each}" for each in range(layer[link.tail] + 1, layer[link.head])]
            lanes[number] = passed
            layer |= {lane: layer[link.tail] + 1 + place for place, lane in enumerate(passed)}
            sizes |= {lane: Box(lane, 0.0, _LANE) for lane in passed}
            hops += _hops(link, passed, sizes)
    columns: list[list[str]] = [[] for _ in range(max(layer.values(), default=-1) + 1)]
    for name in layer:
        columns[layer[name]].append(name)
    columns = ordered(columns, [_ordering(hop, sizes) for hop in hops])
    main, length = _main_axis(columns, sizes, gaps.layers)
    cross = _aligned(columns, hops, sizes, gaps.boxes)
    breadth = max((cross[name] + sizes[name].breadth for name in cross), default=0.0)
    placed = _Placed(sizes, layer, main, cross, [max(sizes[each].length for each in column) for column in columns])
    points: list[tuple[Point, ...]] = []
    for number, link in enumerate(links):
        if number in back:
            breadth += gaps.boxes
            points.append(placed.around(link, breadth, gaps.layers / 2))
        else:
            points.append(placed.along(link, lanes[number]))
    return Layout({name: (main[layer[name]], cross[name]) for name in names}, tuple(points), length, breadth, back)


@dataclass(frozen=True, slots=True)
class _Placed:
    """Boxes and lanes with their coordinates; `thickness` is that of each layer."""

    sizes: Mapping[str, Box]
    layer: Mapping[str, int]
    main: Sequence[float]
    cross: Mapping[str, float]
    thickness: Sequence[float]

    def along(self, link: Link, lanes: Iterable[str]) -> tuple[Point, ...]:
        """Forward: out of the tail, through the lanes, into the head."""
        points = [self._leaves(link)]
        for lane in lanes:
            begin, at = self.main[self.layer[lane]], self.cross[lane] + _LANE / 2
            points += [(begin, at), (begin + self.thickness[self.layer[lane]], at)]
        return (*points, self._enters(link))

    def around(self, link: Link, lane: float, gap: float) -> tuple[Point, ...]:
        """Backward: out of the tail, along a lane beyond all boxes, and from before into the head."""
        (out, start), (into, end) = self._leaves(link), self._enters(link)
        return ((out, start), (out + gap, start), (out + gap, lane), (into - gap, lane), (into - gap, end), (into, end))

    def _leaves(self, link: Link) -> Point:
        box = self.sizes[link.tail]
        return self.main[self.layer[link.tail]] + box.length, self.cross[link.tail] + _port(box, link.tail_at)

    def _enters(self, link: Link) -> Point:
        return self.main[self.layer[link.head]], self.cross[link.head] + _port(self.sizes[link.head], link.head_at)


def _port(box: Box, at: float | None) -> float:
    return box.breadth / 2 if at is None else at


def _hops(link: Link, lanes: Sequence[str], sizes: Mapping[str, Box]) -> list[_Hop]:
    way = [link.tail, *lanes, link.head]
    ports = [_port(sizes[link.tail], link.tail_at), *(_LANE / 2 for _ in lanes), _port(sizes[link.head], link.head_at)]
    return [_Hop(way[i], way[i + 1], ports[i], ports[i + 1]) for i in range(len(way) - 1)]


def _ordering(hop: _Hop, sizes: Mapping[str, Box]) -> Hop:
    tail, head = sizes[hop.tail], sizes[hop.head]
    return Hop(hop.tail, hop.head, hop.tail_at / tail.breadth, hop.head_at / head.breadth)


def _main_axis(columns: Sequence[Sequence[str]], sizes: Mapping[str, Box], gap: float) -> tuple[list[float], float]:
    begins, at = [], 0.0
    for column in columns:
        begins.append(at)
        at += max(sizes[name].length for name in column) + gap
    return begins, max(at - gap, 0.0)


def _aligned(
    columns: Sequence[Sequence[str]], hops: Sequence[_Hop], sizes: Mapping[str, Box], gap: float
) -> dict[str, float]:
    """The cross coordinate of each box: as near as its layer's order allows to where its links are straight."""
    cross: dict[str, float] = {}
    for column in columns:
        at = 0.0
        for name in column:
            cross[name] = at
            at += sizes[name].breadth + gap
    wishes: dict[str, list[tuple[str, float]]] = {}
    for hop in hops:
        wishes.setdefault(hop.head, []).append((hop.tail, hop.tail_at - hop.head_at))
        wishes.setdefault(hop.tail, []).append((hop.head, hop.head_at - hop.tail_at))
    for number in range(_ROUNDS):
        for column in columns if number % 2 == 0 else reversed(columns):
            wanted = [
                fmean(cross[other] + shift for other, shift in wishes[name]) if name in wishes else cross[name]
                for name in column
            ]
            cross.update(zip(column, spread(wanted, [sizes[name].breadth for name in column], gap), strict=True))
    least = min(cross.values(), default=0.0)
    return {name: at - least for name, at in cross.items()}


def spread(wanted: Sequence[float], breadths: Sequence[float], gap: float) -> list[float]:
    """Where boxes begin that keep their order and the gap between them, in all as near as can be to what is wanted.

    By least squares: pool adjacent violators.
    """
    offsets, at = [], 0.0
    for breadth in breadths:
        offsets.append(at)
        at += breadth + gap
    pools: list[tuple[float, int]] = []
    for want, offset in zip(wanted, offsets, strict=True):
        mean, count = want - offset, 1
        while pools and pools[-1][0] > mean:
            other, others = pools.pop()
            mean, count = (mean * count + other * others) / (count + others), count + others
        pools.append((mean, count))
    fitted = [mean for mean, count in pools for _ in range(count)]
    return [fit + offset for fit, offset in zip(fitted, offsets, strict=True)]
