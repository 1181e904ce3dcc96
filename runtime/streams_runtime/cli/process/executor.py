"""The process of an executor's pod: `python -m streams_runtime.cli.process.executor`, which becomes Spark's JVM.

Spark says by the environment what the executor is; the image has Java and the jars. It is what the entrypoint of
Spark's own images does, with this image's places.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from streams_runtime.errors import ConfigException, StreamsException
from streams_runtime.jvm.class_data import spark_class_data
from streams_runtime.jvm.java import find_java
from streams_runtime.jvm.spark_home import LOG_OPTION, class_path
from streams_runtime.states import EXIT_UNUSABLE

_MAIN = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
_ARGUMENTS = {
    "--driver-url": "SPARK_DRIVER_URL",
    "--executor-id": "SPARK_EXECUTOR_ID",
    "--cores": "SPARK_EXECUTOR_CORES",
    "--app-id": "SPARK_APPLICATION_ID",
    "--hostname": "SPARK_EXECUTOR_POD_IP",
    "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
    "--podName": "SPARK_EXECUTOR_POD_NAME",
}
_MEMORY = "SPARK_EXECUTOR_MEMORY"
_OPTION = "SPARK_JAVA_OPT_"
_CLASS_PATH = "SPARK_CLASSPATH"


def command(environment: Mapping[str, str], java: Path, options: Sequence[str], jars: str) -> list[str]:
    """Java's command line for the executor that the environment describes.

    `options` are the runtime's own for the JVM, before the user's; `jars` is the class path.

    Raises:
        ConfigException: a variable that Spark sets is missing.
    """
    missing = [name for name in (*_ARGUMENTS.values(), _MEMORY) if not environment.get(name)]
    if missing:
        raise ConfigException(
            f"{', '.join(missing)} not set in the environment; Spark sets them in the pods of executors, and nothing"
            " else starts this program"
        )
    memory = environment[_MEMORY]
    return [
        str(java),
        *options,
        *given_options(environment),
        f"-Xms{memory}",
        f"-Xmx{memory}",
        "-cp",
        jars,
        _MAIN,
        *(word for name, variable in _ARGUMENTS.items() for word in (name, environment[variable])),
    ]


def given_options(environment: Mapping[str, str]) -> list[str]:
    """Java's options in SPARK_JAVA_OPT_0, SPARK_JAVA_OPT_1, …, by number."""
    numbered = {
        int(name.removeprefix(_OPTION)): value
        for name, value in environment.items()
        if name.startswith(_OPTION) and name.removeprefix(_OPTION).isdecimal()
    }
    return [value for _, value in sorted(numbered.items())]


def main() -> None:
    """Become the executor's JVM; ends with 64 when that can't be."""
    try:
        jars = class_path(filter(None, [os.environ.get(_CLASS_PATH)]))
        words = command(os.environ, find_java(), (LOG_OPTION, *spark_class_data().options), jars)
    except StreamsException as error:
        print(error, file=sys.stderr, flush=True)
        sys.exit(EXIT_UNUSABLE)
    # The first process of the container, so that signals reach it.
    os.execv(words[0], words)


if __name__ == "__main__":
    main()
