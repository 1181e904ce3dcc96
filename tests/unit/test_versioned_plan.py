"""A table with a history in files, in Python and in plans: its store, its changelog, and what an upgrade does to it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from refused_applications import ORDERS, USERS, S, application, joined, step, versioned

from streams_runtime.api import parse_application
from streams_runtime.builder import StreamsBuilder, json
from streams_runtime.kafka.types import TopicDescription
from streams_runtime.topics.validate_internal import validate
from streams_runtime.topology.changes.compare import changes
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.describe import as_json, as_text
from streams_runtime.topology.nodes.source_and_sink_nodes import TableSourceNode
from streams_runtime.topology.nodes.table_nodes import ToTableNode
from streams_runtime.topology.partition_counts import internal_topics
from streams_runtime.topology.plan import InternalTopic, Topology
from streams_runtime.topology.store_specs import StoreSpec

HOUR, DAY = 3_600_000, 24 * 3_600_000
LAG = "min.compaction.lag.ms"


def kept(retention: str | None) -> dict[str, Any]:
    """A toTable of the orders, with a history if there is a retention."""
    history = {} if retention is None else {"historyRetention": retention}
    return step(name="t", toTable={"store": "t", **history})


def planned(*steps: Any, **fields: Any) -> Topology:
    return build_topology(parse_application(application(*steps, **fields)))


def changelog(retention: str | None) -> InternalTopic:
    given = parse_application(application(kept(retention)))
    topology = build_topology(given)
    topics = internal_topics(topology, given.spec, dict.fromkeys(topology.source_topics, 2))
    (found,) = (each for each in topics if each.name == "shop-t-changelog")
    return found


def test_a_source_and_a_to_table_have_key_value_stores_with_a_history() -> None:
    topology = planned(kept("1h30m"), joined(name="j"), sources=[ORDERS, versioned("1h")])
    source, table = topology.node("users"), topology.node("t")
    assert isinstance(source, TableSourceNode)
    assert isinstance(table, ToTableNode)
    assert (source.history, table.history) == (HOUR, HOUR * 3 // 2)
    assert topology.store("users")[1] == StoreSpec("users", "key-value", "users", True, "users", history=HOUR)
    assert topology.store("t")[1] == StoreSpec("t", "key-value", "shop-t-changelog", False, "t", history=HOUR * 3 // 2)


def test_without_the_word_there_is_none() -> None:
    assert planned(kept(None)).store("t")[1].history is None
    assert LAG not in changelog(None).config_dict


def test_the_changelog_keeps_for_a_day_more_what_compaction_would_remove() -> None:
    config = changelog("1h").config_dict
    assert (config["cleanup.policy"], config[LAG]) == ("compact", str(HOUR + DAY))


@pytest.mark.parametrize(("lag", "fits"), [(None, False), (HOUR + DAY - 1, False), (HOUR + DAY, True), (9 * DAY, True)])
def test_a_changelog_that_may_lose_the_history_does_not_fit(lag: int | None, fits: bool) -> None:
    expected = changelog("1h")
    config = {name: value for name, value in expected.config_dict.items() if name != LAG}
    there = TopicDescription(expected.name, 2, 1, config if lag is None else {**config, LAG: str(lag)})
    wrong = validate([expected], {expected.name: there}).misconfigured
    assert (not wrong) == fits
    if wrong:
        (reason,) = wrong[0].reasons
        assert (
            reason == f"has {LAG}={lag or 0}, which drops what a table's history still needs; set {HOUR + DAY} or more"
        )


def test_drawings_say_how_long_the_history_is() -> None:
    topology = planned(kept("90m"), joined(name="j"), sources=[ORDERS, versioned("1h")])
    summaries = {node.name: node.summary for node in topology.nodes}
    assert summaries["users"] == "read as a table with a history of 1h"
    assert summaries["t"] == "to a table with a history of 1h30m"
    assert "stores: [t]" in as_text(topology)
    stores = {each["name"]: each for sub in as_json(topology)["subtopologies"] for each in sub["stores"]}
    assert stores["users"]["historyRetention"] == HOUR


def test_a_builder_declares_the_same() -> None:
    builder = StreamsBuilder()
    orders = builder.stream("orders", key="string", value=json("amount DOUBLE"))
    users = builder.table(
        "users", key="string", value=json("tier STRING"), store="users", history_retention=timedelta(hours=1)
    )
    orders.to_table("t", history_retention="90m")
    orders.join(users, {"tier": "users.tier"}).to("out")
    assert builder.document["sources"][1]["table"] == {"store": "users", "historyRetention": "1h"}
    assert builder.document["steps"][0]["toTable"] == {"store": "t", "historyRetention": "90m"}
    assert builder.reading().application is not None


def only(before: Topology, after: Topology) -> Any:
    (change,) = changes(before, after).items
    return change


@pytest.mark.parametrize(
    ("was", "now", "what"),
    [
        (None, "1h", "the store t had no history and has one of 1h"),
        ("1h", None, "the store t had a history of 1h and has none"),
        ("1h", "2h", "the store t had a history of 1h and has one of 2h"),
        ("2h", "1h", "the store t had a history of 2h and has one of 1h"),
    ],
    ids=["added", "removed", "longer", "shorter"],
)
def test_a_history_that_comes_or_goes_or_changes_is_reported(was: str | None, now: str | None, what: str) -> None:
    change = only(planned(kept(was)), planned(kept(now)))
    assert (change.kind, change.where, change.what) == ("changed", f"{S}.toTable.historyRetention", what)
    assert change.consequence.startswith("it is wiped and restored from shop-t-changelog")
    longer = "does not start until the topic's min.compaction.lag.ms has grown" in change.consequence
    assert longer == (what.endswith("2h") or was is None) == (f"raise {LAG}" in change.remedy)


def test_so_is_that_of_a_source_whose_topic_is_the_users_own() -> None:
    change = only(
        planned(joined(name="j"), sources=[ORDERS, USERS]),
        planned(joined(name="j"), sources=[ORDERS, versioned("1h")]),
    )
    assert change.where == "spec.topology.sources[1].table.historyRetention"
    assert change.consequence == (
        "it is wiped and restored from users, and joins take what was valid at the times of their records; what"
        " compaction has removed there is missing in the history"
    )
    assert LAG not in change.remedy


def test_the_same_history_is_no_change() -> None:
    assert changes(planned(kept("60m")), planned(kept("1h"))).items == ()
