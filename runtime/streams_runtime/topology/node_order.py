"""The one order that a topology's nodes are put into: what is needed first, else as given."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Hashable, Mapping
from typing import TypeVar

from streams_runtime.errors import TopologyException

Name = TypeVar("Name", bound=Hashable)


def needed_first(needs: Mapping[Name, Collection[Name]]) -> list[Name]:
    """The names of `needs`, each after all that it needs; names that could swap places stay as given.

    Raises TopologyException for a need that is no name of `needs`, and for a circle.
    """
    names = list(needs)
    place = {name: index for index, name in enumerate(names)}
    followers: dict[Name, list[Name]] = {name: [] for name in names}
    missing = {name: len(set(needs[name])) for name in names}
    for name in names:
        for need in set(needs[name]):
            if need not in followers:
                raise TopologyException(f"{name} takes records from {need!r}, which is no source and no step")
            followers[need].append(name)
    ready = [place[name] for name in names if not missing[name]]
    ordered: list[Name] = []
    while ready:
        name = names[heapq.heappop(ready)]
        ordered.append(name)
        for follower in followers[name]:
            missing[follower] -= 1
            if not missing[follower]:
                heapq.heappush(ready, place[follower])
    if len(ordered) < len(names):
        circle = ", ".join(str(name) for name in names if missing[name])
        raise TopologyException(f"these steps wait for each other in a circle: {circle}")
    return ordered
