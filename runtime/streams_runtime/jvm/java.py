"""Finding a Java that Spark and the embedded broker can use; never installs anything."""

from __future__ import annotations

import functools
import logging
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from streams_runtime.errors import EnvironmentException

SUPPORTED = (17, 21)
"""Major versions that Spark 4.0 supports."""

# Spark's vectorised BLAS needs this module. A JRE cut down with jlink often lacks it, and fails much later.
_NEEDED_MODULE = "jdk.incubator.vector"
_DISTRIBUTION_FOLDER = Path("/usr/lib/jvm")
_PROBE_TIMEOUT = 30.0
_MODULE = re.compile(r"^([\w.]+)(?:@(\d+)\S*)?$", re.MULTILINE)
_HOME = re.compile(r"^\s*java\.home = (.+)$", re.MULTILINE)
_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A place where a Java may be: the executable, and how it was come by."""

    executable: Path
    origin: str


@dataclass(frozen=True, slots=True)
class Probe:
    """What an executable turned out to be: the home folder of a fit runtime, or why it can't be used."""

    home: Path | None
    refusal: str = ""


def find_java(environ: Mapping[str, str] = os.environ) -> Path:
    """The `java` executable of a full Java 17 or 21 runtime.

    JAVA_HOME comes first, then PATH, then the folder in which Linux distributions keep their Javas. Raises
    EnvironmentException that lists what was found and says what to install.
    """
    refused: list[str] = []
    for candidate in candidates(environ):
        found = probe(candidate.executable)
        if found.home is not None:
            for line in refused:
                _LOGGER.warning("passed over %s; using %s", line, found.home)
            return found.home / "bin" / "java"
        refused.append(f"{candidate.executable} ({candidate.origin}): {found.refusal}")
    looked_at = "; ".join(refused) or "none in JAVA_HOME, on PATH or in /usr/lib/jvm"
    raise EnvironmentException(
        f"no full Java 17 or 21 runtime was found: {looked_at}. Install one (Debian and Ubuntu:"
        " `apt-get install openjdk-17-jre-headless`) or let JAVA_HOME name one"
    )


def java_home(java: Path) -> Path:
    """The folder for JAVA_HOME that belongs to an executable from `find_java`."""
    return java.parent.parent


def candidates(environ: Mapping[str, str], distribution: Path = _DISTRIBUTION_FOLDER) -> Iterator[Candidate]:
    """The places to look at, best first; only JAVA_HOME's may not exist."""
    if home := environ.get("JAVA_HOME"):
        yield Candidate(Path(home) / "bin" / "java", "JAVA_HOME")
    if on_path := shutil.which("java", path=environ.get("PATH", os.defpath)):
        yield Candidate(Path(on_path), "PATH")
    for java in sorted(distribution.glob("*/bin/java")):
        yield Candidate(java, str(distribution))


@functools.cache
def probe(java: Path) -> Probe:
    """Run an executable and see what it is; asked for its home, because it may be a link or a script."""
    if not java.is_file():
        return Probe(None, "no such file")
    command = [str(java), "-XshowSettings:properties", "--list-modules"]
    try:
        answer = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=_PROBE_TIMEOUT,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as failure:
        return Probe(None, f"does not run ({failure})")
    if answer.returncode != 0:
        # Java 8 does not know the last option.
        return Probe(None, "is older than Java 9, or does not run")
    return _judge(answer.stdout, answer.stderr)


def _judge(modules: str, properties: str) -> Probe:
    versions: dict[str, str] = dict(_MODULE.findall(modules))
    major = int(versions.get("java.base") or 0)
    if major not in SUPPORTED:
        return Probe(None, f"is Java {major}")
    if _NEEDED_MODULE not in versions:
        return Probe(None, f"is Java {major} without the module {_NEEDED_MODULE}: a cut-down runtime")
    home = _HOME.search(properties)
    return Probe(Path(home[1])) if home else Probe(None, "does not say its java.home")
