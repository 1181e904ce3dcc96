"""Topologies in Python: `StreamsBuilder` makes the same model that a file declares as sources, steps and sinks."""

from streams_runtime.builder.branches import BranchedKStream, NamedStreams
from streams_runtime.builder.builder import StreamsBuilder
from streams_runtime.builder.builder_formats import json, protobuf
from streams_runtime.builder.builder_global_tables import GlobalKTable
from streams_runtime.builder.grouped_streams import KGroupedStream, WindowedKStream
from streams_runtime.builder.grouped_tables import KGroupedTable
from streams_runtime.builder.streams_and_tables import KStream, KTable
from streams_runtime.builder.window_arguments import hopping, session, sliding, tumbling

__all__ = [
    "BranchedKStream",
    "GlobalKTable",
    "KGroupedStream",
    "KGroupedTable",
    "KStream",
    "KTable",
    "NamedStreams",
    "StreamsBuilder",
    "WindowedKStream",
    "hopping",
    "json",
    "protobuf",
    "session",
    "sliding",
    "tumbling",
]
