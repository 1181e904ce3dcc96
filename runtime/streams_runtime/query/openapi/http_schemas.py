"""The documents that go over HTTP, described for the OpenAPI page. Answers are not built from these."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Document(BaseModel):
    """A JSON object; fields are named as in JSON."""

    model_config = ConfigDict(serialize_by_alias=True)


class Problem(Document):
    """A failure (RFC 9457): which exception it is, and what to do about it."""

    type: str = Field(description="urn:streamsoperator: and the class of the exception.")
    title: str = Field(description="The class of the exception: one of KIP-216's six, or another of this project.")
    status: int = Field(description="The HTTP status.")
    detail: str = Field(description="What was found and where, and what to do next.")
    category: Literal["retryable", "fatal"] = Field(description="Whether the same query may succeed here later.")
    remedy: Literal["retry", "rediscover", "do-not-retry", "fix-the-name", "fix-the-query", "go-to", "authenticate"] = (
        Field(description="go-to: ask `owner`, or, without it, the instance that /owners names.")
    )
    owner: str | None = Field(default=None, description="URL of the instance that has the partition, where known.")


class Record(Document):
    """One record of a key-value store."""

    key: Any = Field(description="The key: text, number or object; bytes in base64.")
    value: Any = Field(description="The value; null: the store has no such key.")
    keyBytes: str | None = Field(default=None, description="With keyBytes=true: what lines are ordered by.")  # noqa: N815


class Version(Document):
    """What a key of a table with a history had for a while."""

    key: Any = Field(description="The key: text, number or object; bytes in base64.")
    value: Any = Field(description="The value; null: the key had none then, or the history does not reach back so far.")
    validFrom: str | None = Field(description="Since when, RFC 3339 in UTC; null: no value.")  # noqa: N815
    validTo: str | None = Field(description="Until before when; null: no value, or the newest.")  # noqa: N815


class WindowBounds(Document):
    """From when to when, RFC 3339 in UTC."""

    start: str = Field(description="Inclusive.")
    end: str = Field(description="Of a time window exclusive, of a session the time of its last record.")


class WindowedRecord(Record):
    """One record of a window or session store."""

    window: WindowBounds = Field(description="The window or session.")


class Complete(Document):
    """What a whole answer counts."""

    records: int = Field(description="How many records came before this line.")
    more: bool = Field(default=False, description="Whether `limit` left out others.")


class LastLine(Document):
    """The last line of an answer of many lines; one that ends without it was cut off."""

    complete: Complete | None = Field(default=None, description="The answer is whole.")
    problem: Problem | None = Field(default=None, description="The answer broke off, and why.")


class Count(Document):
    """A number of records."""

    count: int = Field(description="Records in the partitions that were asked for.")


class Store(Document):
    """A store of the topology."""

    name: str = Field(description="Its name.")
    type: str = Field(description="key-value, window or session.")
    partitions: list[int] = Field(description="The partitions that are readable on this instance.")


class Stores(Document):
    """Every store of the topology."""

    stores: list[Store] = Field(description="By name.")


class Owner(Document):
    """Who has a partition."""

    partition: int = Field(description="The partition.")
    instance: str = Field(description="Name of the instance.")
    url: str = Field(description="Where it answers.")


class Owners(Document):
    """Who has the partitions of a store, as far as the group knows."""

    store: str = Field(description="Name of the store.")
    partitions: int = Field(description="How many partitions the store has over all instances.")
    keyFormat: str | None = Field(description="How keys are written; null: not known yet.")  # noqa: N815
    owners: list[Owner] = Field(description="A partition that is missing here is on no instance at the moment.")


class LastWord(Document):
    """How an instance ended."""

    state: str = Field(description="The state in which it ended.")
    class_: str | None = Field(serialization_alias="class", description="The exception's class; null: in order.")
    message: str | None = Field(description="The exception's message.")
    remedy: str | None = Field(description="What to do about it; null: the message says it.")


class Instance(Document):
    """An instance of the application."""

    instance: str = Field(description="Its name.")
    url: str | None = Field(description="Where it answers; null: nobody vouches for an address.")
    own: bool = Field(description="Whether it is the one that answers here.")
    inGroup: bool = Field(description="Whether Kafka counts it in, as far as this one knows.")  # noqa: N815
    lastWord: LastWord | None = Field(description="How it ended, where that is known.")  # noqa: N815


class Instances(Document):
    """Those that spec.replicas asks for, and those of the group."""

    instances: list[Instance] = Field(description="By name.")


MODELS: tuple[type[Document], ...] = (
    Problem,
    Record,
    Version,
    WindowedRecord,
    LastLine,
    Count,
    Stores,
    Owners,
    Instances,
)
"""All that are referred to by name."""
