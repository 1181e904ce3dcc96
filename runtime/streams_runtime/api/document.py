"""From YAML or JSON text to one plain mapping, refusing what YAML would quietly guess."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from streams_runtime.errors import InvalidApplicationException, Mistake


class _Loader(yaml.SafeLoader):
    """The safe loader without dates: `2024-01-01` stays text, as it does for the API server."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_document(text: str, source: str) -> dict[str, Any]:
    """The one document in `text`; `source` (a file's name) is the place that mistakes name.

    Raises InvalidApplicationException for a syntax error (with line and column), none or several documents,
    something else than a mapping, a field given twice, a field name that is not text, an alias in itself.
    """
    try:
        document = _construct(text, source)
    except yaml.MarkedYAMLError as error:
        raise InvalidApplicationException([_syntax_mistake(error, source)]) from error
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise InvalidApplicationException(
            [Mistake(source, f"not YAML: {reason}", "save the file as UTF-8 text without control characters")]
        ) from error
    if not isinstance(document, dict):
        raise InvalidApplicationException(
            [
                Mistake(
                    source,
                    f"found {_kind(document)} instead of fields",
                    "begin with apiVersion, kind, metadata and spec",
                )
            ]
        )
    return document


def _construct(text: str, source: str) -> Any:
    loader = _Loader(text)
    try:
        node = _only_document(loader, source)
        mistakes = list(_structure_mistakes(node, source, []))
        if mistakes:
            raise InvalidApplicationException(mistakes)
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _only_document(loader: _Loader, source: str) -> Node:
    node = loader.get_single_node()
    if node is None:
        raise InvalidApplicationException(
            [
                Mistake(
                    source,
                    "the file is empty",
                    "write a StreamsApplication: apiVersion, kind, metadata and spec",
                )
            ]
        )
    return node


def _syntax_mistake(error: yaml.MarkedYAMLError, source: str) -> Mistake:
    mark = error.problem_mark or error.context_mark
    where = f"{source}:{mark.line + 1}:{mark.column + 1}" if mark else source
    if error.context == "expected a single document in the stream":
        return Mistake(where, "a second document begins here", "keep one StreamsApplication in a file")
    problem = " ".join(part for part in (error.context, error.problem) if part)
    return Mistake(where, f"not YAML: {problem}", "correct the text at this line and column")


def _structure_mistakes(node: Node, source: str, above: list[Node]) -> Iterator[Mistake]:
    if any(node is other for other in above):
        yield Mistake(_at(node, source), "an alias that contains itself", "write the value out")
        return
    above = [*above, node]
    if isinstance(node, SequenceNode):
        for item in node.value:
            yield from _structure_mistakes(item, source, above)
    if isinstance(node, MappingNode):
        yield from _key_mistakes(node, source)
        for _, value in node.value:
            yield from _structure_mistakes(value, source, above)


def _key_mistakes(node: MappingNode, source: str) -> Iterator[Mistake]:
    first: dict[str, Node] = {}
    for key, _ in node.value:
        if key.tag == "tag:yaml.org,2002:merge":
            continue
        if not isinstance(key, ScalarNode) or key.tag != "tag:yaml.org,2002:str":
            found = repr(key.value) if isinstance(key, ScalarNode) else "a list or a mapping"
            yield Mistake(
                _at(key, source),
                f"found {found} as the name of a field, which YAML does not read as text",
                "quote it",
            )
        elif key.value in first:
            line = first[key.value].start_mark.line + 1
            yield Mistake(
                _at(key, source),
                f"the field {key.value!r} is given twice, first in line {line}",
                "keep one of the two",
            )
        else:
            first[key.value] = key


def _at(node: Node, source: str) -> str:
    return f"{source}:{node.start_mark.line + 1}:{node.start_mark.column + 1}"


def _kind(value: object) -> str:
    return "a list" if isinstance(value, list) else repr(value)
