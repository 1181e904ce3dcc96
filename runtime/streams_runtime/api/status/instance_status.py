"""One instance of the application, in its status."""

from __future__ import annotations

from pydantic import Field

from streams_runtime.api.status.status_model import StatusModel


class ErrorStatus(StatusModel):
    """Why a client is in PENDING_ERROR or ERROR."""

    exception: str = Field(default="", alias="class", description="Class of the exception.")
    message: str = Field(default="", description="Its text.")


class CrashStatus(StatusModel):
    """The last crash of an instance."""

    uid: str = Field(default="", description="Of the pod.")
    at: str = Field(default="", description="When the pod ended.")
    reason: str = Field(default="", description="In Kubernetes' words.")


class InstanceStatus(StatusModel):
    """One instance."""

    name: str = Field(default="", description="Its pod.")
    state: str = Field(default="", description="Its client's state.")
    ready: bool = Field(default=False, description="Whether its pod is ready and answers.")
    spec: str = Field(default="", description="Digest of what its pod was made of.")
    restart_nonce: int = Field(default=0, description="spec.restartNonce when its pod was made.")
    restarts: int = Field(default=0, description="Crashes in a row.")
    records_left: int | None = Field(default=None, description="Records that it has to restore.")
    tasks: list[str] | None = Field(default=None, description="Its tasks, subtopology_partition.")
    lag: int | None = Field(default=None, description="Records that its tasks have not processed yet.")
    reason: str | None = Field(default=None, description="Why its pod does not start, in Kubernetes' words.")
    progressed_at: str | None = Field(
        default=None, description="On its way to RUNNING and restored: when it last got nearer."
    )
    least_records_left: int | None = Field(
        default=None, description="On that way: the fewest records that were left to restore."
    )
    shutdown_requested: bool | None = Field(
        default=None, description="Whether it asks all other instances to end too (SHUTDOWN_APPLICATION)."
    )
    error: ErrorStatus | None = Field(default=None, description="Why it is in PENDING_ERROR or ERROR.")
    last_crash: CrashStatus | None = Field(default=None, description="The last of them.")
    backoff_until: str | None = Field(default=None, description="Not made again before.")
