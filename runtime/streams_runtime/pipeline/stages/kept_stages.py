"""Stages of small batches are built once, and asked again over the rows of each."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from streams_runtime.pipeline.spark.frames import frame_of
from streams_runtime.pipeline.spark.query_failures import is_of_data, is_spark_failure
from streams_runtime.pipeline.stages.asked_query import Query
from streams_runtime.pipeline.stages.built_stage import BuiltStage
from streams_runtime.pipeline.stages.refilled_frame import RefilledFrame, is_refillable
from streams_runtime.pipeline.stages.stage_frames import Frames

# Beyond these a query's work counts for more than its planning, and wants all cores.
_MOST_ROWS = 10_000
_MOST_BYTES = 4 << 20
_MOST_SHAPES = 100
_ROWS = "rows"

Build = Callable[[Frames], BuiltStage]
_Key = tuple[Hashable, ...]


@dataclass(frozen=True, slots=True)
class _Kept:
    frames: Mapping[str, RefilledFrame]
    stage: BuiltStage


class KeptStages:
    """Stages by their names. Any number of threads may ask: each has a stage of its own for as long as it does."""

    def __init__(self, spark: SparkSession) -> None:
        """None is built yet."""
        self._spark = spark
        self._free: dict[_Key, list[_Kept] | None] = {}
        """Those that nobody asks now; None: such a stage can't be asked twice."""

    @contextmanager
    def over(
        self, name: Hashable, tables: Mapping[str, pa.Table], build: Build, version: int
    ) -> Iterator[BuiltStage | None]:
        """The stage of this name over these rows, to be asked inside the block; `build` makes it the first time.

        `version` grows with what else it is built of. None: the rows are many, or its queries can't be asked twice;
        then the caller builds one of its own.
        """
        if not _are_few(tables):
            yield None
            return
        if len(self._free) > _MOST_SHAPES:
            self._free = {}
        key = (version, name, *(table.schema for table in tables.values()))
        free = self._free.setdefault(key, [])
        kept = None if free is None else self._taken(free, tables, build)
        if free is None or kept is None:
            self._free[key] = None
            yield None
            return
        for each, table in tables.items():
            kept.frames[each].fill(table)
        try:
            yield kept.stage
        except Exception as error:
            # Whatever else it was, Spark may remember with the plan that it failed.
            if is_spark_failure(error) and is_of_data(str(error)):
                self._put_back(kept, free)
            raise
        self._put_back(kept, free)

    def answer(
        self, name: Hashable, rows: pa.Table, query: Callable[[DataFrame], DataFrame], version: int = 0
    ) -> pa.Table:
        """The rows of one query over these; `name` and `version` as for `over`."""

        def built(frames: Frames) -> BuiltStage:
            return BuiltStage((), others=(Query(query(frames[_ROWS])),))

        with self.over(name, {_ROWS: rows}, built, version) as stage:
            asked = built({_ROWS: frame_of(self._spark, rows)}) if stage is None else stage
            return asked.others[0].answer().rows

    @staticmethod
    def _put_back(kept: _Kept, free: list[_Kept]) -> None:
        for frame in kept.frames.values():
            frame.let_go()
        free.append(kept)

    def _taken(self, free: list[_Kept], tables: Mapping[str, pa.Table], build: Build) -> _Kept | None:
        """A stage that nobody else asks; None: there can be none."""
        try:
            return free.pop()
        except IndexError:
            pass
        if not all(is_refillable(table.schema) for table in tables.values()):
            return None
        frames = {name: RefilledFrame(self._spark, table.schema) for name, table in tables.items()}
        stage = build({name: each.frame for name, each in frames.items()})
        may_repeat = all(_may_repeat(self._spark, query) for query in stage.queries)
        return _Kept(frames, stage) if may_repeat else None


def _are_few(tables: Mapping[str, pa.Table]) -> bool:
    rows = sum(int(table.num_rows) for table in tables.values())
    return rows <= _MOST_ROWS and sum(int(table.nbytes) for table in tables.values()) <= _MOST_BYTES


def _may_repeat(spark: SparkSession, query: Query) -> bool:
    """Whether a plan that runs again gives what a new one would: nothing in it keeps rows that it has once made, and
    neither the clock nor chance is asked when it is made.
    """
    jvm: Any = spark._jvm
    pattern = jvm.org.apache.spark.sql.catalyst.trees.TreePattern
    execution = query.frame._jdf.queryExecution()
    analysed, plan = execution.analyzed(), execution.executedPlan()
    asked_at_once = (pattern.CURRENT_LIKE(), pattern.EXPRESSION_WITH_RANDOM_SEED())
    keep_rows = (pattern.EXCHANGE(), pattern.PLAN_EXPRESSION())
    return not any(
        where.containsPattern(each) for where, of in ((analysed, asked_at_once), (plan, keep_rows)) for each in of
    )
