"""Spark's side of steps that are one frame of another: nothing is kept, and nothing leaves Spark at them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType

from streams_runtime.batch.columns import BRANCH, ELEMENT, NULL_VALUE, RECORD, WINDOW_END, WINDOW_START
from streams_runtime.batch.stage import StageInput, StageOutput
from streams_runtime.errors import InvalidApplicationException
from streams_runtime.pipeline.formats.header_columns import header, own_headers, with_more
from streams_runtime.pipeline.formats.spark_formats import format_of
from streams_runtime.pipeline.kinds.spark_kind import Collecting, S, SparkKind
from streams_runtime.pipeline.known import Known
from streams_runtime.pipeline.spark.refused_expressions import all_refused, expect_type, refusing
from streams_runtime.pipeline.stages.asked_query import Answer
from streams_runtime.pipeline.stages.stage_frames import Frames, StageFrames
from streams_runtime.pipeline.steps.merge_frames import in_order, merged, numbered
from streams_runtime.pipeline.steps.transformed_rows import check_select, transformed
from streams_runtime.pipeline.topology_traits import Traits
from streams_runtime.pipeline.windowing.record_ordinals import no_element
from streams_runtime.topology.nodes.process_node import OutputNode
from streams_runtime.topology.nodes.step_nodes import KeyByNode, MergeNode, TransformNode
from streams_runtime.topology.nodes.stream_nodes import BranchNode, FlatMapNode, HeadersNode, SplitNode
from streams_runtime.topology.nodes.table_nodes import ToStreamNode

Checks = Iterator[tuple[str, Callable[[], object]]]
"""The field of each expression, and what analyses it by itself."""

_POSITION = "_position"
_ARRAY = ("which has no elements", "give an ARRAY; of a MAP, map_entries(…)")


class PassingKind(SparkKind[S]):
    """A step of one input: `passed` is all that there is to it."""

    @abstractmethod
    def passed(self, node: S, rows: DataFrame) -> DataFrame:
        """The node's rows over those of its input."""

    def checks(self, node: S, rows: DataFrame) -> Checks:
        """What is analysed by itself, so that a mistake is reported at its own field."""
        return iter(())

    def analysed(self, node: S, known: Known) -> DataFrame:
        """Each expression by itself, then all."""
        rows = known.outputs[node.input]
        if mistakes := all_refused(self.checks(node, rows)):
            raise InvalidApplicationException(mistakes)
        return self.passed(node, rows)

    def take(self, node: S, given: Frames, stage: StageFrames) -> None:
        """In the stage that its input is in."""
        stage.given[node.name] = self.passed(node, given[node.input])


class TransformKind(SparkKind[TransformNode]):
    """`where` and `select`, of a stream or a table."""

    def analysed(self, node: TransformNode, known: Known) -> DataFrame:
        """Each column by itself, then all."""
        rows = known.outputs[node.input]
        check_select(node, rows)
        return transformed(node, rows, node.input in known.traits.tables)

    def take(self, node: TransformNode, given: Frames, stage: StageFrames) -> None:
        """In the stage that its input is in."""
        stage.given[node.name] = transformed(node, given[node.input], node.input in stage.traits.tables)


class KeyByKind(PassingKind[KeyByNode]):
    """`keyBy`."""

    def passed(self, node: KeyByNode, rows: DataFrame) -> DataFrame:
        """The rows with another key; what was a window is none under it."""
        with refusing(f"{node.path}.keyBy"):
            return rows.withColumn("_key", F.expr(node.key)).drop(WINDOW_START, WINDOW_END)

    def analysed(self, node: KeyByNode, known: Known) -> DataFrame:
        """The rows; refused where keys have no format for the key's type."""
        rows = self.passed(node, known.outputs[node.input])
        with refusing(f"{node.path}.keyBy"):
            format_of(rows.schema["_key"].dataType)
        return rows


class ToStreamKind(PassingKind[ToStreamNode]):
    """`toStream`."""

    def passed(self, node: ToStreamNode, rows: DataFrame) -> DataFrame:
        """The table's rows."""
        return rows.drop(RECORD)


