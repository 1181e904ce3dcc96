"""The brokers of a local run: those whose address was given, or an embedded one with the topics that are missing."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from streams_runtime.api import ApplicationSpec
from streams_runtime.cli.local.progress.run_events import Report, RunEvent
from streams_runtime.cli.users_topics import feeding, make_topics, missing_topics
from streams_runtime.kafka.admin.connection import FailedAttempt
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.broker.embedded_broker import EmbeddedBroker
from streams_runtime.kafka.client.client_properties import client_properties
from streams_runtime.topics.external_topics import sink_topics, source_topics
from streams_runtime.topology.plan import Topology


class GivenBrokers:
    """Brokers that belong to others: nothing is made there but the application's internal topics."""

    def __init__(self, address: str, report: Report) -> None:
        self.address = address
        self._report = report

    def reach(self, spec: ApplicationSpec) -> None:
        """Return when they answer; waits for as long as that takes, and says so.

        Raises:
            ConfigException: they refuse the login.
        """
        Admin(client_properties(self.address, spec.kafka.config)).wait_for_broker(self._tell)

    def gone(self) -> str | None:
        """Why they will not come back: nobody knows that of brokers of others."""
        return None

    def _tell(self, attempt: FailedAttempt) -> None:
        facts = {"bootstrap_servers": self.address, "reason": attempt.reason}
        self._report(RunEvent("broker-away", str(attempt), facts, problem=True))


class OwnBroker:
    """An embedded broker, which ends with the run."""

    def __init__(
        self, folder: Path, topology: Topology, resources: ExitStack, report: Report, port: int | None = None
    ) -> None:
        """`resources` is where the order to stop it goes. `port` None: a free one."""
        self._broker = EmbeddedBroker(folder, port)
        self._topology = topology
        self._resources = resources
        self._report = report

    @property
    def address(self) -> str:
        """Its address, once `reach` has returned."""
        return self._broker.bootstrap_servers

    def reach(self, spec: ApplicationSpec) -> None:
        """Start it, and make the users' topics that are missing.

        Raises:
            EnvironmentException: no Java or jars, or a folder that can't be used.
            StreamsException: it refuses a topic's name.
        """
        broker = self._broker
        self._resources.callback(broker.stop)
        broker.start()
        facts = {"bootstrap_servers": self.address, "pid": broker.pid, "data_dir": str(broker.data_dir)}
        self._report(RunEvent("broker", f"broker at {self.address}, data in {broker.data_dir}", facts))
        admin = Admin(client_properties(self.address, spec.kafka.config))
        present = admin.partition_counts({*source_topics(self._topology), *sink_topics(self._topology, spec)})
        missing = missing_topics(self._topology, spec, present)
        make_topics(admin, missing)
        for topic in missing:
            text = f"made the topic {topic.name}, partitions: {topic.partitions}"
            if topic.name in (*self._topology.source_topics, *self._topology.global_topics):
                text += f"; feed it: {feeding(topic.name, self.address)}"
            self._report(RunEvent("topic", text, {"topic": topic.name, "partitions": topic.partitions}))

    def gone(self) -> str | None:
        """Why it ended by itself; None while it runs."""
        return None if self._broker.running else self._broker.why_it_ended()

    def kill(self) -> None:
        """SIGKILL, for a user in a hurry."""
        self._broker.kill()
