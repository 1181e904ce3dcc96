"""An object store behind a narrow adapter: whole objects under slash-separated paths.

Only this module uses obstore, which is loaded when a bucket is opened: most clients have none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final, TypeVar

from streams_runtime.errors import StreamsException

CHUNK: Final = 1024 * 1024
"""Bytes that are read at once, and at least so many are handed out at once."""
_PART = 8 * 1024 * 1024  # of an upload in parts; S3 allows 10,000 parts
_PARTS_AT_ONCE = 2
_CONNECT, _SILENCE, _REQUEST = timedelta(seconds=5), timedelta(seconds=10), timedelta(minutes=5)
_RETRY: Final = {"max_retries": 3, "retry_timeout": timedelta(seconds=30)}
_VARIABLES: Final = {
    "s3": re.compile(
        "AWS_(ACCESS_KEY_ID|SECRET_ACCESS_KEY|SESSION_TOKEN|ENDPOINT|ENDPOINT_URL|ENDPOINT_URL_S3|REGION|DEFAULT_REGION"
        "|ROLE_ARN|ROLE_SESSION_NAME|WEB_IDENTITY_TOKEN_FILE|CONTAINER_CREDENTIALS_(RELATIVE|FULL)_URI"
        "|CONTAINER_AUTHORIZATION_TOKEN_FILE|METADATA_ENDPOINT|VIRTUAL_HOSTED_STYLE_REQUEST|SKIP_SIGNATURE"
        "|UNSIGNED_PAYLOAD|REQUEST_PAYER|SERVER_SIDE_ENCRYPTION|SSE_KMS_KEY_ID|SSE_BUCKET_KEY_ENABLED|STS_ENDPOINT)"
    ),
    "gs": re.compile("GOOGLE_(SERVICE_ACCOUNT|SERVICE_ACCOUNT_PATH|SERVICE_ACCOUNT_KEY|APPLICATION_CREDENTIALS)"),
    "az": re.compile(
        "AZURE_(STORAGE_ACCOUNT_NAME|STORAGE_ACCOUNT_KEY|STORAGE_CLIENT_ID|STORAGE_CLIENT_SECRET|STORAGE_TENANT_ID"
        "|STORAGE_SAS_KEY|STORAGE_TOKEN|STORAGE_ENDPOINT|STORAGE_USE_EMULATOR|CLIENT_ID|CLIENT_SECRET|TENANT_ID"
        "|FEDERATED_TOKEN_FILE|AUTHORITY_ID|MSI_ENDPOINT)"
    ),
}
_QUERY = re.compile(r"\?\S*")
T = TypeVar("T")


class BucketException(StreamsException):
    """The object store did not do what it was asked for. Nothing is lost; a caller tries again later."""


class ObjectMissingException(BucketException):
    """There is no object under this path."""


class Bucket:
    """Objects below one prefix. Safe to use from any thread.

    All methods raise BucketException when the store can't be reached, refuses, or is too slow.
    """

    def __init__(self, store: Any, url: str) -> None:
        """`store` is one of obstore's; `url` is what messages call it."""
        import obstore
        from obstore import exceptions

        self._store = store
        self._obstore = obstore
        self._exceptions = exceptions
        self.url = url

    def create(self, path: str, body: bytes) -> bool:
        """Write an object that must not be there yet; False when there is one."""
        with self._translated(path):
            try:
                self._obstore.put(self._store, path, body, mode="create")
            except self._exceptions.AlreadyExistsError:
                return False
            return True

    def write(self, path: str, chunks: Iterable[bytes]) -> None:
        """Write an object of any size; nobody sees it before it is whole. Raises what `chunks` raises, too."""
        with self._translated(path):
            self._obstore.put(self._store, path, chunks, chunk_size=_PART, max_concurrency=_PARTS_AT_ONCE)

    def read(self, path: str) -> bytes:
        """A small object. Raises ObjectMissingException."""
        with self._translated(path):
            return bytes(self._obstore.get(self._store, path).bytes())

    def chunks(self, path: str) -> Iterator[bytes]:
        """An object of any size. Raises ObjectMissingException, at the first chunk."""
        with self._translated(path):
            for chunk in self._obstore.get(self._store, path).stream(min_chunk_size=CHUNK):
                yield bytes(chunk)

    def sizes(self, prefix: str) -> dict[str, int]:
        """The objects below a prefix, which ends where a part of a path ends, with their sizes in bytes."""
        with self._translated(prefix):
            pages = self._obstore.list(self._store, prefix, chunk_size=1000)
            return {each["path"]: each["size"] for page in pages for each in page}

    def folders(self, prefix: str) -> list[str]:
        """The parts of paths that come next below a prefix, sorted."""
        with self._translated(prefix):
            found = self._obstore.list_with_delimiter(self._store, prefix)["common_prefixes"]
            return sorted(each.rstrip("/").rsplit("/", 1)[-1] for each in found)

    def delete(self, path: str) -> None:
        """Delete an object; one that is not there is no mistake."""
        with self._translated(path):
            try:
                self._obstore.delete(self._store, path)
            except FileNotFoundError:
                return

    @contextmanager
    def _translated(self, path: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise ObjectMissingException(f"{self.url} has no {path}") from error
        except (self._exceptions.BaseError, OSError) as error:
            raise BucketException(f"{self.url}, {path}: {_brief(error)}") from error


def open_bucket(url: str, environment: Mapping[str, str]) -> Bucket:
    """The bucket of `s3://BUCKET/PREFIX`, `gs://…`, `az://CONTAINER/PREFIX` or `file:///FOLDER`; connects to nothing.

    Credentials come from `environment`, and from the process's own, by obstore's names: AWS_ACCESS_KEY_ID,
    AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT_URL, AWS_ALLOW_HTTP, AZURE_STORAGE_ACCOUNT_NAME, …

    Raises:
        BucketException: the url or a variable can't be used.
    """
    from obstore.exceptions import BaseError
    from obstore.store import AzureStore, GCSStore, LocalStore, S3Store

    scheme = url.partition("://")[0]
    makers: dict[str, Callable[[], Any]] = {
        "s3": lambda: S3Store.from_url(url, **_options("s3", environment)),
        "gs": lambda: GCSStore.from_url(url, **_options("gs", environment)),
        "az": lambda: AzureStore.from_url(url, **_options("az", environment)),
        "file": lambda: LocalStore.from_url(url, mkdir=True),
    }
    if scheme not in makers:
        raise BucketException(f"{url} is no bucket: write s3://, gs://, az:// or file://")
    try:
        return Bucket(makers[scheme](), url)
    except (BaseError, ValueError, OSError) as error:
        raise BucketException(f"{url} can't be used: {_brief(error)}") from error


def _options(scheme: str, environment: Mapping[str, str]) -> dict[str, Any]:
    plain = any(environment.get(name, "").lower() in ("1", "true") for name in ("AWS_ALLOW_HTTP", "AZURE_ALLOW_HTTP"))
    return {
        "config": {name: value for name, value in environment.items() if _VARIABLES[scheme].fullmatch(name)},
        "client_options": {
            "connect_timeout": _CONNECT,
            "read_timeout": _SILENCE,
            "timeout": _REQUEST,
            "allow_http": plain,
        },
        "retry_config": _RETRY,
    }


def _brief(error: Exception) -> str:
    """obstore's text without its debug part, and without queries of addresses, which may be signed."""
    return _QUERY.sub("?…", str(error).partition("\n\n")[0])
