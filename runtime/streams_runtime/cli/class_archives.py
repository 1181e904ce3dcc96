"""Set-up's last step: archives of classes, with which JVMs start in half the time (jvm/class_data.py)."""

from __future__ import annotations

import sys
import time

from streams_runtime.errors import StreamsException
from streams_runtime.jvm.class_data import broker_class_data, spark_class_data


def main() -> int:
    """Make what is missing and print a line for either kind of JVM; returns the exit code.

    It is 0 without the archives too: they are for speed alone.
    """
    started = time.monotonic()
    try:
        spark, broker = spark_class_data(), broker_class_data()
        with spark.made() as spark_options, broker.made() as broker_options:
            if not (spark.archive.is_file() and broker.archive.is_file()):
                print("class data: made by a rehearsal, which takes a minute", flush=True)
                # Only here: it loads all that an application needs, which takes seconds.
                from streams_runtime.cli.rehearsal import rehearse

                rehearse(spark_options, broker_options)
    except (StreamsException, OSError) as failure:
        print(f"class data: none, so JVMs start in twice the time. {failure}", file=sys.stderr)
        return 0
    names = ", ".join(each.archive.name for each in (spark, broker))
    print(f"class data: {names} in {spark.archive.parent} ({time.monotonic() - started:.1f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
