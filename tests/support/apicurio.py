"""Apicurio Registry as a process of its own: a schema registry with Confluent's HTTP API that others wrote.

It comes through Maven into the cache folder once, whole or not at all, under its version.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from bench_peer_build import run_maven, whole
from kube_process import LOOPBACK, running

from streams_runtime.jvm.child import TiedProcess
from streams_runtime.jvm.jars import cache_folder
from streams_runtime.jvm.java import find_java

VERSION = "2.6.13.Final"  # the newest that runs on Java 17
API = "/apis/ccompat/v7"
_ARTIFACT = f"io.apicurio:apicurio-registry-app:{VERSION}:tar.gz:all"
_HEAP = "256m"
_TIMEOUT = 60.0  # seconds for one answer on a loaded machine


def apicurio_folder(cache: Path | None = None) -> Path:
    """Where the program is, fetched when it is not there. Raises EnvironmentException when it can't be."""
    folder = _folder(cache or cache_folder())
    whole(folder, _fetch)
    return folder


def is_apicurio_here() -> bool:
    """Whether `apicurio_folder` would fetch nothing."""
    return _folder(cache_folder()).is_dir()


def _folder(cache: Path) -> Path:
    return cache / "apicurio-registry" / VERSION


def _fetch(target: Path) -> None:
    run_maven(["dependency:copy", f"-Dartifact={_ARTIFACT}", f"-DoutputDirectory={target}"], target)
    for archive in list(target.iterdir()):
        shutil.unpack_archive(archive, target, filter="data")
        archive.unlink()


@dataclass(frozen=True, slots=True)
class Apicurio:
    """A registry that runs. `url` is what clients of Confluent's API are given."""

    address: str
    process: TiedProcess

    @property
    def url(self) -> str:
        return f"{self.address}{API}"


@contextmanager
def apicurio(folder: Path, port: int) -> Iterator[Apicurio]:
    """A registry at this port that runs inside the block.

    All that it knows lies in `folder`: started there again it knows the same. Raises EnvironmentException when it can't
    be fetched or does not start; its log is in `folder`.
    """
    (jar,) = apicurio_folder().glob("*-runner.jar")
    address = f"http://{LOOPBACK}:{port}"
    properties = {
        "quarkus.http.host": LOOPBACK,
        "quarkus.http.port": str(port),
        "REGISTRY_DATASOURCE_URL": f"jdbc:h2:file:{folder}/registry",
        "LOG_LEVEL": "WARN",
        "java.io.tmpdir": str(folder),
    }
    command = [str(find_java()), f"-Xmx{_HEAP}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    command += [f"-D{name}={value}" for name, value in properties.items()]
    with running([*command, "-jar", str(jar)], folder, lambda: _answers(address), "apicurio") as process:
        # Its own default is NONE; Confluent's is this one.
        httpx.put(f"{address}{API}/config", json={"compatibility": "BACKWARD"}, timeout=_TIMEOUT).raise_for_status()
        yield Apicurio(address, process)


def _answers(address: str) -> bool:
    try:
        return httpx.get(f"{address}{API}/subjects", timeout=_TIMEOUT).is_success
    except httpx.HTTPError:
        return False
