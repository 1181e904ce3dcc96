"""Standbys by tags beside Kafka Streams' ClientTagAwareStandbyTaskAssignor: it goes where the rule here allows it.

Which of the allowed instances it takes is another matter: there the least loaded one, here the one that the group would
give the task (tasks/standby_placement.py). So its choice by load is played here over the rule of this project.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from example_counts import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracle_driver import KafkaStreams

from streams_runtime.tasks.client_tags import allowed_by_tags
from streams_runtime.topology.plan import TaskId

pytestmark = [pytest.mark.integration, pytest.mark.oracle, pytest.mark.timeout(300)]

KEYS = ("zone", "cluster", "disk")

tags = st.fixed_dictionaries(
    {}, optional={"zone": st.sampled_from("abc"), "cluster": st.sampled_from("12"), "disk": st.sampled_from("xy")}
)
Case = tuple[list[Mapping[str, str]], list[int], list[str], int]
"""The tags of each instance, the instance of each task, the keys that count, and replicas."""
cases = st.integers(1, 7).flatmap(
    lambda count: st.tuples(
        st.lists(tags, min_size=count, max_size=count),
        st.lists(st.integers(0, count - 1), min_size=1, max_size=9),
        st.lists(st.sampled_from(KEYS), min_size=1, max_size=3, unique=True),
        st.integers(1, 4),
    )
)
TWO_ZONES: Case = ([{"zone": "a"}, {"zone": "b"}, {"zone": "a"}, {"zone": "b"}], [0, 1, 2, 3], ["zone"], 2)
CROSSED: Case = (
    [{"zone": zone, "cluster": cluster} for cluster in "12" for zone in "abc"],
    [0, 1, 2, 3, 4, 5],
    ["zone", "cluster"],
    2,
)


def by_load(
    own: Mapping[str, Mapping[str, str]], owners: Mapping[TaskId, str], keys: Sequence[str], replicas: int
) -> dict[TaskId, list[str]]:
    """What the assignor places before it gives up tags: the least loaded of those that the rule allows."""
    load = {name: sum(owner == name for owner in owners.values()) for name in own}
    placed: dict[TaskId, list[str]] = {}
    for task in sorted(owners):
        kept: list[str] = []
        while len(kept) < replicas and (allowed := allowed_by_tags(owners[task], kept, own, keys)):
            kept.append(min(allowed, key=lambda name: (load[name], name)))
            load[kept[-1]] += 1
        placed[task] = kept
    return placed


@settings(max_examples=examples(200), deadline=None)
@given(cases)
@example(TWO_ZONES)
@example(CROSSED)
def test_kafka_streams_places_standbys_where_the_rule_allows_them(driver: KafkaStreams, case: Case) -> None:
    given, at, keys, replicas = case
    names = [f"i{number}" for number in range(len(given))]
    owners = {TaskId(0, number): names[owner] for number, owner in enumerate(at)}
    own = dict(zip(names, given, strict=True))
    active = [[str(task) for task, owner in owners.items() if owner == name] for name in names]
    theirs = driver.placed(list(zip(given, active, strict=True)), keys, replicas)
    for task, kept in by_load(own, owners, keys, replicas).items():
        found = {name for name, tasks in zip(names, theirs, strict=True) if str(task) in tasks}
        assert set(kept) <= found
        # What tags leave over goes to any that is free.
        assert len(found) == (len(kept) if len(kept) == replicas else min(replicas, len(names) - 1))
