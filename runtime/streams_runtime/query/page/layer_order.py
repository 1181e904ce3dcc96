"""Which layer of a drawing each box of a directed graph stands in, and in which order: Sugiyama's method, no I/O."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from statistics import fmean
from typing import Final, NamedTuple

Link = tuple[str, str]
"""From one box to another, by their names."""

_SWEEPS: Final = 12


class Hop(NamedTuple):
    """A link from a layer to the next one. It leaves and enters the boxes at these parts of their breadths."""

    tail: str
    head: str
    tail_part: float = 0.5
    head_part: float = 0.5


def back_links(names: Sequence[str], links: Sequence[Link]) -> frozenset[int]:
    """The links, by their number, that close a cycle on a walk through the boxes in their order, loops included."""
    following: dict[str, list[tuple[int, str]]] = {name: [] for name in names}
    for number, (tail, head) in enumerate(links):
        following[tail].append((number, head))
    back, done, under_way = set[int](), set[str](), set[str]()
    for name in names:
        path = [] if name in done else [(name, iter(following[name]))]
        under_way.update(each for each, _ in path)
        while path:
            here, left = path[-1]
            step = next(left, None)
            if step is None:
                path.pop()
                under_way.discard(here)
                done.add(here)
            elif step[1] in under_way:
                back.add(step[0])
            elif step[1] not in done:
                under_way.add(step[1])
                path.append((step[1], iter(following[step[1]])))
    return frozenset(back)


def layers_of(
    names: Sequence[str], links: Sequence[Link], last: Collection[str] = (), late: Collection[str] = ()
) -> dict[str, int]:
    """The layer of each box: as far from the beginning as its longest way. The links have no cycle.

    Boxes of `last` stand in the last layer. One of `late` that nothing leads to stands right before what it leads to.
    """
    incoming = {name: [tail for tail, head in links if head == name] for name in names}
    outgoing = {name: [head for tail, head in links if tail == name] for name in names}
    waiting = {name: len(tails) for name, tails in incoming.items()}
    ready, layers = [name for name in names if not waiting[name]], dict[str, int]()
    for name in ready:
        layers[name] = max((layers[tail] + 1 for tail in incoming[name]), default=0)
        for head in outgoing[name]:
            waiting[head] -= 1
            if not waiting[head]:
                ready.append(head)
    end = max(layers.values(), default=0)
    layers |= dict.fromkeys(last, end)
    for name in late:
        if not incoming[name] and outgoing[name]:
            layers[name] = min(layers[head] for head in outgoing[name]) - 1
    return layers


def ordered(layers: Sequence[Sequence[str]], hops: Sequence[Hop]) -> list[list[str]]:
    """The boxes of each layer in an order with few crossings."""
    best = current = [list(layer) for layer in layers]
    fewest = crossings(best, hops)
    before: dict[str, list[tuple[str, float]]] = {}
    after: dict[str, list[tuple[str, float]]] = {}
    for hop in hops:
        before.setdefault(hop.head, []).append((hop.tail, hop.tail_part))
        after.setdefault(hop.tail, []).append((hop.head, hop.head_part))
    for sweep in range(_SWEEPS):
        if not fewest:
            break
        current = _swept(current, before) if sweep % 2 == 0 else _swept(current[::-1], after)[::-1]
        found = crossings(current, hops)
        if found < fewest:
            best, fewest = current, found
    return best


def crossings(layers: Sequence[Sequence[str]], hops: Sequence[Hop]) -> int:
    """How often two links cross."""
    at = {name: place for layer in layers for place, name in enumerate(layer)}
    layer_of = {name: number for number, layer in enumerate(layers) for name in layer}
    between: dict[int, list[tuple[float, float]]] = {}
    for hop in hops:
        ends = at[hop.tail] + hop.tail_part, at[hop.head] + hop.head_part
        between.setdefault(layer_of[hop.tail], []).append(ends)
    return sum(
        (one[0] - other[0]) * (one[1] - other[1]) < 0
        for ends in between.values()
        for place, one in enumerate(ends)
        for other in ends[place + 1 :]
    )


def _swept(layers: Sequence[list[str]], neighbours: Mapping[str, list[tuple[str, float]]]) -> list[list[str]]:
    """Each layer sorted by where the neighbours in the one before it stand on average."""
    at: dict[str, float] = {}
    swept = []
    for layer in layers:
        here = {
            name: fmean(at[each] + part for each, part in neighbours[name]) if name in neighbours else float(place)
            for place, name in enumerate(layer)
        }
        swept.append(sorted(layer, key=here.__getitem__))
        at |= {name: float(place) for place, name in enumerate(swept[-1])}
    return swept
