"""A processor of one's own, in Python (Kafka Streams' Processor API)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from streams_runtime.api.spec.spec_model import Model

Text = Annotated[str, StringConstraints(min_length=1)]


class ProcessorStoreSpec(Model):
    """A key-value store of a processor, which queries see too."""

    key: Text = Field(description="Type of its keys: STRING, BIGINT, INT, DOUBLE or BINARY.")
    value: Text = Field(
        description='Columns of its values as Spark DDL, such as "n BIGINT, last TIMESTAMP". In the store and its'
        " changelog they are JSON."
    )


class ProcessSpec(Model):
    """Gives each record to an object of a class in Python, one for each task, and goes on with what that forwards."""

    python: Text = Field(
        description="package.module:Class with a method process(record), and init(context) and close() if it needs"
        " them. A record comes once its turn has come, in the order of its partition.",
    )
    value: Text = Field(
        description='Columns of what is forwarded as Spark DDL, such as "user STRING, n BIGINT". Each value that is'
        " forwarded is checked against them."
    )
    key: Text | None = Field(
        default=None,
        description="Type of the keys of what is forwarded: STRING, BIGINT, INT, DOUBLE or BINARY. Steps behind that"
        " keep state get a repartition topic, as behind a keyBy. Absent: each record keeps its key (KIP-820's"
        " processValues), and punctuators forward nothing.",
    )
    stores: dict[str, ProcessorStoreSpec] = Field(
        default_factory=dict, description="Its stores, by the names by which context.state_store finds them."
    )
