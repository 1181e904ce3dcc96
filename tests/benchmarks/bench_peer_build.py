"""Programs on Kafka Streams and on Flink in the cache: jars fetched and classes compiled once, whole or not at all."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from streams_runtime.errors import EnvironmentException
from streams_runtime.jvm.jars import KAFKA_VERSION, cache_folder, only_one
from streams_runtime.jvm.java import find_java

PEER_SOURCE = Path(__file__).parent / "peers" / "kafka-streams"
BUILD_TIMEOUT_S = 600.0
INSTALL_JDK = "install a JDK (Debian: apt-get install openjdk-17-jdk-headless)"
INSTALL_MAVEN = "install Maven (Debian: apt-get install maven)"


@dataclass(frozen=True, slots=True)
class PeerBuild:
    """Where a program's classes and jars are."""

    libs: Path
    classes: Path

    @property
    def classpath(self) -> str:
        return f"{self.classes}{os.pathsep}{self.libs}/*"


def build_peer(cache: Path, source: Path = PEER_SOURCE, pom: Path = PEER_SOURCE / "pom.xml") -> PeerBuild:
    """The program that the .java files of `source` make with the jars of `pom`, from the cache when it is there.

    Files of `source`'s META-INF/services go beside the classes. Jars are kept under Kafka's version and the hash of
    the pom, classes under those and the sources', so that all programs of a pom run on the same jars; Kafka Streams is
    as new as the embedded broker. Raises EnvironmentException when Maven or javac is missing or fails.
    """
    java, services = sorted(source.glob("*.java")), sorted(source.glob("META-INF/services/*"))
    folder = cache / f"{pom.parent.name}-peer"
    libs = folder / f"libs-{KAFKA_VERSION}-{digest(pom)}"
    classes = folder / f"classes-{KAFKA_VERSION}-{digest(pom, *java, *services)}"
    whole(libs, lambda target: _fetch(pom, target))
    whole(classes, lambda target: _compile(java, services, libs, target))
    return PeerBuild(libs, classes)


def digest(*files: Path) -> str:
    """A short name for the content of files."""
    joined = hashlib.sha256()
    for file in files:
        joined.update(file.read_bytes())
    return joined.hexdigest()[:16]


def whole(folder: Path, fill: Callable[[Path], None]) -> None:
    """Make `folder` by filling a neighbour and renaming it, so that a half-written one never has the name.

    Several processes may ask at once: one makes it, and the others wait.
    """
    with only_one(folder):
        if folder.is_dir() and any(folder.iterdir()):
            return
        partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        try:
            fill(partial)
            partial.rename(folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def run_maven(arguments: Sequence[str], cwd: Path) -> None:
    """Run Maven without its chatter. Raises EnvironmentException when there is none, or it fails."""
    maven = find_tool("mvn", INSTALL_MAVEN)
    with only_one(cache_folder() / "maven"):  # its own folder of jars takes no two at once
        run_tool([maven, "-B", "-q", *arguments], cwd)


def _fetch(pom: Path, target: Path) -> None:
    goal = ["dependency:copy-dependencies", f"-DoutputDirectory={target}", f"-Dkafka.version={KAFKA_VERSION}"]
    run_maven(["-f", str(pom), *goal], target)


def _compile(java: Sequence[Path], services: Sequence[Path], libs: Path, target: Path) -> None:
    javac = find_tool("javac", INSTALL_JDK)
    run_tool([javac, "-cp", f"{libs}/*", "-d", str(target), *map(str, java)], target)
    for each in services:
        place = target / "META-INF" / "services" / each.name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(each, place)


def find_tool(command: str, remedy: str) -> str:
    """A tool from the folder of the Java in use, else from the PATH."""
    found = shutil.which(command, path=find_java().parent) or shutil.which(command)
    if found is None:
        raise EnvironmentException(f"{command} was not found, and programs in Java need it; {remedy}")
    return found


def run_tool(command: list[str], target: Path) -> None:
    """Run a command that fills `target`. Raises EnvironmentException with its last lines when it fails."""
    result = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=BUILD_TIMEOUT_S,
        check=False,
    )
    if result.returncode != 0 or not any(target.iterdir()):
        tail = "\n".join((result.stdout + result.stderr).splitlines()[-10:])
        raise EnvironmentException(
            f"a program in Java could not be built: exit code {result.returncode} of {command}\n"
            f"{tail}\nRepair that; the first build needs the network"
        )
