"""The engine of a client: one Spark session and one compiled topology, started in the background, for all threads."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, wait
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from streams_runtime.api import StreamsApplication
from streams_runtime.api.checks.spark_checks import is_cluster, is_kubernetes, outside_mistake
from streams_runtime.errors import (
    IllegalStateException,
    InvalidApplicationException,
    SchemaRegistryNotAvailableException,
    StreamsException,
)
from streams_runtime.kafka.schema_registry import SchemaRegistry
from streams_runtime.pipeline.pushdown.foreseen import is_foreseen
from streams_runtime.pipeline.without_spark.early_runner import EarlyRunner, is_done_early
from streams_runtime.pipeline.without_spark.findings import Findings, StoreFormats
from streams_runtime.pipeline.without_spark.findings_file import FindingsFile
from streams_runtime.processing.batch_processor import BatchProcessor
from streams_runtime.processing.batch_work import Counters
from streams_runtime.processing.failures.error_policy import ErrorPolicy
from streams_runtime.state.global_store import GlobalStore
from streams_runtime.topology.partition_counts import changelog_spans
from streams_runtime.topology.plan import Topology

if TYPE_CHECKING:  # pyspark is imported beside the start of the threads, which need none of it
    from streams_runtime.pipeline.compile import Compiler
    from streams_runtime.pipeline.compiled_topology import Compiled
    from streams_runtime.pipeline.runner import SubTopologyRunner
    from streams_runtime.pipeline.spark.cluster import Cluster
    from streams_runtime.pipeline.spark.executor_pods import OwnPod
    from streams_runtime.pipeline.spark.spark_session import SparkSession

_LOGGER = logging.getLogger(__name__)
_RETRY = 1.0  # seconds between two questions to a registry that is away
_LOOK = 0.1  # seconds between two looks at Spark by a batch that waits for it
_SESSION_WAIT = 30.0  # seconds that a session, of this machine's cores, takes at most on a busy one


def error_policy(application: StreamsApplication) -> ErrorPolicy:
    """What is to become of records that can't be read."""
    return ErrorPolicy.of(application.spec.processing.on_deserialization_error)


def failed_policy(application: StreamsApplication) -> ErrorPolicy:
    """What is to become of records over which a step fails."""
    return ErrorPolicy.of(application.spec.processing.on_processing_error)


def cluster_of(application: StreamsApplication, own_pod: OwnPod | None) -> Cluster | None:
    """What runs the executors; None: this machine's own cores. `own_pod`: how this process reads its pod, if it is one.

    Raises:
        InvalidApplicationException: executors are to be pods, and this process is in none.
    """
    spark = application.spec.spark
    if not is_cluster(spark.master):
        return None
    from streams_runtime.pipeline.spark.executor_pods import ExecutorPods
    from streams_runtime.pipeline.spark.standalone import Standalone

    config = {name: str(value) for name, value in spark.config.items()}
    if not is_kubernetes(spark.master):
        return Standalone(spark.master, config)
    if own_pod is None:
        raise InvalidApplicationException([outside_mistake(spark.master)])
    volumes = tuple(each.name for each in application.spec.template.volumes)
    return ExecutorPods(spark.master, config, application.name, own_pod, volumes)


