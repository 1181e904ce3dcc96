"""spec.state.snapshots: copies of stores in a bucket, from which an instance without stores starts."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from streams_runtime.api.spec.spec_model import Model
from streams_runtime.api.spec.spec_values import Duration, ObjectName, between, format_duration, refusal

_INTERVAL = timedelta(minutes=5)
_SHORTEST, _LONGEST = timedelta(seconds=1), timedelta(days=1)

_BUCKET = "[A-Za-z0-9][-A-Za-z0-9._]{1,220}[A-Za-z0-9]"
_PART = "/[.]*[-A-Za-z0-9_=+~][-A-Za-z0-9._=+~]*"  # never . or ..
BUCKET_URL_PATTERN = f"^((s3|gs|az)://{_BUCKET}({_PART})*|file://({_PART})+)/?$"
_BUCKET_URL = re.compile(BUCKET_URL_PATTERN)
LONGEST_URL = 512
"""Characters; the names of objects begin with it, and have at most 1,024 in S3."""
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(?=://)")
_SCHEMES = ("s3", "gs", "az", "file")
_FORMS = "write s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX or file:///FOLDER"


def _bucket_url(value: Any) -> str:
    if not isinstance(value, str):
        raise refusal(f"found {value!r}, which is no url", _FORMS)
    # A login or a signature would stand in status, logs and ConfigMaps: it is not repeated here either.
    if "@" in value or "?" in value:
        remedy = "give them as environment variables: in the Secret of secretRef, or in the instances' environment"
        raise refusal("found a url with credentials or a query in it, which everybody could read", remedy)
    if len(value) > LONGEST_URL:
        raise refusal(f"found a url of {len(value)} characters", f"give one of at most {LONGEST_URL}")
    if _BUCKET_URL.fullmatch(value):
        return value.rstrip("/")
    scheme = _SCHEME.match(value)
    if scheme is not None and scheme[0] not in _SCHEMES:
        raise refusal(f"found {value!r}, and snapshots know no {scheme[0]}://", _FORMS)
    if value.startswith("file:"):
        raise refusal(f"found {value!r}, which names no folder", "write file:/// and an absolute path without . and ..")
    remedy = f"{_FORMS}; a prefix has letters, digits and - _ . = + ~ between its slashes"
    raise refusal(f"found {value!r}, which names no bucket and prefix", remedy)


BucketUrl = Annotated[
    str,
    BeforeValidator(_bucket_url),
    WithJsonSchema({"type": "string", "pattern": BUCKET_URL_PATTERN, "maxLength": LONGEST_URL}),
]
"""A prefix in an object store, or a folder; without a slash at its end."""


SnapshotInterval = Annotated[Duration, AfterValidator(between(_SHORTEST, _LONGEST))]
"""A snapshot flushes its store; what is older than a day saves little of a restoration."""


class SnapshotSecretRef(Model):
    """A Secret in the application's namespace."""

    name: ObjectName = Field(
        description="Name of the Secret; each of its keys becomes an environment variable of the pods:"
        " AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, …"
    )


class SnapshotsSpec(Model):
    """Snapshots of stores: where, how often, how many."""

    url: BucketUrl = Field(
        description="s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX or file:///FOLDER. A folder is one"
        " that all instances share; in a cluster a volume of spec.template is mounted there. Applications may share a"
        " url.",
    )
    interval: SnapshotInterval = Field(
        default=_INTERVAL,
        description="Time between two snapshots of a task, 1s to 1d: what a start from a snapshot reads of changelogs"
        " is at most about as much as was written in that time.",
        json_schema_extra={"default": format_duration(_INTERVAL)},
    )
    keep: int = Field(
        default=2,
        ge=1,
        le=100,
        description="Snapshots that stay of each task. Files that several have in common are there once.",
    )
    secret_ref: SnapshotSecretRef | None = Field(
        default=None,
        description="The Secret with the credentials. Absent: the pods' own identity, or spec.template.env.",
    )
