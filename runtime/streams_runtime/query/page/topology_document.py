"""`/topology`: steps, stores and topics of an application, and where the page draws them."""

from __future__ import annotations

from typing import Any

from streams_runtime.query.page.topology_picture import picture_of
from streams_runtime.topology.describe import as_json
from streams_runtime.topology.plan import Topology


def topology_document(topology: Topology) -> dict[str, Any]:
    """What `streamsapp topology --output json` prints, with `repartitionTopics` and both `pictures`."""
    return {
        **as_json(topology),
        "repartitionTopics": list(topology.repartition_topics),
        "pictures": {"right": picture_of(topology, "right"), "down": picture_of(topology, "down")},
    }
