"""One local run from its first step to its last: brokers, instances, and everything put away in order."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from streams_runtime.api import StreamsApplication
from streams_runtime.cli.local.open_page import PageOpener
from streams_runtime.cli.local.outcome import exit_code_of
from streams_runtime.cli.local.progress.group_lag import GroupProgress, GroupWatch
from streams_runtime.cli.local.progress.run_account import RunAccount
from streams_runtime.cli.local.progress.run_events import RunEvent
from streams_runtime.cli.local.progress.run_output import RunReporter
from streams_runtime.cli.local.replica import Replica, ReplicaOptions
from streams_runtime.cli.local.run_brokers import GivenBrokers, OwnBroker
from streams_runtime.cli.local.run_folders import RunFolders
from streams_runtime.cli.local.run_setup import init_where_manual
from streams_runtime.cli.local.run_signals import Interrupted, StopSignals
from streams_runtime.cli.local.supervisor import Supervisor
from streams_runtime.errors import BrokerNotAvailableException
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.broker.ports import require_free
from streams_runtime.kafka.client.client_properties import client_properties
from streams_runtime.lifecycle.retry_budget import RestartPolicy
from streams_runtime.topics.topic_manager import topology_on
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.partition_counts import internal_topic_names

_TICK = 0.2  # seconds between two checks of the instances
_ANSWER_SECONDS = 10.0  # for one answer of the brokers
_RETRY = 1.0  # seconds until the next request to brokers that did not answer


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be run. `bootstrap_servers` None: on an embedded broker, at `broker_port`.

    `port` is where the first instance answers queries, and the others behind it. Ports that are None are free ones.
    `open_page`: show the first instance's page in a browser. `tags`: values of each tag, which instances have in turn.
    """

    file: Path
    application: StreamsApplication
    instances: int
    bootstrap_servers: str | None = None
    until_caught_up: bool = False
    log_level: str = "INFO"
    queries_token: Path | None = None
    port: int | None = None
    broker_port: int | None = None
    open_page: bool = False
    tags: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The instances, named as pods are: NAME-0, NAME-1, and so on."""
        return tuple(f"{self.application.name}-{ordinal}" for ordinal in range(self.instances))

    @property
    def ports(self) -> tuple[int, ...]:
        """Where the instances answer queries; empty where each takes a free port."""
        return () if self.port is None else tuple(range(self.port, self.port + self.instances))


class Session:
    """One run. Used once, on the main thread, in `with signals`."""

    def __init__(self, plan: Plan, folders: RunFolders, signals: StopSignals, reporter: RunReporter) -> None:
        self._plan = plan
        self._folders = folders
        self._signals = signals
        self._reporter = reporter
        self._topology = build_topology(plan.application)
        self._resources = ExitStack()
        self._supervisor = Supervisor(())
        self._brokers = self._choose_brokers()
        self._broken = False
        self._stopping = False
        self._broker_away = False

    @property
    def failed(self) -> tuple[str, ...]:
        """The instances that did not end in order, once the run is over."""
        return self._supervisor.failed

    def run(self) -> int:
        """Run to the end; returns the exit code. Nothing is left running, whatever is raised.

        Raises:
            EnvironmentException: the machine lacks something.
            StreamsException: the brokers refuse to answer.
        """
        caught_up = False
        with self._resources:
            try:
                with self._signals.raising():
                    watch, first = self._begin()
            except Interrupted:
                return exit_code_of((), not self._plan.until_caught_up)
            caught_up = self._supervise(watch, first)
        complete = not self._broken and (caught_up or not self._plan.until_caught_up)
        return exit_code_of(self._supervisor.ends, complete)

    def _choose_brokers(self) -> GivenBrokers | OwnBroker:
        address = self._plan.bootstrap_servers
        if address is not None:
            return GivenBrokers(address, self._reporter.report)
        return OwnBroker(
            self._folders.broker, self._topology, self._resources, self._reporter.report, self._plan.broker_port
        )

    def _begin(self) -> tuple[GroupWatch, GroupProgress]:
        """Everything before the first instance; can be broken off anywhere."""
        application, topology = self._plan.application, self._topology
        for port in self._plan.ports:
            require_free(port)
        self._brokers.reach(application.spec)
        properties = client_properties(self._brokers.address, application.spec.kafka.config)
        admin = Admin(properties, timeout=_ANSWER_SECONDS)
        self._topology = topology = topology_on(admin, topology)
        inputs = {*topology.source_topics, *topology.repartition_topics}
        internal = frozenset(internal_topic_names(topology))
        stable = topology.source_topics if application.spec.processing.exactly_once else ()
        watch = GroupWatch(admin, application.application_id, inputs, internal, stable)
        self._resources.callback(watch.stop)
        first = self._first_progress(watch)
        init_where_manual(application, self._brokers.address, self._reporter.report)
        return watch, first

    def _first_progress(self, watch: GroupWatch) -> GroupProgress:
        """The group before anything runs; brokers that have just started may take a while to know it."""
        while True:
            try:
                return watch.read_progress()
            except BrokerNotAvailableException as error:
                self._reporter.report(RunEvent("broker-away", f"{error}. Asking again", problem=True))
                time.sleep(_RETRY)

    def _supervise(self, watch: GroupWatch, first: GroupProgress) -> bool:
        """Run the instances until all have ended; whether the backlog was caught up with."""
        plan, report = self._plan, self._reporter.report
        options = ReplicaOptions(
            plan.file.absolute(), self._brokers.address, plan.log_level, plan.queries_token, plan.port, plan.tags
        )
        policy = RestartPolicy()
        replicas = [Replica(name, self._folders.instance(name), options, policy, report) for name in plan.names]
        self._supervisor = Supervisor(replicas, report)
        self._resources.callback(self._supervisor.end)
        account = RunAccount(plan.application.name, self._topology, first, time.time())
        watch.start()
        self._supervisor.start()
        opener = PageOpener(report) if plan.open_page else None
        reported = False
        while True:
            self._supervisor.tick()
            progress, snapshots = watch.latest or first, self._supervisor.snapshots()
            self._reporter.show(account.overview(snapshots, progress, time.time()))
            if opener is not None:
                opener.tick(snapshots)
            if account.caught_up and not reported:
                reported = True
                report(RunEvent("caught-up", "caught up: the backlog of the start is processed and committed"))
            self._note_brokers(watch)
            if self._supervisor.ended:
                if account.late is not None:
                    report(account.late)
                return account.caught_up
            self._stop_where_due(account.caught_up)
            time.sleep(_TICK)

    def _stop_where_due(self, caught_up: bool) -> None:
        signals, report = self._signals, self._reporter.report
        if signals.hurry:
            report(RunEvent("killing", "killing what still runs"))
            self._supervisor.kill()
            if isinstance(self._brokers, OwnBroker):
                self._brokers.kill()
        if self._stopping:
            return
        if signals.first_signal is not None:
            self._stop(f"stopping ({signals.first_signal.name}; once more kills)")
        elif self._brokers.gone() is not None:
            self._broken = True
            self._stop(f"stopping: {self._brokers.gone()}", problem=True)
        elif caught_up and self._plan.until_caught_up:
            self._stop("stopping: there is nothing left to do")

    def _stop(self, why: str, problem: bool = False) -> None:
        self._stopping = True
        self._reporter.report(RunEvent("stopping", why, problem=problem))
        self._supervisor.stop()

    def _note_brokers(self, watch: GroupWatch) -> None:
        """Say once that the brokers are away, and once that they are back."""
        if self._stopping or (watch.failure is not None) == self._broker_away:
            return
        self._broker_away = watch.failure is not None
        if watch.failure is not None:
            text = f"{watch.failure}. The instances wait, and go on when it is back"
            self._reporter.report(RunEvent("broker-away", text, problem=True))
        else:
            self._reporter.report(RunEvent("broker-back", "the brokers answer again"))
