"""Internal topics as they have to be, compared with what is on the brokers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from streams_runtime.errors import MisconfiguredInternalTopicException
from streams_runtime.kafka.types import TopicDescription
from streams_runtime.topology.partition_counts import COMPACTION_LAG
from streams_runtime.topology.plan import InternalTopic

_UNLIMITED = -1


@dataclass(frozen=True, slots=True)
class Misconfigured:
    """An internal topic that does not fit, or would lose data; each reason ends with what would do."""

    topic: str
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.topic} {'; '.join(self.reasons)}"


@dataclass(frozen=True, slots=True)
class Findings:
    """What is wrong with the internal topics; both in the order in which they were expected."""

    missing: tuple[InternalTopic, ...]
    misconfigured: tuple[Misconfigured, ...]

    def raise_misconfigured(self) -> None:
        """Raises MisconfiguredInternalTopicException with all of them, if there are any."""
        if self.misconfigured:
            raise MisconfiguredInternalTopicException(
                f"internal topics do not fit: {'. '.join(map(str, self.misconfigured))}. Correct them"
                " (kafka-configs.sh --alter), or, if nothing in them is needed, delete them and let the"
                " application make them again"
            )


def validate(expected: Sequence[InternalTopic], found: Mapping[str, TopicDescription]) -> Findings:
    """Compares; topics of `found` that are not expected are nobody's business here."""
    missing = tuple(topic for topic in expected if topic.name not in found)
    checked = ((topic, _reasons(topic, found[topic.name])) for topic in expected if topic.name in found)
    return Findings(missing, tuple(Misconfigured(topic.name, reasons) for topic, reasons in checked if reasons))


def _reasons(expected: InternalTopic, found: TopicDescription) -> tuple[str, ...]:
    reasons = []
    if found.partitions != expected.partitions:
        reasons.append(
            f"has {found.partitions} partitions and needs {expected.partitions}, as many as there are tasks"
            " (give the sources the number that they had, or reset the application)"
        )
    if expected.kind == "repartition":
        return (*reasons, *_repartition_reasons(found.config))
    if "delete" in _policies(expected.config_dict):
        return (*reasons, *_windowed_reasons(expected.config_dict, found.config))
    return (*reasons, *_key_value_reasons(found.config), *_history_reasons(expected.config_dict, found.config))


def _repartition_reasons(config: Mapping[str, str]) -> list[str]:
    reasons = []
    if "compact" in _policies(config):
        reasons.append(f"has cleanup.policy={config['cleanup.policy']}, which drops records of equal keys; set delete")
    # Processed records are deleted by the application itself; any other deletion may take unprocessed ones.
    for name in ("retention.ms", "retention.bytes"):
        if _number(config, name) != _UNLIMITED:
            reasons.append(f"has {name}={config[name]}, which drops records that were not processed; set -1")
    return reasons


def _key_value_reasons(config: Mapping[str, str]) -> list[str]:
    if "delete" in _policies(config):
        policy = config.get("cleanup.policy")
        return [f"has cleanup.policy={policy}, which drops keys that are still in the store; set compact"]
    return []


def _history_reasons(expected: Mapping[str, str], config: Mapping[str, str]) -> list[str]:
    if COMPACTION_LAG not in expected:
        return []
    has, needs = int(config.get(COMPACTION_LAG, 0)), int(expected[COMPACTION_LAG])
    if has >= needs:
        return []
    return [f"has {COMPACTION_LAG}={has}, which drops what a table's history still needs; set {needs} or more"]


def _windowed_reasons(expected: Mapping[str, str], config: Mapping[str, str]) -> list[str]:
    if "delete" not in _policies(config):
        return []
    reasons = []
    has, needs = _number(config, "retention.ms"), _number(expected, "retention.ms")
    if has != _UNLIMITED and (needs == _UNLIMITED or has < needs):
        reasons.append(f"has retention.ms={has}, which drops windows too early; set {needs} or more")
    if _number(config, "retention.bytes") != _UNLIMITED:
        size = config["retention.bytes"]
        reasons.append(f"has retention.bytes={size}, which drops windows whatever their age; set -1")
    return reasons


def _policies(config: Mapping[str, str]) -> frozenset[str]:
    return frozenset(part.strip() for part in config.get("cleanup.policy", "delete").split(","))


def _number(config: Mapping[str, str], name: str) -> int:
    return int(config.get(name, _UNLIMITED))
