"""What the threads, the standbys and the queries of one client share."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Protocol

from streams_runtime.api import StreamsApplication
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.client.client_properties import client_properties, java_properties
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.metrics.metric_definition import Level
from streams_runtime.metrics.store_recorder import StoreRecorders
from streams_runtime.metrics.tracing import tracing_of
from streams_runtime.pipeline.pushdown.foreseen import is_added_up
from streams_runtime.pipeline.without_spark.findings_file import FindingsFile, is_keepable
from streams_runtime.processing.failures.error_policy import ErrorPolicy
from streams_runtime.processing.failures.sink_topics import SinkTopics
from streams_runtime.processing.inputs.batch_size import AGGREGATED_KEYS
from streams_runtime.processing.inputs.intake import AGGREGATED_RECORDS, BATCH_RECORDS, IntakeLimits
from streams_runtime.restore.changelog_reader import are_worth_workers
from streams_runtime.restore.restore_listener import StandbyUpdateListener, StateRestoreListener
from streams_runtime.restore.restore_progress import ProgressListener
from streams_runtime.restore.snapshot_start import NoSnapshots, SnapshotStart
from streams_runtime.restore.standby_progress import StandbyProgress
from streams_runtime.restore.state_updater import StateUpdater
from streams_runtime.restore.state_updaters import Updaters
from streams_runtime.settings import InstanceSettings
from streams_runtime.snapshots.client_snapshots import ClientSnapshots, client_snapshots
from streams_runtime.snapshots.snapshot_settings import snapshot_settings
from streams_runtime.spark_runtime import SparkRuntime
from streams_runtime.state.global_store import GlobalStore
from streams_runtime.state.state_directory import StateDirectory
from streams_runtime.state.store_options import store_options
from streams_runtime.states import GlobalThreadState
from streams_runtime.tasks.positions import Beginnings
from streams_runtime.tasks.standby_placement import Wanted
from streams_runtime.tasks.standbys import StandbyTasks
from streams_runtime.topics.external_topics import offset_resets, sink_topics, source_topics
from streams_runtime.topics.setup_policy import InitParameters, automatic, explicit, manual
from streams_runtime.topics.table_changelogs import warn_of_former_changelogs
from streams_runtime.topics.topic_manager import InternalTopicManager
from streams_runtime.topics.topic_watch import TopicWatch
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.own_topics import OwnTopics
from streams_runtime.topology.partition_counts import internal_topic_names

if TYPE_CHECKING:
    from streams_runtime.pipeline.spark.executor_pods import OwnPod

_LOGGER = logging.getLogger("streams_runtime.client")


class GlobalTables(Protocol):
    """What keeps the global tables (threads.global_thread)."""

    @property
    def name(self) -> str:
        """The thread's name."""

    @property
    def state(self) -> GlobalThreadState:
        """The thread's state; RUNNING: the tables have what their topics had at the start."""

    @property
    def stores(self) -> Mapping[str, GlobalStore]:
        """The open stores, by the names of their tables."""


class WarmUp(Protocol):
    """What lets an instance join its group when its tasks are warm (threads.warm_up)."""

    @property
    def remaining(self) -> int:
        """Records that are missing in the stores that are waited for."""

    def wait(self, should_stop: Callable[[], bool], pause: Callable[[float], object]) -> None:
        """Return when the instance may take part in its group, or `should_stop` says so."""

    def snapshot(self) -> Mapping[str, object] | None:
        """What `/state` says of it; None before it and after it."""


