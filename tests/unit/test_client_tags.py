"""Standbys by tags: apart wherever that can be, by Kafka Streams' rule, and where a lost zone's tasks go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from example_counts import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from streams_runtime.errors import ConfigException
from streams_runtime.kafka.types import GroupMember, TopicPartition
from streams_runtime.settings import InstanceSettings
from streams_runtime.tasks.announcements import announced_threads, announcing_client_id
from streams_runtime.tasks.client_tags import allowed_by_tags, shared_tags, tagged_client_id, tags_of
from streams_runtime.tasks.standby_placement import owners_of, place_standbys, range_assigned
from streams_runtime.topology.plan import TaskId

Tagged = Mapping[str, Mapping[str, str]]
ZONE = "topology.kubernetes.io/zone"


def tasks(count: int) -> dict[TaskId, frozenset[TopicPartition]]:
    return {TaskId(0, each): frozenset({TopicPartition("orders", each)}) for each in range(count)}


def group(own: Tagged, count: int, threads: int = 1) -> list[GroupMember]:
    """The members of a group at rest, whose client ids tell their instances' tags."""
    members = [
        GroupMember(f"id-{name}-{thread}", f"{name}-{thread}", tagged_client_id(name, "host:1", thread, tags), "/h", ())
        for name, tags in own.items()
        for thread in range(1, threads + 1)
    ]
    return with_ranges(members, count)


def untagged(own: Tagged, **tags: str) -> Tagged:
    """The same instances, each with these tags instead of its own."""
    return {name: dict(tags) for name in own}


def with_ranges(members: Sequence[GroupMember], count: int) -> list[GroupMember]:
    """The members, each with its range of the partitions."""
    in_order = sorted(members, key=lambda each: each.instance_id or "")
    quota, extra = divmod(count, len(in_order))
    made, start = [], 0
    for number, each in enumerate(in_order):
        end = start + quota + (number < extra)
        has = tuple(TopicPartition("orders", partition) for partition in range(start, end))
        made.append(GroupMember(each.member_id, each.instance_id, each.client_id, each.host, has))
        start = end
    return made[::-1]


def may_keep(instance: str, copies: Sequence[str], own: Tagged, keys: Sequence[str]) -> bool:
    """The rule in other words: a key counts while the last copy that has it is not yet as many as there are values."""
    if instance in copies:
        return False
    for key in keys:
        values = {tags[key] for tags in own.values() if key in tags}
        have = [number for number, each in enumerate(copies, start=1) if key in own[each]]
        counts = bool(have) and have[-1] < len(values)
        if counts and own[instance].get(key) in {own[each][key] for each in copies if key in own[each]}:
            return False
    return True


names = st.lists(st.sampled_from([f"app-{n}" for n in range(12)]), min_size=1, max_size=7, unique=True)
some_tags = st.fixed_dictionaries({}, optional={"zone": st.sampled_from("abc"), "cluster": st.sampled_from("12")})
tagged = names.flatmap(lambda found: st.fixed_dictionaries(dict.fromkeys(found, some_tags)))
some_keys = st.lists(st.sampled_from(["zone", "cluster"]), max_size=2, unique=True)


@settings(max_examples=examples(300))
@given(tagged, st.integers(1, 9), st.integers(1, 2), st.integers(1, 4), some_keys)
def test_each_standby_is_where_the_rule_allows_it_until_there_is_no_such_instance(
    own: Tagged, count: int, threads: int, replicas: int, keys: list[str]
) -> None:
    members = group(own, count, threads)
    owners, placed = owners_of(members, tasks(count)), place_standbys(members, tasks(count), replicas, keys)
    for task, kept in placed.items():
        assert owners[task] not in kept
        assert len(kept) == len(set(kept)) == min(replicas, len(own) - 1)
        given_up = False
        for number, instance in enumerate(kept):
            copies = [owners[task], *kept[:number]]
            allowed = {each for each in own if may_keep(each, copies, own, keys)}
            assert allowed_by_tags(copies[0], copies[1:], own, keys) == (set() if given_up else allowed)
            given_up = given_up or not allowed
            assert given_up or instance in allowed
    assert place_standbys(members[::-1], tasks(count), replicas, keys) == placed


