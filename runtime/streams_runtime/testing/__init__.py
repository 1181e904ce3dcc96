"""Tests of a topology without Kafka and without a cluster: for users, and for this project's own tests.

`TopologyTestDriver` runs an application's topology in the calling thread with the runtime's own code; nothing in the
runtime imports this package.
"""

from streams_runtime.testing.driver import TopologyTestDriver
from streams_runtime.testing.driver_records import START, Record
from streams_runtime.testing.driver_topics import InputTopic, OutputTopic
from streams_runtime.testing.spark_for_tests import spark_session

__all__ = ["START", "InputTopic", "OutputTopic", "Record", "TopologyTestDriver", "spark_session"]