class ClientContext:
    """The plan, the connections, the folder and the engine of a client; made before anything of it runs.

    `partition_counts`: of every topic, as the last check found them; empty before the first one. `standbys` is None
    where no task has stores, `global_tables` where the application has none, and `warm_up` before the client is made.
    """

    def __init__(
        self,
        application: StreamsApplication,
        settings: InstanceSettings,
        own_pod: OwnPod | None = None,
        restore_listener: StateRestoreListener | None = None,
        standby_listener: StandbyUpdateListener | None = None,
    ) -> None:
        """Connect to nothing. Raises ConfigException: a setting can't be used; the message names it."""
        kafka, processing = application.spec.kafka, application.spec.processing
        self.application = application
        self.settings = settings
        self.topology = build_topology(application)
        self.tags = self._own_tags()
        """What this instance has of spec.processing.rackAwareAssignmentTags."""
        users_topics = {**source_topics(self.topology), **sink_topics(self.topology, application.spec)}
        # The global thread looks after its own topics.
        self.users_topics: Collection[str] = users_topics.keys() - set(self.topology.global_topics)
        self._refused = ErrorPolicy.of(processing.on_production_error)
        self.exactly_once = once = processing.exactly_once
        self.client_properties: Mapping[str, str] = client_properties(settings.bootstrap_servers, kafka.config, once)
        self.admin = Admin(self.client_properties)
        self.snapshots = self._make_snapshots()
        """None where the application wants none."""
        self.level = Level(processing.metrics_recording_level)
        """What is measured, and shown."""
        self.tracing = tracing_of(os.environ, application.application_id, settings.instance)
        """None where nothing asks for traces."""
        self.directory = StateDirectory(
            settings.state_dir,
            application.application_id,
            settings.instance,
            measured=StoreRecorders(self.level),
            options=store_options(application.spec.state.rocksdb),
        )
        self.poll_seconds = processing.poll_duration.total_seconds()
        self.limits = self._intake_limits()
        resets, patterns = offset_resets(application.spec), self.topology.source_patterns
        self.beginnings = Beginnings(resets, read_committed=once, patterns=patterns)
        self.progress = ProgressListener(restore_listener)
        self.standby_progress = StandbyProgress(standby_listener)
        self.engine = self._make_engine(own_pod)
        self.updaters = Updaters(
            self.client_properties,
            self.admin,
            application.application_id,
            self.progress,
            self.standby_progress,
            self.poll_seconds,
            once,
            self._snapshot_start,
        )
        self.paused = threading.Event()
        """Set while no thread is to process records (StreamsClient.pause)."""
        self.partition_counts: Mapping[str, int] = {}
        self.standbys: StandbyTasks | None = None
        self.global_tables: GlobalTables | None = None
        self.warm_up: WarmUp | None = None
        self._topics = InternalTopicManager(self.admin)

    @property
    def global_tables_are_complete(self) -> bool:
        """Whether the global tables have what their topics had at the start; True where there are none."""
        return self.global_tables is None or self.global_tables.state is GlobalThreadState.RUNNING

    @property
    def global_stores(self) -> Mapping[str, GlobalStore]:
        """The stores of the global tables that are open, by the names of the tables."""
        return {} if self.global_tables is None else self.global_tables.stores

    def set_up_topics(self, parameters: InitParameters) -> None:
        """Check all topics, and make internal ones as an init() does. Raises as InternalTopicManager.set_up."""
        self._topics.set_up(self.topology, self.application.spec, explicit(parameters), parameters.seconds)

    def make_topics_ready(self) -> Mapping[str, int]:
        """Check the topics as a rebalance does; with automatic set-up create the internal ones that are missing.

        Returns the number of partitions of every topic. Stream threads call it.

        Raises what InternalTopicManager.set_up raises; MissingInternalTopicException with manual set-up.
        """
        again = bool(self.partition_counts)
        policy = manual if self.application.spec.internal_topics.setup == "manual" else automatic
        done = self._topics.set_up(self.topology, self.application.spec, policy, is_begun=not again)
        if not again:
            warn_of_former_changelogs(self.admin, self.topology)
        if again and done.created:
            _LOGGER.warning(
                "internal topics had been deleted and were made again, empty: %s. What was in them is lost: records"
                " that were not processed yet, and copies of stores. Find out who deleted them;"
                " spec.internalTopics.setup: manual ends the application instead",
                ", ".join(done.created),
            )
        self.partition_counts = done.partitions
        return self.partition_counts

    def make_updater(self, name: str) -> StateUpdater:
        """A thread's state updater, with a restore consumer and a bulk loader of its own; not started."""
        alone = self.application.spec.processing.stream_threads == 1
        changelogs = {each.changelog_topic for sub in self.topology.subtopologies for each in sub.stores}
        return self.updaters.for_thread(
            name, lambda: alone and self.directory.tasks.empty and are_worth_workers(self.admin, changelogs)
        )

    def _make_snapshots(self) -> ClientSnapshots | None:
        settings = snapshot_settings(self.application.spec.state.snapshots)
        if settings is None:
            return None
        return client_snapshots(settings, self.application.application_id, self.settings.instance, self.admin)

    def _make_engine(self, own_pod: OwnPod | None) -> SparkRuntime:
        kafka, servers = self.application.spec.kafka, self.settings.bootstrap_servers
        kept = FindingsFile(self.directory.root, self.application, self.topology)
        return SparkRuntime(
            self.application,
            self.topology,
            self.client_properties,
            java_properties(servers, kafka.config, self.exactly_once),
            own_pod,
            kept if is_keepable(self.application, self.topology) else None,
        )

    def _snapshot_start(self, on_snapshot: Callable[[TopicPartition, int], None]) -> SnapshotStart | NoSnapshots:
        if self.snapshots is None:
            return NoSnapshots()
        return SnapshotStart(self.application.application_id, self.snapshots.fetcher, self.admin, on_snapshot)

    def make_sink_topics(self) -> SinkTopics:
        """Make what knows which records the topics take that a thread writes."""
        spec = self.application.spec
        policy, written = self._refused, sink_topics(self.topology, spec)
        letters = set(spec.processing.letter_topics.values())
        return SinkTopics(
            policy,
            self.admin,
            [topic for topic in written if topic not in letters],
            [*letters, *internal_topic_names(self.topology)],
            self.client_properties,
            OwnTopics.of(self.topology),
        )

    def make_standbys(self, runs: Callable[[], bool]) -> None:
        """Make what keeps standbys, where tasks have stores; not started. `runs`: whether the client does."""
        changelogs = [each.changelog_topic for sub in self.topology.subtopologies for each in sub.stores]
        if not changelogs:
            return
        processing = self.application.spec.processing
        name = f"{self.settings.instance}-StreamThread-Standbys-StateUpdater"
        self.standbys = StandbyTasks(
            self.settings.instance,
            Wanted(processing.standby_replicas, processing.rack_aware_assignment_tags),
            self.topology,
            self.directory,
            lambda: self.admin.group_members(self.application.application_id),
            lambda: self.partition_counts if runs() else {},
            lambda reason: self.updaters.for_standbys(name, reason),
            TopicWatch(self.admin, changelogs),
        )

    def _own_tags(self) -> dict[str, str]:
        keys, given = self.application.spec.processing.rack_aware_assignment_tags, self.settings.client_tags
        missing = [key for key in keys if key not in given]
        if missing:
            _LOGGER.warning(
                "%s has no tag %s of spec.processing.rackAwareAssignmentTags, so that it counts as apart from all other"
                " instances. Give it a value: the pod or its node that label, streamsapp run --client-tag KEY=VALUE, or"
                " InstanceSettings(client_tags=…)",
                self.settings.instance,
                ", ".join(missing),
            )
        return {key: given[key] for key in keys if key in given}

    def _intake_limits(self) -> IntakeLimits:
        processing = self.application.spec.processing
        most, keys = processing.max_batch_records or BATCH_RECORDS, None
        if processing.max_batch_records is None and is_added_up(self.topology):
            most, keys = AGGREGATED_RECORDS, AGGREGATED_KEYS
        interval = processing.commit_interval.total_seconds()
        idle = processing.max_task_idle.total_seconds()
        return IntakeLimits(most, interval, read_committed=processing.exactly_once, keys=keys, idle=idle)
