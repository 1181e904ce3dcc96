"""A topology as a picture: Graphviz lays it out, sub-topology by sub-topology."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Literal

from streams_runtime.errors import EnvironmentException
from streams_runtime.topology.describe import all_topics, title_of
from streams_runtime.topology.nodes.join_node import JoinNode
from streams_runtime.topology.plan import SubTopology, Topology
from streams_runtime.topology.store_specs import StoreSpec

if TYPE_CHECKING:
    from pygraphviz import AGraph

_WIDTH = 44  # characters in a line of a label; longer expressions are broken
_FONT = "DejaVu Sans,Helvetica,Arial,sans-serif"
_STEP = {"shape": "box", "style": "rounded,filled", "fillcolor": "white"}
_STORE = {"shape": "cylinder", "style": "filled", "fillcolor": "#dbe9f6"}
_TOPIC = {"shape": "cds", "style": "filled", "fillcolor": "#f2efe2", "margin": "0.18,0.08"}
_INTERNAL = {**_TOPIC, "style": "filled,dashed"}


def draw(topology: Topology, format: Literal["svg", "png"]) -> bytes:
    """The picture as a file's contents; svg is UTF-8 text.

    Steps stand in the box of their sub-topology, stores beside the step that keeps them, topics between the boxes;
    dashed topics are the application's own.

    Raises:
        EnvironmentException: pygraphviz is not installed; the message says how to.
    """
    try:
        from pygraphviz import AGraph
    except ImportError as error:
        raise EnvironmentException(
            f"drawings need pygraphviz, which can't be loaded here ({error}); install streams-operator[drawings], or"
            " take --output mermaid"
        ) from error
    # A step that merges one topic's records in twice has two edges from it.
    graph = AGraph(directed=True, strict=False, name=topology.application_id)
    graph.graph_attr.update(rankdir="LR", fontname=_FONT, fontsize="12", nodesep="0.3", ranksep="0.5")
    graph.node_attr.update(fontname=_FONT, fontsize="11")
    graph.edge_attr.update(color="#555555")
    for topic in all_topics(topology):
        own = topic in topology.repartition_topics
        graph.add_node(_topic(topic), label=_label(topic), **(_INTERNAL if own else _TOPIC))
    for sub in topology.every_subtopology:
        _add(graph, sub, title_of(topology, sub))
    for node in topology.nodes:
        if isinstance(node, JoinNode) and node.on is not None:
            graph.add_edge(_step(node.table), _step(node.name), style="dashed")
    picture: bytes = graph.draw(format=format, prog="dot")
    graph.close()
    return picture


def _add(graph: AGraph, sub: SubTopology, title: str) -> None:
    box = graph.add_subgraph(name=f"cluster_{sub.id}", label=title, style="rounded", color="#999999", bgcolor="#fafafa")
    for node in sub.nodes:
        box.add_node(_step(node.name), label=_label(node.name, node.summary), **_STEP)
    for store in sub.stores:
        box.add_node(_store(store.name), label=_label(*_words(store)), **_STORE)
        graph.add_edge(_step(store.node), _store(store.name), dir="none", style="dashed")
    for node in sub.nodes:
        for name in node.inputs:
            graph.add_edge(_step(name), _step(node.name))
        if node.read_topic is not None:
            graph.add_edge(_topic(node.read_topic), _step(node.name))
        for topic in node.written_topics:
            graph.add_edge(_step(node.name), _topic(topic))


def _words(store: StoreSpec) -> tuple[str, str, str]:
    return store.name, f"{store.kind} store", "" if store.source_changelog else store.changelog_topic


# A step, a store and a topic may have one name.
def _step(name: str) -> str:
    return f"step {name}"


def _store(name: str) -> str:
    return f"store {name}"


def _topic(name: str) -> str:
    return f"topic {name}"


def _label(*lines: str) -> str:
    """Text as it stands, long lines broken between words.

    Graphviz would read a backslash as the beginning of a command, and & as that of a character.
    """
    wrapper = textwrap.TextWrapper(_WIDTH, break_long_words=False, break_on_hyphens=False)
    broken = (part for line in lines for part in wrapper.wrap(line))
    return "\n".join(broken).replace("&", "&amp;").replace("\\", "\\\\")
