"""The engine of a client: one Spark session and one compiled topology, started in the background, for all threads."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Collection, Mapping
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass

from streams_runtime.api import StreamsApplication
from streams_runtime.api.checks.spark_checks import is_cluster, is_kubernetes, outside_mistake
from streams_runtime.errors import (
    IllegalStateException,
    InvalidApplicationException,
    SchemaRegistryNotAvailableException,
    StreamsException,
)
from streams_runtime.kafka.schema_registry import SchemaRegistry
from streams_runtime.pipeline.batch_input import RecordReader
from streams_runtime.pipeline.compile import Compiler
from streams_runtime.pipeline.formats.schema_ids import Schemas
from streams_runtime.pipeline.pushdown.foreseen import is_foreseen
from streams_runtime.pipeline.pushdown.scan_ranges import start_workers
from streams_runtime.pipeline.runner import SubTopologyRunner
from streams_runtime.pipeline.spark.cluster import Cluster, check_executors, wait_for_executor, wait_for_master, watch
from streams_runtime.pipeline.spark.executor_pods import ExecutorPods, OwnPod
from streams_runtime.pipeline.spark.java_group_members import remove_members
from streams_runtime.pipeline.spark.registered_functions import with_functions
from streams_runtime.pipeline.spark.spark_session import (
    SparkSession,
    cancel_tagged_jobs,
    is_running,
    open_session,
    tag_jobs,
    trouble_with,
)
from streams_runtime.pipeline.spark.standalone import Standalone
from streams_runtime.processing.batch_processor import BatchProcessor, Counters
from streams_runtime.processing.unreadable_records import ErrorPolicy
from streams_runtime.state.global_store import GlobalStore
from streams_runtime.topology.plan import Topology

_LOGGER = logging.getLogger(__name__)
_RETRY = 1.0  # seconds between two questions to a registry that is away


@dataclass(frozen=True, slots=True)
class Compiled:
    """A topology over a Spark session: what runs its batches, by sub-topology, and what knows its formats."""

    compiler: Compiler
    runners: Mapping[int, SubTopologyRunner]


def compiled(
    session: SparkSession, topology: Topology, properties: Mapping[str, str], schemas: Schemas | None = None
) -> Compiled:
    """Compile a topology; `properties` are librdkafka's, with which Spark's workers read Kafka, `schemas` a registry's.

    Raises:
        InvalidApplicationException: Spark's analysis refuses expressions, or a function can't be loaded.
        EnvironmentException: functions need what is not installed.
    """
    session = with_functions(session, topology.functions)
    compiler, reader = Compiler(session, topology, schemas), RecordReader(session, properties)
    return Compiled(compiler, {sub.id: SubTopologyRunner(compiler, reader, sub) for sub in topology.every_subtopology})


def error_policy(application: StreamsApplication) -> ErrorPolicy:
    """What is to become of records that can't be read."""
    declared = application.spec.processing.on_deserialization_error
    return ErrorPolicy(declared.action, declared.dead_letter.topic if declared.dead_letter else None)


