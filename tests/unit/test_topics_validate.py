"""Internal topics that are compared with what is on the brokers, and the users' topics."""

from __future__ import annotations

import pytest

from streams_runtime.errors import (
    MisconfiguredInternalTopicException,
    MissingSourceTopicException,
    TopologyException,
)
from streams_runtime.kafka.types import TopicDescription
from streams_runtime.topics.external_topics import check_external_topics
from streams_runtime.topics.setup_policy import automatic
from streams_runtime.topics.validate_internal import Findings, validate
from streams_runtime.topology.plan import InternalTopic

KEY_VALUE = InternalTopic("app-s-changelog", "changelog", 4, -1, (("cleanup.policy", "compact"),))
WINDOWED = InternalTopic(
    "app-w-changelog", "changelog", 4, -1, (("cleanup.policy", "compact,delete"), ("retention.ms", "90000"))
)
REPARTITION = InternalTopic(
    "app-k-repartition", "repartition", 4, -1, (("cleanup.policy", "delete"), ("retention.ms", "-1"))
)
# What a broker reports of a topic that was made with the expected settings and nothing else.
BROKER_DEFAULTS = {"cleanup.policy": "delete", "retention.ms": "604800000", "retention.bytes": "-1"}


def on_broker(expected: InternalTopic, partitions: int = 4, **changed: str) -> TopicDescription:
    given = {name.replace("_", "."): value for name, value in changed.items()}
    return TopicDescription(expected.name, partitions, 1, {**BROKER_DEFAULTS, **expected.config_dict, **given})


def findings(expected: InternalTopic, found: TopicDescription | None) -> Findings:
    return validate([expected], {found.name: found} if found else {})


def reasons(expected: InternalTopic, partitions: int = 4, **changed: str) -> str:
    [one] = findings(expected, on_broker(expected, partitions, **changed)).misconfigured
    assert one.topic == expected.name
    return "; ".join(one.reasons)


@pytest.mark.parametrize("topic", [KEY_VALUE, WINDOWED, REPARTITION])
def test_a_topic_that_was_made_as_expected_has_nothing_wrong(topic: InternalTopic) -> None:
    assert findings(topic, on_broker(topic)) == Findings((), ())


def test_missing_topics_are_reported_in_the_order_of_the_plan() -> None:
    found = validate([REPARTITION, KEY_VALUE, WINDOWED], {KEY_VALUE.name: on_broker(KEY_VALUE)})
    assert found.missing == (REPARTITION, WINDOWED)
    assert found.misconfigured == ()


@pytest.mark.parametrize("topic", [KEY_VALUE, WINDOWED, REPARTITION])
@pytest.mark.parametrize("count", [3, 5])
def test_another_partition_count_is_reported_with_both_counts(topic: InternalTopic, count: int) -> None:
    assert f"has {count} partitions and needs 4" in reasons(topic, count)


@pytest.mark.parametrize("policy", ["delete", "compact,delete", "delete, compact"])
def test_a_key_value_changelog_must_not_delete_keys(policy: str) -> None:
    assert f"cleanup.policy={policy}" in reasons(KEY_VALUE, cleanup_policy=policy)


def test_a_key_value_changelog_may_have_any_retention_since_nothing_is_deleted_by_it() -> None:
    assert findings(KEY_VALUE, on_broker(KEY_VALUE, retention_ms="1")).misconfigured == ()


def test_a_windowed_changelog_must_keep_its_windows_long_enough() -> None:
    text = reasons(WINDOWED, retention_ms="89999")
    assert "89999" in text
    assert "90000" in text


@pytest.mark.parametrize("retention", ["90000", "90001", "-1"])
def test_a_windowed_changelog_may_keep_its_windows_longer(retention: str) -> None:
    assert findings(WINDOWED, on_broker(WINDOWED, retention_ms=retention)).misconfigured == ()


def test_a_windowed_changelog_must_not_be_limited_in_size() -> None:
    assert "retention.bytes=1000" in reasons(WINDOWED, retention_bytes="1000")


def test_a_windowed_changelog_that_only_compacts_keeps_everything() -> None:
    found = on_broker(WINDOWED, cleanup_policy="compact", retention_ms="1", retention_bytes="1")
    assert findings(WINDOWED, found).misconfigured == ()


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_a_repartition_topic_must_not_compact(policy: str) -> None:
    assert f"cleanup.policy={policy}" in reasons(REPARTITION, cleanup_policy=policy)


@pytest.mark.parametrize("name", ["retention_ms", "retention_bytes"])
def test_a_repartition_topic_must_not_delete_records_by_itself(name: str) -> None:
    assert f"{name.replace('_', '.')}=1000" in reasons(REPARTITION, **{name: "1000"})


def test_every_misconfigured_topic_and_every_reason_is_in_the_exception() -> None:
    found = {
        REPARTITION.name: on_broker(REPARTITION, retention_ms="5", cleanup_policy="compact"),
        KEY_VALUE.name: on_broker(KEY_VALUE, 2),
    }
    with pytest.raises(MisconfiguredInternalTopicException) as caught:
        validate([REPARTITION, KEY_VALUE], found).raise_misconfigured()
    for part in (
        REPARTITION.name,
        "retention.ms=5",
        "cleanup.policy=compact",
        KEY_VALUE.name,
        "2 partitions",
    ):
        assert part in str(caught.value)


def test_automatic_set_up_makes_exactly_what_is_missing() -> None:
    assert automatic([REPARTITION, KEY_VALUE], [KEY_VALUE]) == [KEY_VALUE]


SOURCES = {"orders": "spec.topology.sources[0].topic", "users": "spec.topology.sources[1].topic"}
SINKS = {"totals": "spec.topology.sinks[0].topic"}


def test_users_topics_that_are_all_there_are_accepted() -> None:
    check_external_topics(SOURCES, SINKS, {"orders", "users", "totals", "other"}, "kafka:9092")


def test_every_missing_source_is_named_with_its_field_and_the_address() -> None:
    with pytest.raises(MissingSourceTopicException) as caught:
        check_external_topics(SOURCES, SINKS, {"totals"}, "kafka:9092")
    for part in ("orders (spec.topology.sources[0].topic)", "users", "kafka:9092", "--create"):
        assert part in str(caught.value)


def test_missing_sinks_are_told_together_with_missing_sources() -> None:
    with pytest.raises(MissingSourceTopicException, match=r"users.*sink topics totals"):
        check_external_topics(SOURCES, SINKS, {"orders"}, "kafka:9092")


def test_missing_sinks_alone_are_an_error_of_the_topology() -> None:
    with pytest.raises(TopologyException, match=r"totals \(spec\.topology\.sinks\[0\]\.topic\)"):
        check_external_topics(SOURCES, SINKS, {"orders", "users"}, "kafka:9092")
