"""Types of expressions without Spark, beside those that Spark's analysis finds for generated expressions."""

from __future__ import annotations

from itertools import islice

import pytest
from generated_expressions import COLUMNS, Expressions
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from streams_runtime.api.expressions.resolution import Resolved
from streams_runtime.api.flow.known_columns import Columns
from streams_runtime.api.schemas.ddl_schema import parse_schema

pytestmark = pytest.mark.integration
_SEED, _COUNT = 20261129, 240


def known() -> Columns:
    columns, problems = parse_schema(COLUMNS)
    assert columns is not None
    assert not problems
    return Columns(columns.all, by_rules=True)


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([], COLUMNS)


def in_spark(rows: DataFrame, text: str) -> str | None:
    """The type that Spark finds; None where it refuses."""
    try:
        return str(rows.selectExpr(text).schema[0].dataType.simpleString())
    except PySparkException:
        return None


def spelled(found: Resolved) -> str:
    return str(found.kind).replace(", ", ",").replace(": ", ":")


def test_what_has_a_type_here_has_it_in_spark_and_what_is_refused_here_spark_refuses(rows: DataFrame) -> None:
    columns = known()
    found = {text: columns.resolved(text) for text in islice(Expressions(_SEED), _COUNT)}
    judged = {text: each for text, each in found.items() if not any(refused.runs for refused in each.refusals)}
    typed = {text: spelled(each) for text, each in judged.items() if each.kind is not None}
    refused = [text for text, each in judged.items() if each.refusals]
    # All at once: one analysis takes hardly longer than many do each.
    schema = rows.selectExpr(*(f"{text} as c{number}" for number, text in enumerate(typed))).schema
    assert {text: str(each.dataType.simpleString()) for text, each in zip(typed, schema, strict=True)} == typed
    assert [text for text in refused if in_spark(rows, text) is not None] == []
    # Most expressions are judged, or the comparison says nothing.
    assert len(typed) > _COUNT / 8
    assert len(refused) > _COUNT / 3


@pytest.mark.parametrize("text", ["d > 'many'", "'' = i", "i + 'x'", "l % 'x'", "d102 between 'low' and 2"])
def test_a_text_beside_a_number_that_is_none_fails_in_spark_as_it_is_said_here(spark: SparkSession, text: str) -> None:
    found = known().resolved(text)
    assert [each.runs for each in found.refusals] == [True]
    frame = spark.sql("select 1.5D as d, 1 as i, 1L as l, cast(1.5 as decimal(10,2)) as d102")
    assert in_spark(frame, text) is not None
    with pytest.raises(PySparkException, match="CAST_INVALID_INPUT"):
        frame.selectExpr(text).collect()
