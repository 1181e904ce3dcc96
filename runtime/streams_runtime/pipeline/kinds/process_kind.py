"""Spark's side of processors of one's own: the records that reach them, and the columns of what they forward."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from streams_runtime.batch.columns import BRANCH, ELEMENT, HIDDEN, ORDER_TIME, RECORD
from streams_runtime.batch.stage import StageInput, StageOutput
from streams_runtime.errors import InvalidApplicationException
from streams_runtime.pipeline.kinds.spark_kind import Collecting, LeavingKind
from streams_runtime.pipeline.known import Known
from streams_runtime.pipeline.spark.refused_expressions import refusing
from streams_runtime.pipeline.stages.asked_query import Answer, Query
from streams_runtime.pipeline.windowing.record_ordinals import no_element
from streams_runtime.state.processor_class import processor_class_mistakes
from streams_runtime.topology.nodes.process_node import ProcessNode


class ProcessKind(LeavingKind[ProcessNode]):
    """`process`."""

    FORWARDS = True

    def analysed(self, node: ProcessNode, known: Known) -> DataFrame:
        """The metadata of its records, and the columns that are declared; refused where the class is not there."""
        if mistakes := list(processor_class_mistakes(node)):
            raise InvalidApplicationException(mistakes)
        rows = known.outputs[node.input].drop(RECORD)
        kept = [F.col(name) for name in rows.columns if name in HIDDEN and name != ELEMENT]
        with refusing(f"{node.path}.process.value"):
            columns = StructType.fromDDL(node.value)
            assert isinstance(columns, StructType)
            made = rows.select(*kept, *(F.lit(None).cast(each.dataType).alias(each.name) for each in columns))
        with refusing(f"{node.path}.process.key"):
            found = made if node.key is None else made.withColumn("_key", F.lit(None).cast(node.key))
        ordered = found if ORDER_TIME in found.columns else found.withColumn(ORDER_TIME, F.col("_timestamp"))
        found = ordered.withColumn(ELEMENT, no_element())
        return found.withColumn(BRANCH, F.lit(None).cast("int")) if node.outputs else found

    def query(self, node: ProcessNode, rows: DataFrame, collecting: Collecting) -> Query:
        """The records."""
        return Query(rows.drop(RECORD))

    def collect(self, node: ProcessNode, answer: Answer, collecting: Collecting, result: StageOutput) -> None:
        """Records that go on to the processor."""
        result.inputs.append(StageInput(node, answer.rows))
