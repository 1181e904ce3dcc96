"""Prints as JSON how many classes each kind of JVM takes from its archive. It runs in pods too, which have no tests."""

import json
import os
import subprocess
from pathlib import Path

import pyspark

from streams_runtime.jvm.class_data import broker_class_data
from streams_runtime.jvm.jars import broker_jars
from streams_runtime.jvm.java import find_java, java_home
from streams_runtime.pipeline.spark.spark_session import spark_settings

SEEN = "-Xlog:class+load:stdout"
ARCHIVED = "source: shared objects file (top)"


def taken(command: list[str]) -> int:
    environment = {**os.environ, "JAVA_HOME": str(java_home(find_java()))}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    return done.stdout.count(ARCHIVED)


settings = spark_settings("local[1]", {"spark.driver.extraJavaOptions": SEEN})
spark = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit")]
spark += [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
broker = [str(find_java()), *broker_class_data().options, SEEN, "-cp", os.pathsep.join(map(str, broker_jars()))]
print(json.dumps({"spark": taken([*spark, "--version"]), "broker": taken([*broker, "kafka.Kafka", "--version"])}))