class SparkRuntime:
    """Starts Spark while the threads join the group, and stops it. Safe to use from several threads."""

    def __init__(
        self,
        application: StreamsApplication,
        topology: Topology,
        properties: Mapping[str, str],
        java_properties: Mapping[str, str],
        own_pod: OwnPod | None = None,
        kept: FindingsFile | None = None,
    ) -> None:
        """`properties` are those of kafka.client.client_properties.client_properties, for the reading of ranges;
        `java_properties` those for Java's client in Spark's JVM; `own_pod`: see `cluster_of`. `kept`: where what the
        analysis finds out is kept for the next start, if that may be.

        Raises:
            ConfigException: spec.kafka.schemaRegistry has a property that can't be used, or spec.spark.master a value.
        """
        self._cluster = cluster_of(application, own_pod)
        registry = application.spec.kafka.schema_registry
        self.schemas = None if registry is None else SchemaRegistry(registry)
        self._application = application
        policy, failed = error_policy(application), failed_policy(application)
        spans = changelog_spans(topology, application.spec)
        self._processor = partial(BatchProcessor, policy=policy, failed=failed, spans=spans)
        self._topology = topology
        self._properties = properties
        self._java_properties = java_properties
        self._starting = threading.Lock()
        self._started = False
        self._closing = threading.Event()
        self._session: SparkSession | None = None
        self._has_session = threading.Event()  # or will have none
        self._borrowed = False
        self._workers: threading.Thread | None = None
        self._warming = f"workers of {id(self)}"
        self._ready: Future[Compiled] = Future()
        self._kept = kept
        self._recalled: Findings | None = None

    def recall(self) -> None:
        """Read what an earlier start has found out about this topology; the state folder is this process's now."""
        self._recalled = None if self._kept is None else self._kept.read()

    def start(self) -> None:
        """Start Spark and compile the topology; returns at once. May be called again, by any thread."""
        with self._starting:
            if not self._started and not self._closing.is_set():
                self._started = True
                threading.Thread(target=self._run, name="engine", daemon=True).start()

    @property
    def is_ready(self) -> bool:
        """Whether Spark runs, and has compiled the topology."""
        return self._is_compiled and self._session is not None

    @property
    def _is_compiled(self) -> bool:
        return self._ready.done() and self._ready.exception() is None

    @property
    def formats(self) -> StoreFormats | None:
        """How stores are read: as Spark has analysed the topology, now or at an earlier start; None: not known yet."""
        return self._ready.result().compiler if self._is_compiled else self._recalled

    def processor(
        self, counters: Counters, global_stores: Mapping[str, GlobalStore] | None = None
    ) -> BatchProcessor | None:
        """A thread's processor, which counts into `counters`; None while Spark is still starting.

        `global_stores`: those of global tables, by the names of the tables. Raises as `ready`.
        """
        ready = self.ready()
        if ready is None:
            return None
        return self._processor(ready.runners, counters=counters, global_stores=global_stores)

    def early_processor(
        self,
        counters: Counters,
        global_stores: Mapping[str, GlobalStore] | None,
        should_stop: Callable[[], bool],
    ) -> BatchProcessor | None:
        """A processor for the batches before Spark is there; it raises SparkNeeded at those that have to wait for it.

        None: all of them have to. `should_stop`: whether a batch that waits for Spark in its midst is to be given up.
        """
        findings, subs = self._recalled, self._topology.subtopologies
        if findings is None or not any(is_done_early(sub, findings) for sub in subs):
            return None
        if self._cluster is not None and any(findings.after_joins.values()):
            return None  # behind a join a batch may have to wait for Spark in its midst, and a cluster may be away long

        def runner(number: int) -> Callable[[], SubTopologyRunner]:
            return lambda: self._awaited(should_stop).runners[number]

        early = {sub.id: EarlyRunner(findings, sub, runner(sub.id)) for sub in subs}
        return self._processor(early, counters=counters, global_stores=global_stores)

    def _awaited(self, should_stop: Callable[[], bool]) -> Compiled:
        self.start()
        while (ready := self.ready()) is None:
            if should_stop():
                raise IllegalStateException("the client was closed while a batch waited for Spark")
            self.wait(_LOOK)
        return ready

    def ready(self) -> Compiled | None:
        """The compiled topology; None while Spark is still starting.

        Raises what kept Spark from starting, or the topology from being compiled:
            EnvironmentException: Java or jars are missing.
            InvalidApplicationException: Spark's analysis refuses expressions.
        """
        return self._ready.result() if self._ready.done() else None

    def wait(self, seconds: float) -> None:
        """Wait until Spark runs or has failed to, at most `seconds`."""
        wait([self._ready], timeout=seconds)

    def tag_jobs(self, name: str) -> None:
        """From now on the calling thread's Spark jobs are those of `name`, which `cancel_jobs` ends."""
        if self._session is not None:
            from streams_runtime.pipeline.spark.spark_session import tag_jobs

            tag_jobs(self._session, name)

    def cancel_jobs(self, name: str) -> None:
        """End what Spark is doing now for `name`; the batch that waits for it fails."""
        if self._session is not None:
            from streams_runtime.pipeline.spark.spark_session import cancel_tagged_jobs

            cancel_tagged_jobs(self._session, name)

    def remove_members(self, instance_ids: Collection[str]) -> None:
        """Take threads that will not come back out of the group, so that others have their partitions at once.

        Raises:
            StreamsException: Spark, whose Kafka client does it, is not there, or the group did not answer. Others have
            the partitions when the members' sessions end.
        """
        if self._started and self._cluster is None:
            self._has_session.wait(_SESSION_WAIT)
        if self._session is None:
            names = ", ".join(instance_ids)
            raise StreamsException(f"{names}: in the group until the session ends, as Spark does not run yet")
        from streams_runtime.pipeline.spark.java_group_members import remove_members

        remove_members(self._session, self._java_properties, self._application.application_id, instance_ids)

    @property
    def beyond_repair(self) -> str | None:
        """Why no thread of this client can work any more, new ones included; None: Spark runs, or may yet start."""
        if not self._ready.done():
            return None
        failure = self._ready.exception()
        if failure is not None:
            return f"Spark has not started in this process ({type(failure).__name__})"
        if self._session is None:
            return "Spark is stopped"
        from streams_runtime.pipeline.spark.spark_session import trouble_with

        return trouble_with(self._session)

    def close(self) -> None:
        """Stop Spark, unless it ran already when this client started. May be called twice.

        A start that is under way can't be broken off; it is waited for, a few seconds.
        """
        with self._starting:
            self._closing.set()
        if self._started:
            wait([self._ready])
        if self._workers is not None:
            self.cancel_jobs(self._warming)
        session, self._session = self._session, None
        if session is not None and not self._borrowed:
            session.stop()
        if self._workers is not None:
            self._workers.join()

    def _register_schemas(self, compiler: Compiler) -> None:
        """Before any record is read; waits for a registry that is away, as threads wait for brokers."""
        while not self._closing.is_set():
            try:
                compiler.register_schemas()
                return
            except SchemaRegistryNotAvailableException as error:
                _LOGGER.warning("%s", error)
                self._closing.wait(_RETRY)
        raise IllegalStateException("the client was closed while it waited for the schema registry")

    def _go_on(self) -> None:
        if self._closing.is_set():
            raise IllegalStateException("the client was closed while Spark started")

    def _have_executors(self, session: SparkSession, cluster: Cluster) -> None:
        """Return when a cluster works for this client."""
        from streams_runtime.pipeline.spark.cluster import check_executors, wait_for_executor, watch

        wait_for_executor(session, cluster, self._closing)
        self._go_on()
        check_executors(session, cluster)
        threading.Thread(target=watch, args=(session, cluster, self._closing), name="cluster", daemon=True).start()

    def _start_workers(self, session: SparkSession) -> None:
        """Beside the compiling. What fails here fails again when there are records, and is told then."""
        from streams_runtime.pipeline.pushdown.scan_ranges import start_workers
        from streams_runtime.pipeline.spark.spark_session import tag_jobs

        with suppress(Exception):
            tag_jobs(session, self._warming)
            start_workers(session, os.cpu_count() or 1)

    def _run(self) -> None:
        try:
            self._ready.set_result(self._compiled())
        except BaseException as error:
            self._ready.set_exception(error)
        finally:
            self._has_session.set()

    def _compiled(self) -> Compiled:
        """Spark's session, the topology compiled over it, and its runners warm."""
        from streams_runtime.pipeline.compiled_topology import compiled

        session, rows = self._opened_session()
        if self._cluster is not None and not self._borrowed:
            self._have_executors(session, self._cluster)
        elif not rows:  # all others warm up by jobs of their own, which would have to wait for this one
            self._workers = threading.Thread(target=self._start_workers, args=(session,), name="workers")
            self._workers.start()
        self._go_on()
        ready = compiled(session, self._topology, self._properties, self.schemas)
        self._register_schemas(ready.compiler)
        for runner in ready.runners.values():
            runner.warm_up()
        self._keep(ready)
        return ready

    def _keep(self, ready: Compiled) -> None:
        """Leave what was found out to the next start, which can do without it."""
        if self._kept is None:
            return
        try:
            findings = ready.findings(self._topology)
        except Exception as error:
            _LOGGER.warning("the analysis can't be kept for the next start: %s: %s", type(error).__name__, error)
        else:
            self._kept.write(findings)

    def _opened_session(self) -> tuple[SparkSession, bool]:
        """The session, and whether rows will go through its JVM, as far as that is foreseen."""
        from streams_runtime.pipeline.spark.cluster import wait_for_master
        from streams_runtime.pipeline.spark.spark_session import is_running, open_session

        spark = self._application.spec.spark
        config = {name: str(value) for name, value in spark.config.items()}
        self._borrowed = is_running()
        rows = not is_foreseen(self._topology)
        cluster, there = None if self._borrowed else self._cluster, {}
        if cluster is not None:
            wait_for_master(cluster, self._closing)
            self._go_on()
            there = cluster.settings(self._closing)
        self._go_on()
        self._session = session = open_session(self._application.application_id, spark.master, config, rows, there)
        self._has_session.set()
        return session, rows
