"""Which layer of a drawing each box of a directed graph stands in, and in which order: Sugiyama's method, no I/O."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from statistics import fmean
from typing import Final

Link = tuple[str, str]
"""From one box to another, by their names."""

_SWEEPS: Final = 12


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


def ordered(layers: Sequence[Sequence[str]], links: Sequence[Link]) -> list[list[str]]:
    """The boxes of each layer in an order with few crossings. Every link goes from a layer to the next one."""
    best = current = [list(layer) for layer in layers]
    fewest = crossings(best, links)
    before = _neighbours(links, 1, 0)
    after = _neighbours(links, 0, 1)
    for sweep in range(_SWEEPS):
        if not fewest:
            break
        current = _swept(current, before) if sweep % 2 == 0 else _swept(current[::-1], after)[::-1]
        found = crossings(current, links)
        if found < fewest:
            best, fewest = current, found
    return best


def crossings(layers: Sequence[Sequence[str]], links: Sequence[Link]) -> int:
    """How often two links cross."""
    at = {name: place for layer in layers for place, name in enumerate(layer)}
    layer_of = {name: number for number, layer in enumerate(layers) for name in layer}
    found = 0
    for number in range(len(layers)):
        between = sorted((at[tail], at[head]) for tail, head in links if layer_of[tail] == number)
        found += sum(
            one[0] < other[0] and one[1] > other[1]
            for place, one in enumerate(between)
            for other in between[place + 1 :]
        )
    return found


def _swept(layers: Sequence[list[str]], neighbours: Mapping[str, list[str]]) -> list[list[str]]:
    """Each layer sorted by where the neighbours in the one before it stand on average."""
    at: dict[str, float] = {}
    swept = []
    for layer in layers:
        here = {
            name: fmean(at[each] for each in neighbours[name]) if neighbours.get(name) else float(place)
            for place, name in enumerate(layer)
        }
        swept.append(sorted(layer, key=here.__getitem__))
        at |= {name: float(place) for place, name in enumerate(swept[-1])}
    return swept


def _neighbours(links: Sequence[Link], of: int, to: int) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for link in links:
        found.setdefault(link[of], []).append(link[to])
    return found
