"""The StreamsApplication resource as typed models, loaded and checked without Kafka and without Spark."""

from streams_runtime.api.reading.load import Reading, load_application, parse_application, read_application
from streams_runtime.api.spec.resource import GROUP, KIND, VERSION, ApplicationSpec, StreamsApplication
from streams_runtime.api.sql.declared_expressions import SqlField

__all__ = [
    "GROUP",
    "KIND",
    "VERSION",
    "ApplicationSpec",
    "Reading",
    "SqlField",
    "StreamsApplication",
    "load_application",
    "parse_application",
    "read_application",
]
