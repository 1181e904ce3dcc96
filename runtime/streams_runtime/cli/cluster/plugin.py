"""`kubectl streamsapp`: the commands."""

from __future__ import annotations

import typer

from streams_runtime.cli.common.loaded_verbs import Verb, loading

_VERBS = "streams_runtime.cli.cluster.cluster_verbs"
VERBS = {
    "status": Verb(
        f"{_VERBS}:status",
        "Show applications as trees: problems and what to do, instances, tasks with their stores, restorations, lag.",
    ),
    "errors": Verb(
        f"{_VERBS}:errors",
        "List what is wrong, the worst first, with what to do: conditions, instances, and the ten latest warnings.",
    ),
    "topology": Verb(
        f"{_VERBS}:topology", "Show the sub-topologies that the resource declares, as `streamsapp topology` does."
    ),
    "restart": Verb(
        f"{_VERBS}:restart",
        "Replace every pod once: those in ERROR at once, running ones one by one, each when the last is restored.",
    ),
    "suspend": Verb(f"{_VERBS}:suspend", "Close all pods. Volumes, topics and committed offsets stay."),
    "pause": Verb(f"{_VERBS}:pause", "Let pods stay and answer queries, and process nothing (KIP-834)."),
    "resume": Verb(f"{_VERBS}:resume", "Go on after `suspend` or `pause`."),
    "scale": Verb(f"{_VERBS}:scale", "Run so many instances."),
    "reset": Verb(
        f"{_VERBS}:reset",
        "Have a suspended application read anew: internal topics, offsets, volumes, in this order, all or nothing.",
    ),
}

app = typer.Typer(
    name="kubectl streamsapp",
    cls=loading(VERBS),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def streamsapp() -> None:
    """StreamsApplications of a cluster: see them, and act on them."""


if __name__ == "__main__":
    app()
