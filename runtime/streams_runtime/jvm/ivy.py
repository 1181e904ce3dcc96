"""Fetching jars and all that they depend on, with the Ivy that Spark carries and uses for this itself."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from dataclasses import dataclass
from html import escape
from pathlib import Path

from streams_runtime.errors import EnvironmentException
from streams_runtime.jvm.java import find_java

SETTINGS_VARIABLE = "STREAMSAPP_IVY_SETTINGS"
"""Names an Ivy settings file for machines that may only reach a mirror; without it Maven Central is asked."""

_SETTINGS = """\
<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true"/></resolvers>
</ivysettings>
"""
# The organisation is part of the name because two of them may have an artifact of the same name.
_PATTERN = "[organisation]_[artifact]-[revision](-[classifier]).[ext]"
_TIMEOUT = 1200.0


@dataclass(frozen=True, slots=True)
class Coordinate:
    """One artifact of a Maven repository."""

    group: str
    artifact: str
    version: str

    @classmethod
    def parse(cls, text: str) -> Coordinate:
        """From `group:artifact:version`."""
        group, artifact, version = text.split(":")
        return cls(group, artifact, version)

    @property
    def file_name(self) -> str:
        """The jar's name in a folder filled by `resolve`."""
        return f"{self.group}_{self.artifact}-{self.version}.jar"

    def __str__(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"


def resolve(coordinates: tuple[str, ...], exclusions: tuple[str, ...], work: Path, into: Path) -> None:
    """Fetch the jars of `coordinates` (`group:artifact:version`) and their dependencies into `into`.

    `exclusions` (`group:artifact`) are left out. What was fetched also stays under `work`, so that another
    try after a failure goes on where this one ended. Raises EnvironmentException with the resolver's reason.
    """
    work.mkdir(parents=True, exist_ok=True)
    wanted = [Coordinate.parse(text) for text in coordinates]
    module = work / "ivy.xml"
    module.write_text(module_descriptor(wanted, exclusions))
    command = [
        str(find_java()),
        "-Xmx256m",
        *("-cp", str(_ivy_jar()), "org.apache.ivy.Main", "-warn"),
        *("-settings", str(_settings(work)), "-cache", str(work / "ivy")),
        *("-ivy", str(module), "-confs", "default"),
        *("-types", "jar", "bundle", "-retrieve", str(into / _PATTERN)),
    ]
    names = " ".join(coordinates)
    try:
        run = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT, stdin=subprocess.DEVNULL, check=False
        )
    except subprocess.TimeoutExpired as late:
        raise EnvironmentException(
            f"the jars {names} were not there after {_TIMEOUT:.0f} s. Check the network, then try again:"
            " what was fetched is kept"
        ) from late
    missing = [str(each) for each in wanted if not (into / each.file_name).is_file()]
    if run.returncode != 0 or missing:
        raise EnvironmentException(failure_text(" ".join(missing) or names, run.stdout + run.stderr))


def module_descriptor(wanted: list[Coordinate], exclusions: tuple[str, ...]) -> str:
    """The ivy.xml that asks for the run-time dependencies of `wanted`."""
    dependencies = "".join(
        f'<dependency org="{escape(it.group)}" name="{escape(it.artifact)}" rev="{escape(it.version)}"'
        ' conf="default->default(runtime)"/>'
        for it in wanted
    )
    excludes = "".join(
        f'<exclude org="{escape(group)}" module="{escape(artifact)}"/>'
        for group, artifact in (each.split(":") for each in exclusions)
    )
    return (
        '<ivy-module version="2.0"><info organisation="streamsapp" module="jars"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{dependencies}{excludes}</dependencies></ivy-module>\n"
    )


def failure_text(names: str, output: str) -> str:
    """What a user is told: which jars, the resolver's reasons in its words, and what to do."""
    marks = (
        "Host ",
        "not found",
        "DOWNLOAD FAILED",
        "FAILED",
        "Server access error",
        "problem while",
        "xception",
    )
    lines = dict.fromkeys(
        text for line in output.splitlines() if (text := line.strip(" \t:")) and any(mark in text for mark in marks)
    )
    # A host that can't be found explains all the rest, and is named once for each file.
    hosts = list(dict.fromkeys(line.split(" url=")[0].rstrip(".") for line in lines if line.startswith("Host ")))
    reasons = hosts or list(lines) or ["the resolver gave no reason"]
    hint = "no network: " if hosts else ""
    return (
        f"{hint}the jars {names} could not be fetched. The resolver says: {'; '.join(reasons[:6])}."
        " Connect this machine to Maven Central for this once, or let"
        f" {SETTINGS_VARIABLE} name an Ivy settings file with a mirror; then try again"
    )


def _ivy_jar() -> Path:
    spec = importlib.util.find_spec("pyspark")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    for folder in folders:
        for jar in sorted(Path(folder, "jars").glob("ivy-*.jar")):
            return jar
    raise EnvironmentException(
        "PySpark, whose resolver fetches the jars, is not installed here. Install the project with its extra:"
        " `pip install 'streams-operator[runtime]'`"
    )


def _settings(work: Path) -> Path:
    if given := os.environ.get(SETTINGS_VARIABLE):
        path = Path(given)
        if not path.is_file():
            raise EnvironmentException(f"{SETTINGS_VARIABLE} names {path}, which is not a file. Correct or unset it")
        return path
    path = work / "settings.xml"
    path.write_text(_SETTINGS)
    return path
