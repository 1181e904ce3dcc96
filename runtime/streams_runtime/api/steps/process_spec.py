"""A processor of one's own, in Python (Kafka Streams' Processor API)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from streams_runtime.api.spec.spec_model import Model
from streams_runtime.api.spec.spec_values import Duration

Text = Annotated[str, StringConstraints(min_length=1)]


class ProcessorWindowSpec(Model):
    """How a window store of a processor keeps its windows."""

    size: Duration = Field(description="Length of a window, which queries show: it ends so long after its start.")
    retention: Duration = Field(
        description="How long a window is kept behind the latest start that was put; at least the size."
    )


class ProcessorSessionSpec(Model):
    """How a session store of a processor keeps its sessions."""

    retention: Duration = Field(description="How long a session is kept behind the latest end that was put.")


class ProcessorStoreSpec(Model):
    """A key-value store of a processor, with `window` a window store, with `session` a session store; queries see all
    of them.
    """

    key: Text = Field(description="Type of its keys: STRING, BIGINT, INT, DOUBLE or BINARY.")
    value: Text = Field(
        description='Columns of its values as Spark DDL, such as "n BIGINT, last TIMESTAMP". In the store and its'
        " changelog they are JSON."
    )
    window: ProcessorWindowSpec | None = Field(
        default=None,
        description="Makes it a window store: values by key and start of a window, such as {size: 1m, retention: 1h}.",
    )
    session: ProcessorSessionSpec | None = Field(
        default=None,
        description="Makes it a session store: values by key, start and end of a session, such as {retention: 1h}.",
    )


class ProcessSpec(Model):
    """Gives each record to an object of a class in Python, one for each task, and goes on with what that forwards."""

    python: Text = Field(
        description="package.module:Class with a method process(record), or process_batch(records) for many in columns,"
        " and init(context) and close() if it needs them. Records come in the order of their partition.",
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
    outputs: list[Text] | None = Field(
        default=None,
        min_length=1,
        description="Names of its outputs, for forward(…, to=NAME): others take STEP.NAME. Without to a record goes to"
        " all of them, in this order.",
    )
    stores: dict[str, ProcessorStoreSpec] = Field(
        default_factory=dict, description="Its stores, by the names by which context.state_store finds them."
    )
