"""`streamsapp`: the commands."""

from __future__ import annotations

import typer

from streams_runtime.cli.common.loaded_verbs import Verb, loading

_CLI = "streams_runtime.cli"
VERBS = {
    "run": Verb(
        f"{_CLI}.run:run",
        "Run an application on this machine: each replica as a process, with its state shown live.",
    ),
    "status": Verb(
        f"{_CLI}.status.local_status:status",
        "Show local runs as trees: problems, instances with their tasks, restorations and lag.",
    ),
    "validate": Verb(
        f"{_CLI}.validate:validate",
        "Check FILE and list every mistake with its field, what was found, and what would do.",
    ),
    "topology": Verb(
        f"{_CLI}.topology.topology_command:topology",
        "Show the sub-topologies of FILE, with their sources, steps, stores and sinks.",
    ),
    "build": Verb(
        f"{_CLI}.build:build",
        "Print FILE with the sources, steps and sinks that the function in spec.topology.python makes beside its name.",
    ),
    "init": Verb(
        f"{_CLI}.init:init",
        "Set up the internal topics of FILE's application: all of them, or nothing when they are there.",
    ),
    "topics": Verb(
        f"{_CLI}.topics_command:topics",
        "Make the topics that FILE's application reads and writes, where they are missing.",
    ),
    "reset": Verb(
        f"{_CLI}.reset.reset_command:reset",
        "Have FILE's application read anew: internal topics, offsets, stores, in this order, all or nothing.",
    ),
    "broker": Verb(
        f"{_CLI}.broker:broker",
        "Run Apache Kafka on this machine, each broker in a process of its own, until Ctrl-C or SIGTERM.",
    ),
    "produce": Verb(f"{_CLI}.records.produce:produce", "Write each line of a file to a topic as a JSON object."),
    "consume": Verb(
        f"{_CLI}.records.consume:consume",
        "Print the records of a topic, each as a JSON object on a line of its own.",
    ),
    "query": Verb(
        f"{_CLI}.query.query_command:app",
        "Read a store of a running application: one JSON object a line.",
    ),
    "snapshots": Verb(
        f"{_CLI}.snapshots.snapshots_command:app",
        "Look after an application's snapshots in its bucket; credentials come from the environment.",
    ),
}

app = typer.Typer(
    name="streamsapp", cls=loading(VERBS), no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)


@app.callback()
def streamsapp() -> None:
    """Kafka-Streams-style applications from one file."""