@settings(max_examples=examples(100))
@given(tagged, st.integers(1, 9), st.integers(1, 3), st.lists(st.sampled_from(["zone", "cluster"]), max_size=2))
def test_tags_that_no_setting_names_or_no_instance_has_change_nothing(
    own: Tagged, count: int, replicas: int, keys: list[str]
) -> None:
    plain = place_standbys(group(untagged(own), count), tasks(count), replicas)
    assert place_standbys(group(own, count), tasks(count), replicas) == plain
    assert place_standbys(group(untagged(own), count), tasks(count), replicas, keys) == plain
    # One value says nothing about where to go.
    assert place_standbys(group(untagged(own, zone="a"), count), tasks(count), replicas, ["zone"]) == plain


zones = names.flatmap(lambda found: st.fixed_dictionaries({name: st.sampled_from("abc") for name in found}))


@settings(max_examples=examples(100))
@given(zones, st.integers(1, 9), st.integers(1, 2), st.integers(1, 3))
def test_when_a_zone_is_lost_its_tasks_fall_to_instances_that_have_kept_them_warm(
    zone: dict[str, str], count: int, threads: int, replicas: int
) -> None:
    assume(len(set(zone.values())) > 1)
    own = {name: {"zone": value} for name, value in zone.items()}
    members = group(own, count, threads)
    owners, placed = owners_of(members, tasks(count)), place_standbys(members, tasks(count), replicas, ["zone"])
    for lost in set(zone.values()):
        left = [each for each in members if zone[each.client_id.partition("|")[0]] != lost]
        after = range_assigned(left, tasks(count))
        assert all(after[task] == placed[task][0] for task, owner in owners.items() if zone[owner] == lost)


def test_a_second_standby_of_two_zones_is_where_the_group_puts_the_task_of_an_owner_that_leaves_alone() -> None:
    own = {f"app-{n}": {"zone": "ab"[n // 2]} for n in range(4)}
    members = group(own, 4)
    placed = place_standbys(members, tasks(4), 2, ["zone"])
    alone = range_assigned([each for each in members if not each.client_id.startswith("app-0")], tasks(4))
    assert placed[TaskId(0, 0)] == ("app-2", alone[TaskId(0, 0)]) == ("app-2", "app-1")


def test_which_tags_were_not_kept_apart_is_counted_by_task() -> None:
    own = {"x": {"zone": "a", "cluster": "1"}, "y": {"zone": "a", "cluster": "2"}, "z": {}}
    first, second = TaskId(0, 0), TaskId(0, 1)
    keys = ["cluster", "zone"]
    assert shared_tags({first: "x", second: "x"}, {first: ("y",), second: ("z", "y")}, own, keys) == {"zone": 2}
    assert shared_tags({first: "x", second: "y"}, {first: ("z",), second: ()}, own, keys) == {}


def test_tags_stand_in_the_client_id_and_whatever_else_stands_there_is_no_tag() -> None:
    told = tagged_client_id("app-0", "app-0.app.shop.svc:8080", 2, {ZONE: "eu-1a", "rack": "7"})
    assert told == f"app-0|app-0.app.shop.svc:8080|rack=7,{ZONE}=eu-1a|2"
    assert tagged_client_id("app-0", "h:1", 2, {}) == "app-0|h:1|2"
    others = [
        "app-1|h:1|1",
        "app-2|h:1|rack|1",
        "app-3|h:1|rack=,zone=b|1",
        "app-4|h:1|+3",
        "app-5",
        "app-6|a|rack=1|b|1",
    ]
    members = [GroupMember("id", None, each, "/h", ()) for each in (told, *others)]
    found = tags_of(members, [ZONE, "rack"])
    assert found == {"app-0": {ZONE: "eu-1a", "rack": "7"}} | {f"app-{n}": {} for n in range(1, 7)}
    assert [announced_threads(each) for each in members] == [0, 0, 0, 0, 3, 0, 0]
    assert announced_threads(GroupMember("id", None, announcing_client_id("a", "h:1", 2), "/h", ())) == 2


@pytest.mark.parametrize("tags", [{"zone|a": "b"}, {"": "b"}, {"zone": ""}, {"zone": "a,b"}, {"zone": "a=b"}])
def test_a_tag_that_no_client_id_can_hold_is_refused(tags: dict[str, str], tmp_path: object) -> None:
    with pytest.raises(ConfigException, match="tag"):
        InstanceSettings("app-0", "b:1", tmp_path, client_tags=tags)  # type: ignore[arg-type]
