"""Which tables hang together: through which steps their changes go, and what they are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from streams_runtime.api.flow.step_graph import inputs_of_step, is_kept, outputs_of_step, repartitioned, tells_changes
from streams_runtime.api.steps.topology_spec import StepSpec


def per_update_aggregates(steps: Sequence[StepSpec], tables: Collection[str]) -> frozenset[str]:
    """Names of the aggregates of which every change is told, record by record: to a toStream, a groupBy, or a join.

    `tables` are the names of all tables. Windows that are passed on once they have closed are not among them.
    """
    by_name = {step.name: step for step in steps}
    found: set[str] = set()
    for step in steps:
        asked = [step.from_ or ""] if step.to_stream is not None or step.group_by is not None else []
        if step.join is not None and step.join.table is not None:
            asked += [step.join.table, *([step.from_ or ""] if step.from_ in tables else [])]
        for name in asked:
            found |= {root for root in roots_of(name, by_name) if _aggregates(by_name.get(root))}
    return frozenset(found)


def roots_of(name: str, steps: Mapping[str, StepSpec]) -> frozenset[str]:
    """The tables that the rows of a table come from, which stores keep.

    Names that are no steps, aggregates, toTable steps, and joins by a foreign key.
    """
    found, seen, waiting = set(), set(), [name]
    while waiting:
        here = waiting.pop()
        if here in seen:
            continue
        seen.add(here)
        step = steps.get(here)
        if step is None or is_kept(step):
            found.add(here)
        else:
            waiting += inputs_of_step(step)
    return frozenset(found)


def path_counts(name: str, steps: Mapping[str, StepSpec]) -> Counter[str]:
    """By how many paths the changes of each of these tables (`roots_of`) come to a table.

    More than one leads through a join of rows that come from one table.
    """
    known: dict[str, Counter[str]] = {}

    def found(here: str, above: frozenset[str]) -> Counter[str]:
        step = steps.get(here)
        if step is None or is_kept(step):
            return Counter([here])
        if here not in known:
            # Steps that name each other in a ring are refused elsewhere.
            before = [each for each in inputs_of_step(step) if each not in above]
            known[here] = sum((found(each, above | {here}) for each in before), Counter[str]())
        return known[here]

    return found(name, frozenset({name}))


def met_again(name: str, steps: Mapping[str, StepSpec]) -> list[str]:
    """The tables whose rows meet themselves in joins that a table is made of."""
    return sorted(root for root, paths in path_counts(name, steps).items() if paths > 1)


def windows_behind(name: str, steps: Sequence[StepSpec]) -> StepSpec | None:
    """The aggregate by windows that a table's rows come from; None: they come from something else."""
    by_name = {step.name: step for step in steps}
    step = by_name.pop(name, None)
    while step is not None and step.aggregate is None and step.to_table is None:
        step = by_name.pop(
            step.from_ or "", None
        )  # each once: steps that name each other in a ring are refused elsewhere
    return step if step is not None and step.window is not None else None


def made_of_their_own(
    steps: Sequence[StepSpec], tables: Collection[str], patterns: Collection[str] = ()
) -> Iterator[tuple[StepSpec, str, str]]:
    """Joins of tables that would wait for themselves. `patterns` are the sources that read several topics.

    Each with a table that it brings together with others, and the toStream that this is made of, whose records are
    the changes of tables that the join belongs to. A repartition topic in between divides them.
    """
    by_name = {step.name: step for step in steps}
    joins = [step for step in steps if step.from_ in tables and step.join is not None and step.join.table is not None]
    together: dict[str, set[str]] = {}
    for join in joins:
        roots = {root for name in inputs_of_step(join) for root in roots_of(name, by_name)}
        roots = roots.union(*(together.get(root, set()) for root in roots))
        together |= dict.fromkeys(roots, roots)
    for join in joins:
        for root in sorted({root for name in inputs_of_step(join) for root in roots_of(name, by_name)}):
            for changes in _per_update_streams(root, steps, patterns):
                if roots_of(changes.from_ or "", by_name) & together[root]:
                    yield join, root, changes.name


def _per_update_streams(root: str, steps: Sequence[StepSpec], patterns: Collection[str]) -> list[StepSpec]:
    """The toStreams with a stage of their own that a table's records come through before they become the table."""
    owners = {output: each for each in steps for output in outputs_of_step(each)}
    moved = repartitioned(steps)
    found: list[StepSpec] = []
    seen: set[str] = set()
    waiting = [*inputs_of_step(owners[root])] if root in owners and owners[root].group_by is None else []
    while waiting:
        here = waiting.pop()
        owner = owners.get(here)
        if owner is None or owner.name in seen or here in moved:
            continue
        seen.add(owner.name)
        if tells_changes(owner, owners, steps, patterns):
            found.append(owner)
        waiting += inputs_of_step(owner)
    return found


def _aggregates(step: StepSpec | None) -> bool:
    return step is not None and step.aggregate is not None and step.suppress is None
