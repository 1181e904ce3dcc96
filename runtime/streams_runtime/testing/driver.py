"""`TopologyTestDriver`: what org.apache.kafka.streams.TopologyTestDriver is in Java."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any

from streams_runtime.api import Reading, StreamsApplication
from streams_runtime.api.checks.spark_checks import is_cluster
from streams_runtime.api.reading.load import accepted
from streams_runtime.api.reading.mistakes import suggestion
from streams_runtime.api.reading.python_origins import retold
from streams_runtime.builder import StreamsBuilder
from streams_runtime.builder.resolve_python import read_file, read_with_python
from streams_runtime.errors import IllegalStateException, InvalidApplicationException, TopologyException
from streams_runtime.pipeline.compiled_topology import Compiled, compiled
from streams_runtime.pipeline.formats.schema_ids import Schemas
from streams_runtime.pipeline.spark.spark_session import SparkSession
from streams_runtime.processing.batch_work import Counters
from streams_runtime.processing.failures.error_policy import ErrorPolicy
from streams_runtime.query.stores.key_value_handle import ReadOnlyStore, StoreQueryParameters, open_store
from streams_runtime.query.stores.store_target import check_name
from streams_runtime.spark_runtime import error_policy, failed_policy
from streams_runtime.state.store_options import store_options
from streams_runtime.states import ClientState
from streams_runtime.testing.driver_records import START
from streams_runtime.testing.driver_stores import DriverStores
from streams_runtime.testing.driver_topics import InputTopic, OutputTopic
from streams_runtime.testing.memory_registry import LocalSchemas
from streams_runtime.testing.mock_producer import Sent
from streams_runtime.testing.record_formats import RAW, decoders_of, encoder
from streams_runtime.testing.spark_for_tests import spark_session
from streams_runtime.testing.topology_runner import TopologyRunner
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.nodes.source_and_sink_nodes import SinkNode, SourceNode, TableSourceNode
from streams_runtime.topology.own_topics import OwnTopics
from streams_runtime.topology.partition_counts import partition_counts
from streams_runtime.topology.plan import Topology
from streams_runtime.user_code import search_in


class TopologyTestDriver:
    """Runs the topology of one application without Kafka (TopologyTestDriver, KIP-247).

    Pipe records, then read outputs and stores. What runs is the runtime's own code, in the calling thread: Spark's
    plans, the aggregates, RocksDB in a folder that is gone at the end, the partitioner. Brokers, groups, threads and
    restorations are not there, so offsetReset has no meaning: each piped record is processed. Windows go by the times
    of records, and processors of your own by the clock that `advance_wall_clock` moves too. Use it in `with`, in one
    thread.
    """

    def __init__(
        self,
        application: StreamsApplication | Mapping[str, Any] | Path | str | StreamsBuilder,
        partitions: int | Mapping[str, int] = 1,
    ) -> None:
        """`application` is a path, a document, YAML text (of more than one line), or a StreamsBuilder. Modules in
        Python that a file names are looked for beside it too.

        `partitions` is the number of every source's and sink's topic, or those of some by topic, or by the pattern
        that topics fit, others having one.
        Repartition topics have as many as with brokers. Spark is the session that this process has, or one that is
        started (5 to 10 s) and stopped with the driver; see `spark_session`.

        Raises:
            InvalidApplicationException: lists every mistake, those that Spark finds too.
            ConfigException: the file can't be read.
            TopologyException: numbers of partitions that do not fit together, or of an unknown topic.
            EnvironmentException: Java or jars are missing; the message says what to install.
        """
        self.application, origins = _application(application)
        self.topology: Topology = build_topology(self.application)
        production = ErrorPolicy.of(self.application.spec.processing.on_production_error)
        policies = error_policy(self.application), failed_policy(self.application)
        self._dead_letters = tuple(
            dict.fromkeys(each.topic for each in (*policies, production) if each.topic is not None)
        )
        self._counts = _counts(self.topology, (*self.topology.sink_topics, *self._dead_letters), partitions)
        others = partitions if isinstance(partitions, int) else 1
        spark = self.application.spec.spark
        config = {name: str(value) for name, value in spark.config.items()}
        self._in_batch = False
        self.schemas = LocalSchemas()
        with ExitStack() as undo:
            # A test needs no cluster, whatever the application runs on.
            master = "local[*]" if is_cluster(spark.master) else spark.master
            session = undo.enter_context(spark_session(self.topology.application_id, master, config))
            folder = undo.enter_context(TemporaryDirectory(prefix="topology-test-driver-"))
            self._compiled = _analysed(session, self.topology, origins, self.schemas)
            self._compiled.compiler.register_schemas()
            options = store_options(self.application.spec.state.rocksdb)
            self._machine = TopologyRunner(
                self.topology, self._compiled, policies, self._counts, Path(folder), options, others, production
            )
            undo.callback(self._machine.close)
            self._stores = DriverStores(self._machine, self._compiled.compiler)
            self._closing = undo.pop_all()

    def input_topic(
        self,
        name: str,
        start: datetime = START,
        auto_advance: timedelta = timedelta(0),
        value_schema: str | None = None,
    ) -> InputTopic:
        """Return a handle that pipes records into a source's topic (createInputTopic, KIP-470).

        `start` is the time of its records, and each of them moves it on by `auto_advance`. `value_schema` is the schema
        that values of a format in a registry are written with; None: the source's own.

        Raises:
            TopologyException: no source reads this topic; the message names the nearest one.
            IllegalStateException: the driver is closed; make another one.
        """
        self._check_open()
        source = self._source_of(name)
        if source is None:
            sources = [node.topic for node in self._sources]
            hint = "it is written; use output_topic" if name in self._outputs else suggestion(name, sources)
            raise TopologyException(f"no source reads the topic {name!r}; {hint}")
        value = source.value if value_schema is None else replace(source.value, schema=value_schema)
        encoders = encoder(name, "key", source.key, self.schemas), encoder(name, "value", value, self.schemas)
        count = self._counts.get(name, self._counts[source.topic])
        self._machine.logs.know(name, count)
        return InputTopic(name, encoders, count, self._pipe, start, auto_advance)

    def output_topic(self, name: str) -> OutputTopic:
        """Return a handle that reads a topic of a sink, or that of the dead letters (createOutputTopic, KIP-470). A
        sink with `topicBy` writes any topic that its expression gives, unless it lists its `topics`.

        All handles of a topic share their position: each record is read once.

        Raises:
            TopologyException: no sink writes this topic; the message names the nearest one.
            ConfigException: sinks write records of different formats to it; give each a topic of its own.
            IllegalStateException: the driver is closed; make another one.
        """
        self._check_open()
        any_topic = any(isinstance(each, SinkNode) and each.writes_any for each in self.topology.nodes)
        if name not in self._outputs and not (any_topic and OwnTopics.of(self.topology).what_is(name) is None):
            read = self._source_of(name) is not None or name in self.topology.global_topics
            hint = "it is read; use input_topic" if read else suggestion(name, self._outputs)
            raise TopologyException(f"no sink writes the topic {name!r}; {hint}")
        known = name in self.topology.sink_topics or name not in self._dead_letters
        codec = self._stores.codec
        decoders = decoders_of(self.topology, self._compiled.compiler, codec, name, self.schemas) if known else RAW
        return OutputTopic(name, decoders, self._machine.logs.unread(name))

    def store(self, name: str) -> ReadOnlyStore:
        """Return a store's read-only handle (getKeyValueStore, getWindowStore, getSessionStore).

        It is of the store's own kind, the handle that StreamsClient.store gives, and it reads all partitions.

        Raises:
            UnknownStateStoreException: there is no such store; the message lists those that exist.
            IllegalStateException: the driver is closed; make another one.
        """
        self._check_open()
        check_name(self._stores, name)
        kind = self.topology.store(name)[1].kind
        return open_store(self._stores, StoreQueryParameters(name, kind))

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Collect all that is piped inside the block, into whichever topics, and process it as one batch at its end.

        Batches decide how often an aggregate is written, never what it is in the end: with this a test can say so. An
        exception inside the block drops what was piped in it.

        Raises:
            IllegalStateException: a batch is open already, or the driver is closed.
            StreamsException: at the end of the block, as InputTopic.pipe raises it.
        """
        self._check_open()
        if self._in_batch:
            raise IllegalStateException("a batch is already open; its block has to end before the next one begins")
        self._in_batch = True
        try:
            yield
        except BaseException:
            self._machine.forget()
            raise
        finally:
            self._in_batch = False
        self._machine.work()

    def advance_wall_clock(self, by: timedelta) -> None:
        """Move the clock on, call each schedule by wall-clock time that is due once, and process what it forwards
        (advanceWallClockTime). The clock begins at START, and nothing else moves it.

        Raises:
            ValueError: `by` is less than a millisecond.
            IllegalStateException: a batch is open, or the driver is closed.
            UserCodeException: a punctuator failed.
        """
        self._check_open()
        if self._in_batch:
            raise IllegalStateException("a batch is open; its block has to end before the clock goes on")
        milliseconds = by // timedelta(milliseconds=1)
        if milliseconds < 1:
            raise ValueError(f"the clock can't go on by {by}; give at least a millisecond")
        self._machine.advance(milliseconds)

    @property
    def counters(self) -> Counters:
        """What was done so far, as `/state` shows it: records processed, dropped, too late, unreadable, …"""
        return self._machine.counters

    def close(self) -> None:
        """Close the stores, delete their folder, and stop Spark if the driver started it. May be called twice.

        Output topics that the test still has give what was written; handles of stores raise
        StateStoreNotAvailableException.
        """
        self._stores.state = ClientState.NOT_RUNNING
        self._closing.close()

    def __enter__(self) -> TopologyTestDriver:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def _outputs(self) -> tuple[str, ...]:
        return (*self.topology.sink_topics, *self._dead_letters)

    @property
    def _sources(self) -> Collection[SourceNode | TableSourceNode]:
        found = (node for node in self.topology.nodes if isinstance(node, SourceNode | TableSourceNode))
        return {node.topic: node for node in found}.values()

    def _source_of(self, topic: str) -> SourceNode | TableSourceNode | None:
        return next((node for node in self._sources if node.reads(topic)), None)

    def _pipe(self, records: Sequence[Sent]) -> None:
        self._check_open()
        for sent in records:
            self._machine.logs.append(sent, sent.key)
        if not self._in_batch:
            self._machine.work()

    def _check_open(self) -> None:
        if self._stores.state is not ClientState.RUNNING:
            raise IllegalStateException("the driver is closed; make another one, which begins with empty stores")


