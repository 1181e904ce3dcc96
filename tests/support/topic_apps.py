"""An application with one internal topic of each kind, whose names begin with the test's own prefix."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import yaml
from waiting import eventually

from streams_runtime.api import StreamsApplication, parse_application
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.types import TopicSpec
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.plan import Topology


class TopicApp:
    """Orders by user, counted: `repartition` and `changelog` are its internal topics."""

    def __init__(self, prefix: str, bootstrap: str | None = None, **internal_topics: Any) -> None:
        self.source, self.sink = f"{prefix}-orders", f"{prefix}-user-totals"
        self.changelog = f"{prefix}-totals-changelog"
        self.repartition = f"{prefix}-by-user-repartition"
        self.internal = (self.repartition, self.changelog)
        value = {"format": "json", "schema": "user STRING, amount DOUBLE"}
        self.topology_spec: dict[str, Any] = {
            "sources": [{"name": "orders", "topic": self.source, "value": value}],
            "steps": [
                {"name": "by-user", "from": "orders", "keyBy": "user"},
                {"name": "totals", "from": "by-user", "aggregate": {"n": "count(*)"}, "store": "totals"},
            ],
            "sinks": [{"from": "totals", "topic": self.sink, "value": {"format": "json"}}],
        }
        self.document: dict[str, Any] = {
            "apiVersion": "streamsoperator.io/v1alpha1",
            "kind": "StreamsApplication",
            "metadata": {"name": "app"},
            "spec": {
                "applicationId": prefix,
                "kafka": {"bootstrapServers": bootstrap} if bootstrap else {},
                "internalTopics": internal_topics,
                "topology": self.topology_spec,
            },
        }
        self.resource: StreamsApplication = parse_application(self.document)
        self.topology: Topology = build_topology(self.resource)

    def write(self, file: Path) -> Path:
        """The application as a file."""
        file.write_text(yaml.safe_dump(self.document))
        return file

    def make_users_topics(self, admin: Admin, partitions: int = 3) -> None:
        """Make source and sink."""
        assert not admin.create_topics([TopicSpec(self.source, partitions), TopicSpec(self.sink, 1)]).refused

    def present(self, admin: Admin) -> set[str]:
        """The internal topics that the broker has."""
        return set(admin.describe_topics(self.internal, config=False))


def delete(admin: Admin, names: Collection[str]) -> None:
    """Delete topics, and return when the broker shows none of them."""
    admin.delete_topics(names)
    eventually(lambda: not admin.describe_topics(names, config=False), f"{', '.join(names)} are gone")
