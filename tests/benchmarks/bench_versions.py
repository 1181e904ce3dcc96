"""Which versions were measured, from where each of them is pinned."""

from __future__ import annotations

import platform
import re
import subprocess
from importlib.metadata import version
from xml.etree import ElementTree

from bench_declared import HERE
from bench_flink import SOURCE as FLINK_SOURCE
from bench_quix import REQUIREMENTS

from streams_runtime.jvm.jars import KAFKA_VERSION
from streams_runtime.jvm.java import find_java

_POM = "{http://maven.apache.org/POM/4.0.0}"


def versions() -> dict[str, str]:
    """By name. The project's is its commit, with a mark when files differ from it."""
    return {
        "streams-operator": _commit(),
        "kafka broker": KAFKA_VERSION,
        "kafka streams": KAFKA_VERSION,
        "quixstreams": _quixstreams(),
        "flink": _flink(),
        "pyspark": version("pyspark"),
        "rocksdict": version("rocksdict"),
        "python": platform.python_version(),
        "java": _java(),
    }


def _commit() -> str:
    command = ["git", "-C", str(HERE), "describe", "--always", "--dirty", "--abbrev=12"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else version("streams-operator")


def _flink() -> str:
    properties = ElementTree.parse(FLINK_SOURCE / "pom.xml").find(f"{_POM}properties")
    return "" if properties is None else properties.findtext(f"{_POM}flink.version", "")


def _quixstreams() -> str:
    found = re.search(r"^quixstreams==(\S+)", REQUIREMENTS.read_text(), re.MULTILINE)
    return found.group(1) if found else ""


def _java() -> str:
    done = subprocess.run([str(find_java()), "-version"], capture_output=True, text=True, check=False)
    return done.stderr.splitlines()[0] if done.stderr else ""
