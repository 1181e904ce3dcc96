"""Class data archives (JEP 350): classes as a JVM has them in memory, which later ones map and need not load anew.

Spark loads some 20,000 classes before its first batch, an embedded broker 10,000; with an archive of them either is
ready in half the time. An archive fits one Java and the very jars that it was made with, at their places; these make
its name, so that one that does not fit is another file. Where there is none a JVM loads its classes itself.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from streams_runtime.errors import EnvironmentException
from streams_runtime.jvm.jars import broker_jars, cache_folder, only_one, spark_jars
from streams_runtime.jvm.java import find_java, java_home
from streams_runtime.jvm.spark_home import spark_home

_UNUSED = 30 * 24 * 3600.0  # seconds
# A JVM checks an archive itself as well, goes on without one that does not fit, and should not talk about it.
_QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")


@dataclass(frozen=True, slots=True)
class ClassData:
    """The archive of one kind of JVM; the file may not be there."""

    archive: Path

    @property
    def options(self) -> tuple[str, ...]:
        """What makes a JVM start with the archive; nothing when there is none."""
        return (f"-XX:SharedArchiveFile={self.archive}", *_QUIET) if self.archive.is_file() else ()

    @contextmanager
    def made(self) -> Iterator[tuple[str, ...]]:
        """Options for a JVM that does what later ones will do, and has ended when the context does: its classes are
        archived then. Processes that want the same archive at once wait for the first; the others get `options`.

        Raises EnvironmentException: the JVM has written none, as one does that was built without an archive of Java's
        own classes. Raises OSError: the cache folder can't be written.
        """
        if self.archive.is_file():
            yield self.options
            return
        part = self.archive.with_suffix(".part")
        with only_one(self.archive):
            if self.archive.is_file():
                yield self.options
                return
            part.unlink(missing_ok=True)
            try:
                yield (f"-XX:ArchiveClassesAtExit={part}", *_QUIET)
                if not part.is_file():
                    raise EnvironmentException(
                        f"Java wrote no class data to {part}: look for room there, and whether this Java has an archive"
                        " of its own classes (java -Xshare:dump makes it)"
                    )
                part.rename(self.archive)
                _remove_unused(self.archive.parent)
            finally:
                part.unlink(missing_ok=True)


def _remove_unused(folder: Path) -> None:
    """Archives of jars and Javas that have gone, by when a JVM last had them: they are large."""
    for each in folder.glob("*.jsa"):
        with suppress(FileNotFoundError):  # another process removes them too
            if time.time() - each.stat().st_atime > _UNUSED:
                each.unlink()


def spark_class_data() -> ClassData:
    """The archive of the JVM of Spark's session. Raises what `spark_jars` and `find_java` raise."""
    return _class_data("spark", [*spark_jars(), *sorted((spark_home() / "jars").glob("*.jar"))])


def broker_class_data() -> ClassData:
    """The archive of the embedded broker's JVM. Raises what `broker_jars` and `find_java` raise."""
    return _class_data("broker", broker_jars())


def _class_data(name: str, jars: Iterable[Path]) -> ClassData:
    digest = hashlib.sha256()
    # Of libjvm itself, since an update of Java comes to the same place.
    libraries = sorted((java_home(find_java()) / "lib").glob("*/libjvm.so"))
    for each in (*libraries, *jars):
        found = each.stat()
        digest.update(f"{each} {found.st_size} {int(found.st_mtime)}\n".encode())
    return ClassData(cache_folder() / "classes" / f"{name}-{digest.hexdigest()[:16]}.jsa")
