"""Pytest plugin: a real S3 server, and a proxy before it that fails as a test asks it to. One of each a worker."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from bucket_faults import FaultProxy
from kube_binaries import find, lacking, program
from kube_process import LOOPBACK, accepts, free_port, running, temporary_folder

PROGRAM = "s3server"
_BUILD = 1800.0  # seconds
ACCESS_KEY, SECRET_KEY, REGION = "tests", "tests-secret", "us-east-1"


@dataclass(frozen=True, slots=True)
class Bucket:
    """An empty bucket of one test. `folder` is where the server keeps its objects, each as a file of its name."""

    name: str
    folder: Path
    environment: dict[str, str]
    """The variables by which obstore finds the server behind the proxy."""
    faults: FaultProxy

    @property
    def url(self) -> str:
        """What stands in spec.state.snapshots.url."""
        return f"s3://{self.name}"

    @property
    def objects(self) -> dict[str, bytes]:
        """All that is in it, by name; read past the server."""
        files = (each for each in self.folder.rglob("*") if each.is_file())
        return {str(each.relative_to(self.folder)): each.read_bytes() for each in files}


@dataclass(frozen=True, slots=True)
class S3Server:
    """A server that is up; all its buckets are reached through one proxy."""

    port: int
    root: Path
    faults: FaultProxy

    def bucket(self) -> Bucket:
        """A new one; the faults of the last test are over."""
        self.faults.clear()
        name = f"test-{uuid.uuid4().hex[:12]}"
        folder = self.root / name
        folder.mkdir()  # to the server each folder is a bucket of its owner's
        return Bucket(name, folder, environment(self.faults.port), self.faults)


def environment(port: int) -> dict[str, str]:
    """The variables by which obstore finds a server at this port of the loopback address."""
    return {
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_REGION": REGION,
        "AWS_ENDPOINT_URL": f"http://{LOOPBACK}:{port}",
        "AWS_ALLOW_HTTP": "true",
    }


@contextmanager
def serving() -> Iterator[S3Server]:
    """A server of its own, with its proxy, for as long as the block. Raises EnvironmentException: see kube_binaries."""
    executable = program(PROGRAM)
    with temporary_folder("s3") as folder:
        buckets, metadata, port = folder / "buckets", folder / "metadata", free_port()
        for each in (buckets, metadata):
            each.mkdir()
        command = (executable, f"{LOOPBACK}:{port}", buckets, metadata, ACCESS_KEY, SECRET_KEY)
        with running(command, folder, lambda: accepts(port)), FaultProxy(port) as faults:
            yield S3Server(port, buckets, faults)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first test of a machine without the program waits for its build, beside all that runs meanwhile."""
    if find(PROGRAM) is None:
        for each in items:
            if "s3_server" in getattr(each, "fixturenames", ()):
                each.add_marker(pytest.mark.timeout(_BUILD))


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """One for all tests of a worker, started by the first that asks for it, in tenths of a second."""
    if reason := lacking(PROGRAM):
        pytest.skip(reason)
    with serving() as server:
        yield server


@pytest.fixture
def bucket(s3_server: S3Server) -> Iterator[Bucket]:
    """An empty bucket behind a proxy without faults."""
    yield s3_server.bucket()
    s3_server.faults.clear()  # what hangs is let go, so that no client of this test waits for ever
