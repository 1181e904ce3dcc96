"""From YAML or JSON text to one plain mapping, refusing what YAML would quietly guess."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml
from yaml.constructor import ConstructorError
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.scanner import ScannerError

from streams_runtime.api.reading.mistakes import shown
from streams_runtime.api.spec.limits import DEEPEST, LONGEST, MOST, SHORTEN, TOO_DEEP, TOO_LONG, TOO_MANY
from streams_runtime.errors import InvalidApplicationException, Mistake


class _Loader(yaml.SafeLoader):
    """The safe loader without dates: `2024-01-01` stays text, as it does for the API server.

    It reads no more and no deeper than the limits; what fails in one value is an error at its place.
    """

    def __init__(self, text: str, source: str) -> None:
        super().__init__(text)
        self.source = source
        self.depth = self.count = 0

    def compose_node(self, parent: Node | None, index: Any) -> Node | None:
        self.depth, self.count = self.depth + 1, self.count + 1
        if self.depth > DEEPEST or self.count > MOST:
            found = TOO_DEEP if self.depth > DEEPEST else TOO_MANY
            where = _place(self.get_mark(), self.source)
            raise InvalidApplicationException([Mistake(where, found, SHORTEN)])
        node: Node | None = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def construct_object(self, node: Node, deep: bool = False) -> Any:
        try:
            made = super().construct_object(node, deep)
            if isinstance(made, int):
                str(made)  # Python writes no more than 4,300 digits
            if isinstance(made, str):
                made.encode()  # an escape may name half of a character
        except (ValueError, LookupError, AttributeError, ArithmeticError) as error:
            found = f"found a value that can't be read as {node.tag.rpartition(':')[2]}"
            raise ConstructorError(None, None, found, node.start_mark) from error
        return made


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_document(text: str, source: str) -> dict[str, Any]:
    """The one document in `text`; `source` (a file's name) is the place that mistakes name.

    Raises InvalidApplicationException for a syntax error (with line and column), none or several documents,
    something else than a mapping, a field given twice, a field name that is not text, an alias in itself, and what is
    longer, deeper or more than the limits.
    """
    if len(text) > LONGEST or len(text.encode(errors="replace")) > LONGEST:
        raise InvalidApplicationException([Mistake(source, TOO_LONG, SHORTEN)])
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
    loader = _Loader(text, source)
    try:
        node = _only_document(loader, source)
        mistakes: dict[Mistake, None] = {}
        for count, found in enumerate(_structure_mistakes(node, source, [])):
            if found is not None:
                mistakes[found] = None
            if count >= MOST:
                raise InvalidApplicationException([Mistake(source, f"{TOO_MANY}, aliases written out", SHORTEN)])
        if mistakes:
            raise InvalidApplicationException(list(mistakes))
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _only_document(loader: _Loader, source: str) -> Node:
    try:
        node = loader.get_single_node()
    except (ValueError, OverflowError) as error:  # chr() of what an escape names
        raise ScannerError(None, None, "found an escape of no character", loader.get_mark()) from error
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
    if error.context == "while scanning a quoted scalar" and error.context_mark is not None:
        return Mistake(_place(error.context_mark, source), "a quote begins here and does not end", "close it")
    if (error.problem or "").endswith(("'}', but got '<scalar>'", "<block end>, but found '<scalar>'")):
        found = (
            "not YAML: text behind a value that has ended, as one does at its second quote, and at a comma within { }"
        )
        return Mistake(where, found, "write the whole value in quotes, of the sort that is not in it")
    problem = " ".join(part for part in (error.context, error.problem) if part)
    return Mistake(where, f"not YAML: {problem}", "correct the text at this line and column")


def _structure_mistakes(node: Node, source: str, above: list[Node]) -> Iterator[Mistake | None]:
    """The mistakes in a node, and a None for each value inside, aliases written out."""
    yield None
    if any(node is other for other in above):
        yield Mistake(_at(node, source), "an alias that contains itself", "write the value out")
        return
    if len(above) >= DEEPEST:
        yield Mistake(_at(node, source), f"{TOO_DEEP}, aliases written out", SHORTEN)
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
            found = shown(key.value) if isinstance(key, ScalarNode) else "a list or a mapping"
            yield Mistake(
                _at(key, source),
                f"found {found} as the name of a field, which YAML does not read as text",
                "quote it",
            )
        elif key.value in first:
            line = first[key.value].start_mark.line + 1
            yield Mistake(
                _at(key, source),
                f"the field {shown(key.value)} is given twice, first in line {line}",
                "keep one of the two",
            )
        else:
            first[key.value] = key


def _at(node: Node, source: str) -> str:
    return _place(node.start_mark, source)


def _place(mark: yaml.Mark, source: str) -> str:
    return f"{source}:{mark.line + 1}:{mark.column + 1}"


def _kind(value: object) -> str:
    return "a list" if isinstance(value, list) else repr(value)