def cluster_of(application: StreamsApplication, own_pod: OwnPod | None) -> Cluster | None:
    """What runs the executors; None: this machine's own cores. `own_pod`: how this process reads its pod, if it is one.

    Raises:
        InvalidApplicationException: executors are to be pods, and this process is in none.
    """
    spark = application.spec.spark
    if not is_cluster(spark.master):
        return None
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
    ) -> None:
        """`properties` are those of kafka.client.client_properties.client_properties, for the reading of ranges;
        `java_properties`
        those for Java's client in Spark's JVM; `own_pod`: see `cluster_of`.

        Raises:
            ConfigException: spec.kafka.schemaRegistry has a property that can't be used, or spec.spark.master a value.
        """
        self._cluster = cluster_of(application, own_pod)
        registry = application.spec.kafka.schema_registry
        self.schemas = None if registry is None else SchemaRegistry(registry)
        self._application = application
        self._topology = topology
        self._properties = properties
        self._java_properties = java_properties
        self._starting = threading.Lock()
        self._started = False
        self._closing = threading.Event()
        self._session: SparkSession | None = None
        self._borrowed = False
        self._workers: threading.Thread | None = None
        self._warming = f"workers of {id(self)}"
        self._ready: Future[Compiled] = Future()

    def start(self) -> None:
        """Start Spark and compile the topology; returns at once. May be called again, by any thread."""
        with self._starting:
            if not self._started and not self._closing.is_set():
                self._started = True
                threading.Thread(target=self._run, name="engine", daemon=True).start()

    @property
    def compiler(self) -> Compiler | None:
        """The compiled topology; None while it is not there yet."""
        done = self._ready.done() and self._ready.exception() is None
        return self._ready.result().compiler if done else None

    def processor(
        self, counters: Counters, global_stores: Mapping[str, GlobalStore] | None = None
    ) -> BatchProcessor | None:
        """A thread's processor, which counts into `counters`; None while Spark is still starting.

        `global_stores`: those of global tables, by the names of the tables. Raises as `ready`.
        """
        ready = self.ready()
        if ready is None:
            return None
        return BatchProcessor(ready.compiler, ready.runners, error_policy(self._application), counters, global_stores)

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
            tag_jobs(self._session, name)

    def cancel_jobs(self, name: str) -> None:
        """End what Spark is doing now for `name`; the batch that waits for it fails."""
        if self._session is not None:
            cancel_tagged_jobs(self._session, name)

    def remove_members(self, instance_ids: Collection[str]) -> None:
        """Take threads that will not come back out of the group, so that others have their partitions at once.

        Raises:
            StreamsException: Spark, whose Kafka client does it, is not there, or the group did not answer. Others have
            the partitions when the members' sessions end.
        """
        if self._session is None:
            names = ", ".join(instance_ids)
            raise StreamsException(f"{names}: in the group until the session ends, as Spark does not run yet")
        remove_members(self._session, self._java_properties, self._application.application_id, instance_ids)

    @property
    def beyond_repair(self) -> str | None:
        """Why no thread of this client can work any more, new ones included; None: Spark runs, or may yet start."""
        if not self._ready.done():
            return None
        failure = self._ready.exception()
        if failure is not None:
            return f"Spark has not started in this process ({type(failure).__name__})"
        return "Spark is stopped" if self._session is None else trouble_with(self._session)

    def close(self) -> None:
        """Stop Spark, unless it ran already when this client started. May be called twice.

        A start that is under way can't be broken off; it is waited for, a few seconds.
        """
        with self._starting:
            self._closing.set()
        if self._started:
            wait([self._ready])
        session, self._session = self._session, None
        if session is not None and self._workers is not None:
            cancel_tagged_jobs(session, self._warming)
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
        wait_for_executor(session, cluster, self._closing)
        self._go_on()
        check_executors(session, cluster)
        threading.Thread(target=watch, args=(session, cluster, self._closing), name="cluster", daemon=True).start()

    def _start_workers(self, session: SparkSession) -> None:
        """Beside the compiling. What fails here fails again when there are records, and is told then."""
        with suppress(Exception):
            tag_jobs(session, self._warming)
            start_workers(session, os.cpu_count() or 1)

    def _run(self) -> None:
        try:
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
            self._session = open_session(self._application.application_id, spark.master, config, rows, there)
            if cluster is not None:
                self._have_executors(self._session, cluster)
            elif not rows:  # all others warm up by jobs of their own, which would have to wait for this one
                self._workers = threading.Thread(target=self._start_workers, args=(self._session,), name="workers")
                self._workers.start()
            self._go_on()
            ready = compiled(self._session, self._topology, self._properties, self.schemas)
            self._register_schemas(ready.compiler)
            for runner in ready.runners.values():
                runner.warm_up()
            self._ready.set_result(ready)
        except BaseException as error:
            self._ready.set_exception(error)
