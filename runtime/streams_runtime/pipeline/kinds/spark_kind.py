"""The contract of a kind's Spark side: its analysis over no records, its part of a stage, and what its rows become.

A kind computes nothing by itself: it says which frame comes of which, what is asked of the last of them, and what
becomes of the answer. What its rows meet in stores is the matter of its other side (processors.contract).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame

from streams_runtime.batch.stage import StageOutput
from streams_runtime.pipeline.known import Known
from streams_runtime.pipeline.stages.asked_query import Answer, Query
from streams_runtime.pipeline.stages.stage_frames import Frames, StageFrames
from streams_runtime.topology.nodes.plan_node import PlanNode, StepNode

if TYPE_CHECKING:
    from streams_runtime.pipeline.emissions import Emissions

N = TypeVar("N", bound=PlanNode)
S = TypeVar("S", bound=StepNode)


@dataclass(frozen=True, slots=True)
class Collecting:
    """What a kind needs beside rows to ask for them and to make something of them.

    `headers`: whether something of the sub-topology wants records' headers.
    """

    known: Known
    emissions: Emissions
    headers: bool


class SparkKind(ABC, Generic[N]):
    """One instance serves all nodes of a kind; what a kind does not override does not concern it."""

    KEEPS_ROWS: ClassVar[bool] = False
    """Whether its rows leave Spark for its store also where its table is worked out change by change."""

    FORWARDS: ClassVar[bool] = False
    """Whether rows that have left Spark at it go on with their headers: to a topic, or to a further stage."""

    @abstractmethod
    def analysed(self, node: N, known: Known) -> DataFrame:
        """The rows that the node gives, over no records; what else is known of it goes to `known`.

        Raises:
            InvalidApplicationException: what Spark's analysis refuses of the node, all of it, each with its field.
        """

    def begin(self, node: N, stage: StageFrames) -> None:
        """The stage begins with the node's own rows, `stage.given[node.name]`."""

    def take(self, node: N, given: Frames, stage: StageFrames) -> None:
        """All of the node's streams have rows in the stage, which are `given`."""

    def take_some(self, node: N, given: Frames, stage: StageFrames) -> None:
        """Some of them have: of a node that takes its records in several stages."""

    def learn(self, node: N, rows: pa.Table, known: Known) -> None:
        """Have at hand what `behind` needs to know of rows that the store side passes on."""

    def behind(self, node: N, rows: DataFrame, known: Known) -> DataFrame:
        """The rows that the stage behind the node begins with, of those that its store side passes on."""
        return rows

    def query(self, node: N, rows: DataFrame, collecting: Collecting) -> Query:
        """What is asked of the rows that leave Spark at the node."""
        return Query(rows)

    def collect(self, node: N, answer: Answer, collecting: Collecting, result: StageOutput) -> None:
        """Put into `result` what the node makes of the answer."""
        raise TypeError(f"rows do not leave Spark at a {type(node).__name__}")


class LeavingKind(SparkKind[S]):
    """A kind of one input, whose rows leave Spark as they reach it."""

    def take(self, node: S, given: Frames, stage: StageFrames) -> None:
        """Its rows are those of its input."""
        stage.leave(node, given[node.input])
