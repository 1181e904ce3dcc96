"""The StreamsApplication resource as typed models, loaded and checked without Kafka and without Spark."""

from streams_runtime.api.expressions import SqlField
from streams_runtime.api.load import Reading, load_application, parse_application, read_application, sql_of
from streams_runtime.api.models import GROUP, KIND, VERSION, ApplicationSpec, StreamsApplication

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
    "sql_of",
]
