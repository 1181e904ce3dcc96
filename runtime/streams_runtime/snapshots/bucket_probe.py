"""Whether an object store refuses to write an object a second time, on which snapshots rely."""

from __future__ import annotations

import uuid

from streams_runtime.snapshots.bucket import Bucket, BucketException


def require_conditional_writes(bucket: Bucket, application: str) -> None:
    """Try it, with an object that is gone afterwards.

    Raises:
        BucketException: the store can't be reached, or it overwrites.
    """
    path = f"{application}/.probe/{uuid.uuid4().hex}"
    first = bucket.create(path, b"")
    try:
        if not first or bucket.create(path, b""):
            raise BucketException(
                f"{bucket.url} overwrites objects that must not be there yet (If-None-Match), so two instances could"
                " spoil each other's snapshots: use a store that knows conditional writes"
            )
    finally:
        bucket.delete(path)
