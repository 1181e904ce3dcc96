"""Steps that only streams have: flatMap, split, peek and dedupe, as far as they have fields."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from streams_runtime.api.spec.spec_model import Model
from streams_runtime.api.spec.spec_values import Duration


class FlatMapSpec(Model):
    """Makes a record of each element of an array."""

    explode: str = Field(
        description="Spark SQL expression for an ARRAY. Each element becomes a record, in the array's order; a record"
        " whose array is null or empty gives none, and neither does a record without a value."
    )
    as_: str = Field(
        alias="as",
        description="Name of the column that holds the element; the other columns stay. A struct's fields are"
        " name.field.",
    )


class BranchSpec(Model):
    """One branch of a split."""

    name: str = Field(description="Name of the branch; others take its records from STEP.BRANCH.")
    where: str = Field(
        description="Spark SQL condition. A record goes into the first branch for which it is true; null is not true."
    )


class PeekSpec(Model):
    """Shows records that pass, and changes none of them. A batch that is read again is shown again."""

    log: str | None = Field(
        default=None, description="Spark SQL expression whose text is logged for records that pass. null logs nothing."
    )
    level: Literal["debug", "info"] = Field(default="info", description="With log: level of the lines.")
    at_most: int = Field(
        default=10,
        ge=1,
        le=1000,
        description="With log: lines a second of each thread; what passes beyond them is only counted. 10 can be read"
        " by people.",
    )
    metric: str | None = Field(
        default=None,
        description="Count the records that pass, in kafka_streams_peek_count and kafka_streams_peek_sum with this name"
        " as their label metric.",
    )
    value: str | None = Field(
        default=None, description="With metric: numeric Spark SQL expression that is added up. Absent: 1 a record."
    )


class DedupeSpec(Model):
    """Passes on the first of the records with one id, and drops those that lie close to it in time."""

    within: Duration = Field(
        description="How far a record may lie from the first one with its id, before or behind it in time, to be"
        " dropped as a duplicate. A duplicate does not make this time longer."
    )
    by: str | None = Field(
        default=None,
        description="Spark SQL expression for the id, of a type that keys may have. Records with one id have to come in"
        " one partition. Records whose id is null are passed on, all of them. Absent: the record's key.",
    )


class RepartitionSpec(Model):
    """Sends a stream's records through a topic of the application's own, whether or not anything stateful follows."""

    partitions: int | None = Field(
        default=None,
        ge=1,
        le=10_000,
        description="How many partitions the topic has, and what follows it tasks. Absent: as many as the largest topic"
        " that its records come from.",
    )
    partition_by: str | None = Field(
        default=None,
        description="Spark SQL expression over the record's columns that gives the partition that it goes to, an INT or"
        " a BIGINT from 0 (a StreamPartitioner). Null: the one that the key gives. Absent: so for every record.",
    )
