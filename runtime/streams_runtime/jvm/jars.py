"""The jars that Spark's JVM needs beside its own, and those of the embedded broker: each set fetched once and kept."""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from streams_runtime.errors import EnvironmentException
from streams_runtime.jvm.ivy import resolve

CACHE_VARIABLE = "STREAMSAPP_CACHE"
"""Names the cache folder; without it, `streams-operator` in $XDG_CACHE_HOME or ~/.cache."""

KAFKA_VERSION = "4.4.0"
"""The version of the embedded broker, of the Java client beside Spark, and of Kafka Streams in tests and benchmarks."""

_MANIFEST = "jars.json"
_LOGGER = logging.getLogger(__name__)

Resolver = Callable[[tuple[str, ...], tuple[str, ...], Path, Path], None]
"""As `ivy.resolve`: coordinates, exclusions, working folder, destination."""


@dataclass(frozen=True, slots=True)
class JarSet:
    """Jars that belong on one classpath, named by what is asked for rather than by what comes with it."""

    name: str
    coordinates: tuple[str, ...]
    exclusions: tuple[str, ...] = ()

    @property
    def folder_name(self) -> str:
        """Changes with whatever is asked for, so that another version never meets these jars."""
        wanted = json.dumps([self.coordinates, self.exclusions])
        return f"{self.name}-{hashlib.sha256(wanted.encode()).hexdigest()[:16]}"


SPARK = JarSet(
    "spark",
    (
        "org.apache.spark:spark-avro_2.13:4.0.2",  # from_avro
        f"org.apache.kafka:kafka-clients:{KAFKA_VERSION}",  # takes static members out of their group
    ),
    # Spark has these itself.
    exclusions=(
        "at.yawk.lz4:lz4-java",
        "com.github.luben:zstd-jni",
        "org.apache.spark:spark-tags_2.13",
        "org.lz4:lz4-java",
        "org.scala-lang:scala-library",
        "org.scala-lang.modules:scala-parallel-collections_2.13",
        "org.slf4j:slf4j-api",
        "org.tukaani:xz",
        "org.xerial.snappy:snappy-java",
    ),
)
BROKER = JarSet(
    "broker",
    (
        f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}",
        # The broker logs through SLF4J 1.7 and brings Log4j, but nothing between the two.
        "org.apache.logging.log4j:log4j-slf4j-impl:2.25.5",
    ),
)


def spark_jars() -> list[Path]:
    """The jars that Spark's JVM needs beside its own; fetched when they are not in the cache.

    Raises EnvironmentException when there is no Java, no network or no room.
    """
    return cached(SPARK, cache_folder())


def has_spark_jars() -> bool:
    """Whether `spark_jars` would fetch nothing."""
    with suppress(OSError):
        return _complete(_place(SPARK, cache_folder())) is not None
    return False


def broker_jars() -> list[Path]:
    """The whole classpath of the embedded broker; otherwise as `spark_jars`. It must not reach Spark's."""
    return cached(BROKER, cache_folder())


def cache_folder() -> Path:
    """Where jars are kept between runs."""
    if given := os.environ.get(CACHE_VARIABLE):
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME")
    return Path(base or Path.home() / ".cache") / "streams-operator"


def cached(jar_set: JarSet, cache: Path, resolver: Resolver = resolve) -> list[Path]:
    """The jars of a set, from the cache folder, or by way of it from the network.

    A set appears in the cache by one rename, so a half-written one is never seen; processes that need the
    same set at once wait for the first of them. A set from which a file has gone is fetched again.
    """
    place = _place(jar_set, cache)
    try:
        if found := _complete(place):
            return found
        with only_one(place):
            return _complete(place) or _fetch(jar_set, place, resolver)
    except OSError as failure:
        raise EnvironmentException(
            f"the jars of {jar_set.name} can't be kept in {place}: {failure}."
            f" Make room or give rights there, or let {CACHE_VARIABLE} name another folder"
        ) from failure


def _place(jar_set: JarSet, cache: Path) -> Path:
    return cache / "jars" / jar_set.folder_name


def _complete(place: Path) -> list[Path] | None:
    try:
        sizes: dict[str, int] = json.loads((place / _MANIFEST).read_text())
        jars = [place / name for name in sorted(sizes)]
        return jars if all(jar.stat().st_size == sizes[jar.name] for jar in jars) else None
    except (FileNotFoundError, ValueError):
        return None


def _fetch(jar_set: JarSet, place: Path, resolver: Resolver) -> list[Path]:
    _LOGGER.info("fetching the jars of %s: %s", jar_set.name, ", ".join(jar_set.coordinates))
    part = place.with_name(place.name + ".part")
    fresh = part / "jars"
    shutil.rmtree(fresh, ignore_errors=True)
    resolver(jar_set.coordinates, jar_set.exclusions, part, fresh)
    sizes = {jar.name: jar.stat().st_size for jar in fresh.glob("*.jar")}
    (fresh / _MANIFEST).write_text(json.dumps(sizes, indent=1))
    shutil.rmtree(place, ignore_errors=True)
    fresh.rename(place)
    shutil.rmtree(part)
    return [place / name for name in sorted(sizes)]


@contextmanager
def only_one(place: Path) -> Iterator[None]:
    """One process at a time makes what belongs at `place`; the others wait, and find it."""
    place.parent.mkdir(parents=True, exist_ok=True)
    # The kernel frees the lock of a process that dies. The empty file stays: removing it would let two in.
    with place.with_name(place.name + ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