def _application(
    given: StreamsApplication | Mapping[str, Any] | Path | str | StreamsBuilder,
) -> tuple[StreamsApplication, Mapping[str, str]]:
    """The application, and the calls that parts of its topology come from (see Reading.origins)."""
    if isinstance(given, StreamsApplication):
        return given, {}
    reading = _reading(given)
    return accepted(reading), reading.origins


def _reading(given: Mapping[str, Any] | Path | str | StreamsBuilder) -> Reading:
    if isinstance(given, StreamsBuilder):
        return given.reading()
    if isinstance(given, Mapping) or (isinstance(given, str) and "\n" in given):
        return read_with_python(given)
    search_in(Path(given).parent)
    return read_file(given)


def _analysed(session: SparkSession, topology: Topology, origins: Mapping[str, str], schemas: Schemas) -> Compiled:
    try:
        return compiled(session, topology, {}, schemas)
    except InvalidApplicationException as error:
        raise InvalidApplicationException(retold(error.mistakes, origins)) from error


def _counts(topology: Topology, outputs: Sequence[str], partitions: int | Mapping[str, int]) -> Mapping[str, int]:
    """The number of partitions of each topic that the application or the test reads."""
    patterns = {source.topic: source for source in topology.pattern_sources}
    own = (*topology.source_topics, *patterns, *topology.global_topics, *outputs)
    some = dict.fromkeys(own, partitions) if isinstance(partitions, int) else partitions
    any_topic = any(isinstance(each, SinkNode) and each.writes_any for each in topology.nodes)
    for topic, count in some.items():
        if topic not in own and not any_topic and not any(each.reads(topic) for each in patterns.values()):
            raise TopologyException(
                f"partitions: no source and no sink has the topic {topic!r}; {suggestion(topic, own)}"
            )
        if count < 1:
            raise TopologyException(f"partitions: found {count} for {topic}; a topic has at least 1")
    fitting = {
        pattern: max((count for topic, count in some.items() if each.reads(topic)), default=1)
        for pattern, each in patterns.items()
    }
    counts = {**some, **{topic: some.get(topic, fitting.get(topic, 1)) for topic in own}}
    return {**counts, **partition_counts(topology, counts)}