class FlatMapKind(PassingKind[FlatMapNode]):
    """`flatMap`."""

    def passed(self, node: FlatMapNode, rows: DataFrame) -> DataFrame:
        """A row of each element, in the order of the rows and of their arrays; metadata is that of the row."""
        # What has no value has no elements, whatever the expression makes of nulls.
        elements = F.posexplode(F.when(~F.col(NULL_VALUE), F.expr(node.explode)))
        exploded = rows.select("*", elements.alias(_POSITION, node.column))
        outer = F.col(ELEMENT) if ELEMENT in rows.columns else no_element()
        return exploded.withColumn(ELEMENT, F.concat(outer, F.array(_POSITION))).drop(_POSITION)

    def checks(self, node: FlatMapNode, rows: DataFrame) -> Checks:
        """The array."""
        path = f"{node.path}.flatMap.explode"
        yield path, partial(expect_type, ArrayType, rows, node.explode, path, _ARRAY)


class SplitKind(PassingKind[SplitNode]):
    """`split`, whose rows are those of its branches."""

    def passed(self, node: SplitNode, rows: DataFrame) -> DataFrame:
        """The rows, each with the number of its branch."""
        number: Column = F.lit(len(node.conditions))
        for index, condition in reversed(list(enumerate(node.conditions))):
            number = F.when(F.expr(condition), index).otherwise(number)
        return rows.withColumn(BRANCH, number)

    def checks(self, node: SplitNode, rows: DataFrame) -> Checks:
        """The conditions."""
        for index, condition in enumerate(node.conditions):
            yield f"{node.path}.split[{index}].where", partial(rows.where, F.expr(condition))


class BranchKind(PassingKind[BranchNode | OutputNode]):
    """One branch of a split, whose condition has been checked as the split's, or one output of a process step."""

    def passed(self, node: BranchNode | OutputNode, rows: DataFrame) -> DataFrame:
        """The rows that go to it."""
        return rows.where(F.coalesce(F.col(BRANCH), F.lit(node.number)) == node.number).drop(BRANCH)


class HeadersKind(PassingKind[HeadersNode]):
    """`headers`."""

    def passed(self, node: HeadersNode, rows: DataFrame) -> DataFrame:
        """The rows with the node's headers behind those of other names; one whose expression is null is left out."""
        names = [name for name, _ in node.headers]
        kept = F.filter(own_headers(), lambda each: ~each["key"].isin(names))
        new = [header(name, F.expr(text)) for name, text in node.headers]
        return rows.withColumn("_headers", with_more(kept, new))

    def checks(self, node: HeadersNode, rows: DataFrame) -> Checks:
        """The headers."""
        for name, text in node.headers:
            yield f"{node.path}.headers.{name}", partial(rows.select, header(name, F.expr(text)))


class MergeKind(SparkKind[MergeNode]):
    """In one stage a frame of others; where its inputs come in several stages, their rows meet behind Spark."""

    FORWARDS = True

    def analysed(self, node: MergeNode, known: Known) -> DataFrame:
        """The columns that all inputs have."""
        return _merged(node, known.outputs, known.traits, is_whole=False)

    def take(self, node: MergeNode, given: Frames, stage: StageFrames) -> None:
        """All inputs are there."""
        stage.given[node.name] = _merged(node, given, stage.traits, stage.is_whole)

    def take_some(self, node: MergeNode, given: Frames, stage: StageFrames) -> None:
        """Each input as it comes."""
        for name in node.merged:
            if name in given:
                stage.leave(node, given[name].drop(RECORD))

    def collect(self, node: MergeNode, answer: Answer, collecting: Collecting, result: StageOutput) -> None:
        """The rows of one of the inputs."""
        result.inputs.append(StageInput(node, answer.rows))


def _merged(node: MergeNode, given: Frames, traits: Traits, is_whole: bool) -> DataFrame:
    if node.name in traits.reunions:
        branches = numbered({name: given[name] for name in traits.reunions[node.name]})
        return in_order(merged(node, [branches[name] for name in node.merged], is_whole), is_whole)
    return merged(node, [given[name] for name in node.merged], is_whole)
