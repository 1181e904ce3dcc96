"""The part of the status that is about spec.reset: what it came to, and what the operator has to remember of it."""

from __future__ import annotations

from pydantic import Field

from streams_runtime.api.status.status_model import StatusModel


class ResetOffsetsStatus(StatusModel):
    """One topic whose offsets are set, as PARTITION:OFFSET joined by blanks."""

    topic: str = Field(default="", description="The topic.")
    topic_id: str = Field(default="", description="Its id; one that is made anew under its name has another.")
    partitions: int = Field(default=0, description="Partitions whose offsets are set.")
    before: str = Field(default="", description="Where the group was: PARTITION:OFFSET joined by blanks.")
    after: str = Field(default="", description="Where it goes on, in the same form.")


class ResetStatus(StatusModel):
    """The last reset that was asked for."""

    nonce: int | None = Field(default=None, description="Its nonce.")
    state: str = Field(
        default="",
        description="Pending (waits for what the message says), Running (begun; nothing else is done before its end),"
        " Done, Refused (nothing was changed), or DryRun (nothing is changed).",
    )
    message: str = Field(
        default="", description="What it does, has done or would do; or what it waits for, or why not."
    )
    request: str = Field(default="", description="Digest of spec.reset as this is about it.")
    internal_topics: str = Field(default="", description="Delete or Keep, as spec.reset said.")
    step: str | None = Field(default=None, description="Of one that is Running: Topics, Offsets or Volumes.")
    started_at: str | None = Field(
        default=None,
        description="When it was first seen, and of one that has begun, when that was.",
        json_schema_extra={"format": "date-time"},
    )
    ended_at: str | None = Field(
        default=None, description="When it was done.", json_schema_extra={"format": "date-time"}
    )
    topics: list[str] = Field(default=[], description="Internal topics that are deleted and made anew.")
    offsets: list[ResetOffsetsStatus] = Field(
        default=[], description="Offsets that are set.", json_schema_extra={"x-kubernetes-list-map-keys": ["topic"]}
    )
    volumes: list[str] = Field(default=[], description="Volume claims that are deleted.")
