"""When a backlog is worked off: the same moments for each side, read kindly to the peers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench_kafka import Cluster, CommitWatch
from bench_side import Client, Launch, Seen, wait_until
from bench_sides import OursClient


@dataclass(frozen=True, slots=True)
class Worked:
    """The moment at which all was done, and the seconds that it took."""

    end: float
    seconds: float

    def from_start(self, last: Sequence[Seen], clients: Sequence[Client]) -> float:
        """Seconds from the first process start until everything was committed: peers say when they had closed."""
        end = max([self.end, *(seen.moments["closed"] for seen in last if "closed" in seen.moments)])
        return end - min(client.child.started_at for client in clients)


def worked_off(
    cluster: Cluster, launch: Launch, clients: Sequence[Client], inputs: Sequence[str], records: int, limit_s: float
) -> Worked:
    """Wait until `clients` are through all `records` of the input topics."""
    if isinstance(clients[0], OursClient):

        def alive() -> None:
            for client in clients:
                client.child.require_alive()

        end = committed(cluster, launch.application_id, inputs, alive, limit_s)
        return Worked(end, end - min(client.seen().moments["running"] for client in clients))

    def done() -> list[Seen] | None:
        seen = [client.seen() for client in clients]
        return seen if sum(each.processed for each in seen) >= records else None

    seen = wait_until("through the backlog", done, limit_s)
    begins = [each.moments["first_record"] for each in seen if "first_record" in each.moments]
    end = max(each.moments["last_record"] for each in seen if "last_record" in each.moments)
    return Worked(end, end - min(begins))


def committed(
    cluster: Cluster, application_id: str, inputs: Sequence[str], alive: Callable[[], None], limit_s: float
) -> float:
    """The moment at which an application had committed its input, and what it has written to itself.

    Ends are compared once more when all is committed: what a stage writes is there before its own input is committed,
    so that ends which have not moved since are final.
    """
    end = max(CommitWatch(cluster, application_id, topic).wait(alive, limit_s) for topic in inputs)
    internal = [
        name for name in cluster.topics() if name.startswith(f"{application_id}-") and name.endswith(_READ_AGAIN)
    ]
    while True:
        before = {topic: cluster.end_offsets(topic) for topic in internal}
        end = max([end, *(CommitWatch(cluster, application_id, topic).wait(alive, limit_s) for topic in internal)])
        if before == {topic: cluster.end_offsets(topic) for topic in internal}:
            return end


_READ_AGAIN = ("-repartition", "-registration-topic", "-response-topic")
"""How names of internal topics end that an application reads after it has written them."""
