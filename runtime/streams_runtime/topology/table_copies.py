"""A part's tables, one copy of each for every path on which a source's changes come to where they meet again.

Kafka Streams hands a change down one path after the other. What it meets on one of them, a join's other side, has the
change already, whichever path that has still to go. So where both sides of a join come of one source, each has a copy
of it: a change of the source is a change of one copy after the other, beside which the others are new.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from streams_runtime.topology.nodes.table_nodes import TableJoinNode

if TYPE_CHECKING:
    from streams_runtime.topology.table_parts import TableRoot, TableStep

Path = tuple[int, ...]
"""The nodes through which a change comes, as numbers: of one record's changes that with the least path comes first."""


@dataclass(frozen=True, slots=True)
class SourceCopy:
    """One copy of the source `node` of a part, which has the number `source` there."""

    node: TableRoot
    source: int


@dataclass(frozen=True, slots=True)
class StepCopy:
    """One copy of the step `node`; it takes its rows from the copies with the numbers `inputs`."""

    node: TableStep
    inputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TableCopies:
    """The copies of a part's tables, counted through: those of sources and then those of steps, inputs first.

    Where nothing meets itself there is one of each, in the part's order. `first` has by a table's name the copy that
    sinks and toStreams take; `paths` by the same the copies of sources that its rows come of, and how these come there,
    in numbers of nodes: twice the one in `ordinals`, and 1 more on the right side of a join.
    """

    sources: tuple[SourceCopy, ...]
    steps: tuple[StepCopy, ...]
    first: Mapping[str, int]
    paths: Mapping[str, Mapping[int, Path]]
    ordinals: Mapping[str, int]

    @property
    def has_several(self) -> bool:
        """Whether any source has more copies than one."""
        return len({each.source for each in self.sources}) < len(self.sources)


@dataclass(frozen=True, slots=True, eq=False)
class _Copy:
    node: TableRoot | TableStep
    inputs: tuple[_Copy, ...]

    def sources(self) -> Iterator[_Copy]:
        if not self.inputs:
            yield self
        for each in self.inputs:
            yield from each.sources()


def copies_of(sources: Sequence[TableRoot], steps: Sequence[TableStep], ordinals: Mapping[str, int]) -> TableCopies:
    """The copies of a part's tables. `ordinals`: of each node of the sub-topology its number in the order of nodes."""
    of_sources, of_steps = [_Copy(node, ()) for node in sources], list[_Copy]()
    first = {each.node.name: each for each in of_sources}

    def made(node: TableRoot | TableStep, inputs: tuple[_Copy, ...]) -> _Copy:
        copy = _Copy(node, inputs)
        (of_steps if inputs else of_sources).append(copy)
        return copy

    def again(copy: _Copy) -> _Copy:
        return made(copy.node, tuple(again(each) for each in copy.inputs))

    for node in steps:
        inputs = tuple(first[name] for name in node.inputs)
        if isinstance(node, TableJoinNode) and set(inputs[0].sources()) & set(inputs[1].sources()):
            inputs = (inputs[0], again(inputs[1]))
        first[node.name] = made(node, inputs)
    number = {each: index for index, each in enumerate((*of_sources, *of_steps))}
    place = {node.name: index for index, node in enumerate(sources)}

    def paths(copy: _Copy) -> Iterator[tuple[int, Path]]:
        if not copy.inputs:
            yield number[copy], (2 * ordinals[copy.node.name],)
        for side, before in enumerate(copy.inputs):
            yield from ((source, (*path, 2 * ordinals[copy.node.name] + side)) for source, path in paths(before))

    return TableCopies(
        tuple(SourceCopy(each.node, place[each.node.name]) for each in of_sources),  # type: ignore[arg-type]
        tuple(StepCopy(each.node, tuple(number[one] for one in each.inputs)) for each in of_steps),  # type: ignore[arg-type]
        {name: number[copy] for name, copy in first.items()},
        {name: dict(paths(copy)) for name, copy in first.items()},
        ordinals,
    )
