"""The stages of one sub-topology's batches as Spark does them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streams_runtime.batch.stage import StageOutput
from streams_runtime.pipeline.batch_input import BatchInput
from streams_runtime.pipeline.compile import Compiler
from streams_runtime.pipeline.emissions import Emissions
from streams_runtime.pipeline.formats.decode import account_of, counted
from streams_runtime.pipeline.kinds.spark_kind import Collecting
from streams_runtime.pipeline.kinds.spark_kinds import kind_of
from streams_runtime.pipeline.record_reader import RecordReader
from streams_runtime.pipeline.spark.observed import Observed
from streams_runtime.pipeline.stages.asked_query import Query
from streams_runtime.pipeline.stages.built_stage import BuiltStage
from streams_runtime.pipeline.stages.kept_stages import KeptStages
from streams_runtime.pipeline.stages.stage_frames import Frames, OutputFrame
from streams_runtime.pipeline.steps.peek_observations import seen
from streams_runtime.topology.nodes.foreign_key_nodes import ForeignKeyJoinNode
from streams_runtime.topology.nodes.plan_node import PlanNode
from streams_runtime.topology.nodes.source_and_sink_nodes import FromTopicNode
from streams_runtime.topology.nodes.stream_nodes import PeekNode
from streams_runtime.topology.plan import SubTopology
from streams_runtime.topology.table_parts import TablePart

_About = ForeignKeyJoinNode | TablePart


class Outputs(Protocol):
    """What leaves a stage that begins with one frame; `peeks` is filled, `is_whole` as StageFrames has it."""

    def __call__(self, rows: DataFrame, peeks: dict[str, Observed], is_whole: bool) -> list[OutputFrame]: ...


class SparkStages:
    """Builds stages, asks their queries, and puts together what these come to."""

    def __init__(self, compiler: Compiler, reader: RecordReader, sub: SubTopology, emissions: Emissions) -> None:
        """No stage is built yet."""
        self._compiler = compiler
        self._reader = reader
        self._sub = sub
        self._sources = [node for node in sub.nodes if isinstance(node, FromTopicNode)]
        self._parse_once = compiler.has_several_queries(sub)
        self._unread = compiler.unread_sources(sub)
        self._headers = compiler.needs_headers(sub)
        self._collecting = Collecting(compiler.known, emissions, self._headers)
        self._peeks = [node for node in sub.nodes if isinstance(node, PeekNode)]
        self._kept = KeptStages(compiler.known.spark)
        # A function of the user's that reads records may not be called more than once for each.
        self._keeps_first = not (self._parse_once and compiler.has_functions)

    def first(self, batch: BatchInput) -> StageOutput:
        """The first stage of a batch: its records up to where rows leave Spark."""
        wanted = {node.name: self._compiler.decoder(node.name).wanted(self._headers) for node in self._sources}
        if batch.records is None:
            return self._once({node.name: self._reader.read(node, batch, wanted[node.name]) for node in self._sources})
        tables = {node.name: self._reader.fetched(node, batch, wanted[node.name]) for node in self._sources}
        if self._keeps_first:
            with self._kept.over(
                None, tables, partial(self._first_stage, is_whole=True), self._compiler.known.version
            ) as stage:
                if stage is not None:
                    return self._asked(stage, StageOutput())
        return self._once({name: self._compiler.known.frame(table) for name, table in tables.items()})

    def behind(self, name: str, rows: pa.Table, outputs: Outputs, result: StageOutput) -> None:
        """A stage that begins with rows behind the node of this name, which Python has; added to `result`."""

        def built(frame: DataFrame, is_whole: bool) -> BuiltStage:
            peeks: dict[str, Observed] = {}
            return BuiltStage(self._queries(outputs(frame, peeks, is_whole)), peeks)

        def whole(frames: Frames) -> BuiltStage:
            return built(frames[name], is_whole=True)

        with self._kept.over(name, {name: rows}, whole, self._compiler.known.version) as stage:
            self._asked(built(self._compiler.known.frame(rows), is_whole=False) if stage is None else stage, result)

    def of_snapshots(
        self, part: TablePart, snapshots: pa.Table, query: Callable[..., DataFrame], *about: _About
    ) -> pa.Table:
        """What a query of the compiler's says `about` these, over what the sources of a part hold."""
        self._compiler.learn_held(part, snapshots)
        names = tuple(each.name for each in (*part.sources, *part.steps, *part.sinks, *part.streams, *part.regroups))
        key = (query.__name__, names, *(each.name for each in about if isinstance(each, ForeignKeyJoinNode)))
        return self._kept.answer(key, snapshots, partial(query, *about), self._compiler.known.version)

    def _once(self, raw: Frames) -> StageOutput:
        """The first stage over frames of which no other stage is made."""
        parsed: list[DataFrame] | None = [] if self._parse_once else None
        try:
            return self._asked(self._first_stage(raw, parsed), StageOutput())
        finally:
            for frame in parsed or ():
                frame.unpersist()

    def _first_stage(self, raw: Frames, parsed: list[DataFrame] | None = None, is_whole: bool = False) -> BuiltStage:
        """From raw records to where rows leave Spark.

        Several outlets are several queries: where it is given, `parsed` gets frames of parsed records, which Spark
        keeps until they are unpersisted, instead of parsing them for each.
        """
        accounts = {name: Observed() for name in raw}
        readable = {}
        for name, frame in raw.items():
            decoder = self._compiler.decoder(name)
            readable[name] = decoder.readable(counted(decoder.decode(frame), accounts[name]))
            if parsed is not None:
                parsed.append(readable[name].persist())
        peeks: dict[str, Observed] = {}
        outputs = self._compiler.first_stage_frames(self._sub, readable, peeks, is_whole)
        # Records that nothing asks for are accounted for by a query of their own.
        unread = [Query(readable[name].agg(F.count(F.lit(1)))) for name in self._unread]
        return BuiltStage(self._queries(outputs), peeks, unread, accounts)

    def _queries(self, outputs: Sequence[OutputFrame]) -> list[tuple[PlanNode, Query]]:
        return [(each.node, kind_of(each.node).query(each.node, each.rows, self._collecting)) for each in outputs]

    def _asked(self, stage: BuiltStage, result: StageOutput) -> StageOutput:
        """`result` with what the stage's queries come to."""
        for note in stage.notes:
            note.clear()
        for node, query in stage.outputs:
            kind_of(node).collect(node, query.answer(stage.notes), self._collecting, result)
        for query in stage.others:
            query.answer(stage.notes)
        result.peeks = [seen(node, stage.peeks[node.name]) for node in self._peeks if node.name in stage.peeks]
        result.accounts = {name: account_of(account) for name, account in stage.accounts.items()}
        return result
